"""What is held against a reader: how it ends, in which time and memory, and what it says."""

from __future__ import annotations

import os
import re
import resource
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from segtrust.errors import SegtrustError

__all__ = [
    "HEADROOM",
    "IN_WORKERS",
    "MOST_BYTES",
    "SECONDS",
    "Cost",
    "Verdict",
    "bound_memory",
    "judged",
    "measured",
]

SECONDS = 5.0
"""Longest that a reader may take."""
MOST_BYTES = 16 << 20
"""``SEGTRUST_MAX_BYTES`` of a run: what one array may take."""
IN_WORKERS = frozenset(("nnunet", "npz", "npy", "nifti", "itk", "image", "tiff", "hdf5", "zarr", "dicomseg"))
"""Readers of the files of a case."""
HEADROOM = 1 << 30
"""Address space that all of a case may take: the array, copies of it, and the libraries' own."""
_LONGEST = 2000
"""Characters of a message: it is a line on a terminal and a cell of a table."""
_MEMORY = re.compile(
    r"bad_alloc|able to allocate|can(not|'t) allocate|allocation failed|memory allocation|"
    r"(out of|not enough) memory",
    re.IGNORECASE,
)
"""How libraries say that they got no memory."""
_TOLD = "told as"
_PEAK = re.compile(r"VmHWM:\s*(\d+)")


@dataclass(frozen=True)
class Verdict:
    """What came of an input.

    Attributes
    ----------
    kind
        ``"read"`` and ``"refused"`` are right; ``"error"``, which is not segtrust's own, and ``"words"``, an
        error that is badly worded, are faults; for ``"memory"``, ``"hang"`` and ``"crash"`` see `is_fault`.
    what
        The message, or where it came from; equal for what is likely the same fault.
    """

    kind: str
    what: str = ""

    def is_fault(self, reader: str) -> bool:
        """Return whether something is to be fixed.

        The files of a case are read in a worker process. One that hangs, crashes or takes too much memory is
        ended there, and becomes one named failure.
        """
        contained = ("memory", "hang", "crash") if reader in IN_WORKERS else ()
        return self.kind not in ("read", "refused", *contained)


@dataclass(frozen=True)
class Cost:
    """What an input took.

    Attributes
    ----------
    seconds
        Of a core, so that it is the same on a busy machine.
    mebibytes
        That the process had more in memory at once than before.
    """

    seconds: float = 0.0
    mebibytes: float = 0.0

    def or_more(self, other: Cost) -> Cost:
        """Give the larger of each."""
        return Cost(max(self.seconds, other.seconds), max(self.mebibytes, other.mebibytes))


def bound_memory() -> None:
    """Let this process take no more address space than it has now and the headroom of a case."""
    _bound_addresses(HEADROOM)


def _bound_addresses(more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def measured(reader: str, path: Path) -> tuple[Verdict, Cost]:
    """Read a file, judge how that ends, and tell what it took."""
    _count_anew()
    begin, before = time.process_time(), _peak()
    verdict = judged(reader, path)
    return verdict, Cost(time.process_time() - begin, (_peak() - before) / (1 << 20))


def _count_anew() -> None:
    """Let the system forget the peak of memory."""
    Path("/proc/self/clear_refs").write_text("5")


def judged(reader: str, path: Path) -> Verdict:
    """Read a file, and judge how that ends.

    Segtrust's own errors are right, and so are those of the system that name a file: the command line makes
    one line of them, and the engine one row. Memory that is refused is a fault here, though the engine tells
    it as the failure of a case.
    """
    verdict = _judged(reader, path)
    is_told = verdict.kind == "memory" and verdict.what.startswith(_TOLD)
    return _judged_by_use(reader, path) if is_told else verdict


def _judged_by_use(reader: str, path: Path) -> Verdict:
    """Read once more, with room enough, where a library was refused memory and has dealt with that itself.

    Memory that is asked for on account of a damaged length, and given back without being used, does no harm.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    _bound_addresses(16 * HEADROOM)
    _count_anew()
    begin = _peak()
    verdict, used = _judged(reader, path), _peak() - begin
    resource.setrlimit(resource.RLIMIT_AS, before)
    if used > HEADROOM:
        return Verdict("memory", f"{used >> 20} MiB in use")
    return Verdict("refused", verdict.what) if verdict.kind == "memory" else verdict


def _peak() -> int:
    """Bytes that were in memory at most."""
    return int(_PEAK.search(Path("/proc/self/status").read_text())[1]) << 10  # type: ignore[index]


def _judged(reader: str, path: Path) -> Verdict:
    from tools.reliability.fuzz.readers import READ

    try:
        READ[reader](path)
    except SegtrustError as error:
        return _worded(error, path)
    except MemoryError as error:
        return Verdict("memory", _where(error))
    except OSError as error:
        return Verdict("refused") if error.filename else Verdict("error", _where(error))
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return Verdict("error", _where(error))
    return Verdict("read")


def _worded(error: SegtrustError, path: Path) -> Verdict:
    """Look at how a refusal is told: by the name of a file, on one line, and briefly."""
    said, kind = str(error), type(error).__name__
    if _MEMORY.search(said):
        return Verdict("memory", f"{_TOLD} {kind}: {said[:200]}")
    if path.parent.name not in said:
        return Verdict("words", f"{kind} without the file: {_template(said)}")
    if "\n" in said or "\r" in said:
        return Verdict("words", f"{kind} of several lines: {_template(said)}")
    if len(said) > _LONGEST:
        return Verdict("words", f"{kind} of more than {_LONGEST} characters: {_template(said)[:60]}")
    return Verdict("refused", said)


def _template(said: str) -> str:
    """Give a message without what differs from file to file."""
    return re.sub(r"\d+|'[^']*'|/\S+", "…", said.replace("\n", " "))[:160]


def _where(error: BaseException) -> str:
    """Name an error by its type and the innermost lines of segtrust's that it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if "/segtrust/" in each.filename] or frames
    last = frames[-1]
    place = f"{Path(own[-1].filename).name}:{own[-1].name}"
    inner = "" if last is own[-1] else f" < {Path(last.filename).name}:{last.name}"
    return f"{type(error).__name__} in {place}{inner}: {_template(str(error))[:80]}"
