"""Work on cases that engines are tried with: quick, deadly, or noting when it is done."""

import os
import signal
import time
from pathlib import Path

from segtrust.engine.outcomes import Outcome
from segtrust.io import ArrayRef, CaseFiles


def cases(names, folder="maps"):
    return [CaseFiles(name, ArrayRef(Path(folder, f"{name}.npy"))) for name in names]


def name_length(case):
    return Outcome(case.id, ({"case": case.id, "length": len(case.id)},))


def die_once(case):
    """Kill the own process, unless a file tells that this was done before."""
    if case.id.startswith("once"):
        note = case.probabilities.path.with_suffix(".died")
        if not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return name_length(case)


def die_always(case):
    """Kill the own process, and note each time."""
    if case.id.startswith("deadly"):
        with case.probabilities.path.with_suffix(".deaths").open("a") as file:
            file.write("x")
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    return name_length(case)


def note_times(case):
    """Note when the work began and ended."""
    begin = time.monotonic()
    time.sleep(0.1)
    end = time.monotonic()
    return Outcome(case.id, ({"case": case.id, "begin": begin, "end": end, "pid": os.getpid()},))


def slow(case):
    """Take a moment, and leave a note of the process."""
    case.probabilities.path.with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(0.15)
    return name_length(case)


def take_long(case):
    """Take two and a half seconds over cases that are called so."""
    if case.id.startswith("long"):
        time.sleep(2.5)
    return name_length(case)


class HeldBack(Outcome):
    """An outcome whose process is stopped when it is to be sent, the first time."""

    def __reduce__(self):
        note = Path(self.rows[0]["note"])
        if not note.exists():
            note.touch()
            os.kill(os.getpid(), signal.SIGSTOP)
        return name_length, (CaseFiles(self.case, ArrayRef(note)),)


def hold_back_once(case):
    """Give an outcome that does not arrive, unless a file tells that this was done before."""
    outcome = slow(case)
    if case.id.startswith("held"):
        return HeldBack(case.id, ({"note": str(case.probabilities.path.with_suffix(".held"))},))
    return outcome


def stop_once(case):
    """Stop the own process in the middle of the work, unless a file tells that this was done before."""
    note = case.probabilities.path.with_suffix(".stopped")
    if case.id.startswith("stops") and not note.exists():
        note.touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    return slow(case)


def expected(names):
    return {name: Outcome(name, ({"case": name, "length": len(name)},)) for name in names}


def fill_memory(case):
    """Take 600 MiB over cases that are called so."""
    if case.id.startswith("large"):
        held = bytearray(600 << 20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(1.5)
    return name_length(case)


def touch_truncated(case):
    """Read a file through a memory map while somebody truncates it."""
    if case.id.startswith("cut"):
        import mmap

        path = case.probabilities.path.with_suffix(".mapped")
        path.write_bytes(bytes(1 << 16))
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            file.truncate(0)
            bytes(mapped)
    return name_length(case)
