"""The process of which workers are forks.

This module imports little, so that a command can start that process first, and import its own packages while
those of the workers are imported there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_all_start_methods, get_context, resource_tracker
from typing import Any

__all__ = ["START_METHOD", "block_interrupts", "preload_workers"]

START_METHOD = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
"""A fork of this process would inherit locks held by its threads. The fork server has none, and has imported
what workers need."""


def preload_workers() -> None:
    """Start the process of which workers are forks, without waiting; it imports what they need."""
    if START_METHOD == "forkserver":
        get_context(START_METHOD).set_forkserver_preload(["segtrust.engine.preload"])
        with block_interrupts():
            forkserver.ensure_running()


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started inside this block; here it waits for its end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock them itself
    received: list[tuple[Any, ...]] = []
    handler = signal.getsignal(signal.SIGINT)
    is_deferred = callable(handler) and threading.current_thread() is threading.main_thread()
    if is_deferred:  # another thread may take the signal, and this one handle it
        signal.signal(signal.SIGINT, lambda *signals: received.append(signals))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_deferred:
            signal.signal(signal.SIGINT, handler)
    if received and callable(handler):
        handler(*received[0])
