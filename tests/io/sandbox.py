"""Reading in a child process with a limit on resident memory and on time, as the engine's workers do."""

import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust.errors import SegtrustError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.volume import open_labels, open_volume

_PAGE = 4096


@dataclass(frozen=True)
class Outcome:
    """How reading ended: ``"read"``, ``"rejected"`` with a message, or ``"died"`` with a reason."""

    kind: str
    value: Any


def _read(path: Path, pipe: Any) -> None:
    try:
        ref = ArrayRef(path)
        open_labels(ref).read()
        pipe.send(("read", open_volume(ref).read()))
    except SegtrustError as error:
        pipe.send(("rejected", str(error)))
    except MemoryError:
        pipe.send(("died", "memory"))


def read_in_child(path: Path, *, memory: int = 1 << 30, seconds: float = 20.0) -> Outcome:
    """Read a file as a map and as labels in a child process, which is killed at the limits (Linux only)."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_read, args=(path, theirs))
    child.start()
    theirs.close()
    end, reason = time.monotonic() + seconds, ""
    try:
        while not ours.poll(0.02):
            statm = Path(f"/proc/{child.pid}/statm")
            pages = int((statm.read_text().split() or ["0", "0"])[1]) if statm.exists() else 0
            reason = "memory" if pages * _PAGE > memory else "time" if time.monotonic() > end else ""
            if reason:
                child.kill()
                return Outcome("died", reason)
        return Outcome(*ours.recv())
    except EOFError:
        child.join()
        return Outcome("died", f"exit code {child.exitcode}")
    finally:
        child.join()
        ours.close()
