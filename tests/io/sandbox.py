"""Reading in a worker process with limits on memory and time, as cases are read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segtrust.engine.executors import MemoryLimitError, Sandbox, TimeLimitError
from segtrust.errors import SegtrustError, WorkerError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.volume import open_labels, open_volume


@dataclass(frozen=True)
class Outcome:
    """How reading ended: ``"read"``, ``"rejected"`` with a message, or ``"died"`` with a reason."""

    kind: str
    value: Any


def _read(path: Path) -> Outcome:
    try:
        ref = ArrayRef(path)
        open_labels(ref).read()
        return Outcome("read", open_volume(ref).read())
    except SegtrustError as error:
        return Outcome("rejected", str(error))
    except MemoryError:
        return Outcome("died", "memory")


def read_in_child(path: Path, *, memory: int = 1 << 30, seconds: float = 20.0) -> Outcome:
    """Read a file as a map and as labels in a worker process, which is killed at the limits."""
    try:
        with Sandbox(memory=memory, seconds=seconds) as sandbox:
            return sandbox.call(_read, path)
    except MemoryLimitError:
        return Outcome("died", "memory")
    except TimeLimitError:
        return Outcome("died", "time")
    except WorkerError as error:
        return Outcome("died", str(error))
