"""One run at a time on one output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone", "is_taken", "take"]

_TRIES = 5
_PAUSE_S = 0.02
"""Between tries: who only looks whether a file is taken has it for a moment."""


def take(file: IO[bytes]) -> bool:
    """Take an open file for this process until it is closed; tell whether nobody else has it.

    The system lets go of it when a process ends, however it ends, so that nothing a killed run leaves behind
    stands in the way of the next: no number of a process is kept, which would mean nothing on another
    machine. Where files cannot be taken (Windows, some network drives) nobody is kept out, and where locks of
    a network drive stay on this machine (NFS mounted with ``nolock`` or ``local_lock``) only runs of it are.
    So whoever writes to a file that was taken must look whether it is as it was left, as the diary does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as first, open(first.name, "rb") as second:
    ...     take(first), take(second)
    (True, False)
    """
    for _ in range(_TRIES):
        if _try(file, exclusive=True) is not False:
            return True
        time.sleep(_PAUSE_S)
    return False


def is_taken(path: Path) -> bool | None:
    """Tell whether a process has taken a file; ``None`` where that cannot be told.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     before, _, after = is_taken(Path(file.name)), take(file), is_taken(Path(file.name))
    >>> before, after
    (False, True)
    """
    try:
        with path.open("rb") as file:
            found = _try(file, exclusive=False)
    except OSError:
        return None
    return None if found is None else not found


def _try(file: IO[bytes], *, exclusive: bool) -> bool | None:
    """Lock a file until it is closed, and tell whether that went; ``None`` where nothing knows locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a drive that knows no locks
        return None
    return True


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until nobody else is in here with the same file, which is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with alone(Path(tempfile.mkdtemp()) / ".lock"):
    ...     pass
    """
    with path.open("ab") as file:
        if fcntl is not None:
            with suppress(OSError):  # a drive that knows no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
