"""Watch a folder for long: maps arrive in pieces, some broken, some replaced, and memory should stay flat.

``python -m tools.reliability.soaking --minutes 60 --out soak`` runs ``segtrust score --watch`` on a folder
that it fills meanwhile, then compares the table and the list of failures with the files one by one, and fits
the growth of the memory; it ends with 1 where a row is wrong or memory grows too fast.
With ``--keep 200`` files are moved away once they are scored, but for the newest, as a real inbox is emptied.
``--draw soak other --out memory.svg`` draws the memory of soaks that are over.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import io
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

import segtrust as st
from segtrust.engine import failures_beside
from segtrust.io import Table, read_table, write_table

Memory = Sequence[dict[str, float]]
"""Minute, files sent until then, and MiB of the watch."""

SETTLE_S = 1.0
ESTIMATORS = ("sdc", "idc", "amsp")
"""Those of the command."""
PATIENCE_S = 300.0
TIDY_EVERY = 50
"""Files between two looks at what can be moved away."""
QUICKLY, SLOWLY = (5, 0.05), (12, 0.3)
"""In how many pieces a file is written, and seconds between two: fewer than it takes to settle."""
STARTED = 0.1
"""Share of the time after which all that is loaded at first use has been."""
LIMIT = 5.0
"""MiB that memory may grow by for 1,000 files, unless another limit is given."""
STEP = 4.0
"""MiB that memory may grow by once, as when a table of Python's own doubles: too little to fit a slope to."""
MIB = 1 << 20


def packed(seed: int, size: int = 256) -> bytes:
    """Give the bytes of an archive with a map, another one for each seed."""
    rng = np.random.default_rng(seed)
    y, x = np.ogrid[:size, :size]
    distance = np.hypot(y - rng.uniform(60, 196), x - rng.uniform(60, 196)) - rng.uniform(5, 60)
    file = io.BytesIO()
    np.savez_compressed(file, p=(1 / (1 + np.exp(distance / rng.uniform(1, 8)))).astype(np.float32))
    return file.getvalue()


@dataclass(frozen=True)
class Parcel:
    """What is sent at one time, the same for the same number.

    Attributes
    ----------
    number
        Of the file, which is also the seed of its map.
    back
        How many numbers earlier the case was sent whose file this one replaces; 0 for a new case.
    is_broken, is_slow
        Whether half of it is missing, and whether it grows for seconds while others come.
    """

    number: int
    back: int = 0
    is_broken: bool = False
    is_slow: bool = False

    @property
    def case(self) -> str:
        """Name of the case."""
        return f"case_{self.number - self.back:06d}"


def parcel(number: int) -> Parcel:
    """Say what is sent: of 100 files two are broken, of which one is mended later, and one spoils a good one.

    Five replace a good one by another, and five are slow.

    Examples
    --------
    >>> parcel(107).is_broken, parcel(127).case, parcel(127).is_broken
    (True, 'case_000107', False)
    >>> parcel(134).case, parcel(134).is_broken
    ('case_000124', True)
    """
    in_hundred = number % 100
    back = {27: 20, 34: 10}.get(in_hundred, 10 if number % 20 == 0 and number else 0)
    return Parcel(number, back, is_broken=in_hundred in (7, 34, 57), is_slow=number % 20 == 3)


@dataclass
class Sender:
    """Somebody who puts maps into a folder, in pieces.

    Attributes
    ----------
    folder
        Into which.
    seed_of
        Of the map that stands for each case at last, in the order in which they were sent.
    broken
        Cases whose file is broken at last.
    mended
        Cases whose broken file was replaced by a good one.
    """

    folder: Path
    seed_of: dict[str, int] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    mended: set[str] = field(default_factory=set)
    _growing: list[Future[None]] = field(default_factory=list, init=False)
    _threads: ThreadPoolExecutor = field(default_factory=ThreadPoolExecutor, init=False)

    def send(self, number: int) -> None:
        """Put in one more map, or another one in the place of an earlier."""
        sent, whole = parcel(number), packed(number)
        self.seed_of.pop(sent.case, None)  # what was sent last stands last
        self.seed_of[sent.case] = number
        if sent.case in self.broken and not sent.is_broken:
            self.mended.add(sent.case)
        (self.broken.add if sent.is_broken else self.broken.discard)(sent.case)
        content = whole[: len(whole) // 2] if sent.is_broken else whole
        if sent.is_slow:
            self._growing.append(self._threads.submit(self._write, sent.case, content, SLOWLY))
        else:
            self._write(sent.case, content, QUICKLY)

    def finish(self) -> None:
        """Wait until the last file is whole; what went wrong in writing is raised."""
        for each in self._growing:
            each.result()
        self._threads.shutdown()

    def move_away(self, table: Path, keep: int) -> None:
        """Take away all files but the newest, of those that are in the table or told to have failed."""
        done = {*cases_in(table), *cases_in(failures_beside(table, None))}
        for name in done.intersection(list(self.seed_of)[:-keep]):
            (self.folder / f"{name}.npz").unlink(missing_ok=True)

    def _write(self, case: str, content: bytes, how: tuple[int, float]) -> None:
        """Write a file in pieces."""
        pieces, pause_s = how
        step = len(content) // pieces + 1
        with (self.folder / f"{case}.npz").open("wb") as file:
            for at in range(0, len(content), step):
                file.write(content[at : at + step])
                file.flush()
                time.sleep(pause_s)


def cases_in(table: Path) -> list[str]:
    """Name the cases of a table, as often as they are in it; none where it is not there."""
    return [row["case"] for row in read_table(table).rows] if table.exists() else []


def memory_of(pid: int) -> int:
    """Bytes of memory that are the process's own now.

    Pages of files, as of libraries, are not: the kernel takes them away and brings them back as it likes.
    """
    resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
    return (int(resident) - int(shared)) * resource.getpagesize()


@dataclass(frozen=True)
class Soak:
    """A soak that is over.

    Attributes
    ----------
    sender
        Knows what was sent.
    table
        That the watch has written.
    memory
        Of the watch, after each file.
    code
        With which it ended.
    """

    sender: Sender
    table: Path
    memory: Memory
    code: int

    def wrong(self) -> dict[str, list[str]]:
        """Name what is not as it should be, by what that is."""
        return {
            "rows missing, doubled, too many, or not of the last file": wrong_rows(self.sender, self.table),
            "failures missing, doubled or too many": wrong_failures(self.sender, self.table),
            "exit code (1: some failed)": [str(self.code)] * (self.code != bool(self.sender.broken)),
        }


def soak(folder: Path, minutes: float, every_s: float, keep: int | None = None) -> Soak:
    """Fill a folder for so long while it is watched."""
    inbox, table = folder / "inbox", folder / "scores.csv"
    inbox.mkdir(parents=True)
    score_of(0)  # the loops are compiled, once for all: that is no part of a watch
    command = [sys.executable, "-m", "segtrust", "score", "--watch", inbox, "-o", table, "--settle", SETTLE_S]
    sender = Sender(inbox)
    with (folder / "watch.log").open("w") as log:
        process = subprocess.Popen([str(each) for each in command], stdout=log, stderr=log)
        try:
            memory = fill(sender, process.pid, minutes, every_s, None if keep is None else (table, keep))
            wait_for(sender, table)
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
    return Soak(sender, table, memory, code)


def fill(sender: Sender, pid: int, minutes: float, every_s: float, tidy: tuple[Path, int] | None) -> Memory:
    """Send files for so long, and note the memory of a process after each."""
    memory: list[dict[str, float]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < 60 * minutes:
        sender.send(len(memory))
        minute, mib = (time.monotonic() - begin) / 60, memory_of(pid) / MIB
        memory.append({"minute": minute, "files": len(memory) + 1, "mib": mib})
        if len(memory) % 100 == 0:
            print(f"{len(memory)} files, {mib:.1f} MiB", file=sys.stderr)
        if tidy is not None and len(memory) % TIDY_EVERY == 0:
            sender.move_away(*tidy)
        time.sleep(max(0.0, begin + len(memory) * every_s - time.monotonic()))
    sender.finish()
    return memory


def wait_for(sender: Sender, table: Path) -> None:
    """Wait until what was sent last is in the table, also in the place of an earlier one, or for minutes."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and (wrong_rows(sender, table) or wrong_failures(sender, table)):
        time.sleep(1.0)


def wrong_rows(sender: Sender, table: Path) -> list[str]:
    """Give the cases that are not in the table exactly once with the score of the file that came last."""
    rows = read_table(table).rows if table.exists() else ()
    good = {name: seed for name, seed in sender.seed_of.items() if name not in sender.broken}
    return _unlike(
        [(row["case"], row["sdc"]) for row in rows], [(name, score_of(seed)) for name, seed in good.items()]
    )


def wrong_failures(sender: Sender, table: Path) -> list[str]:
    """Give the cases that are told to have failed and are not broken, or not exactly once though they are."""
    listed = cases_in(failures_beside(table, None))
    return _unlike([(name, None) for name in listed], [(name, None) for name in sender.broken])


def _unlike(found: Iterable[tuple[str, object]], expected: Iterable[tuple[str, object]]) -> list[str]:
    """Name the cases of which there is more or less than there should be."""
    are, should = Counter(found), Counter(expected)
    return sorted({name for name, _ in (are - should) + (should - are)})


@cache
def score_of(seed: int) -> float:
    """Give the score of a map that was sent."""
    p = np.load(io.BytesIO(packed(seed)))["p"]
    return float(st.score(p, estimators=ESTIMATORS)["sdc"])


def slope(memory: Memory, of: str) -> float:
    """Fit a line to the memory of the last two thirds; MiB for each minute or file."""
    late = memory[len(memory) // 3 :]
    return float(np.polyfit([each[of] for each in late], [each["mib"] for each in late], 1)[0])


def grows_too_fast(memory: Memory, limit: float) -> bool:
    """Tell whether memory grows by more than so many MiB for 1,000 files, and by more than a step in all."""
    each = slope(memory, "files")
    return 1000 * each > limit and each * len(memory) * 2 / 3 > STEP


def at_share(memory: Memory, share: float) -> float:
    """Give the memory when so much of the time had passed."""
    return memory[min(int(share * len(memory)), len(memory) - 1)]["mib"]


def tell(done: Soak, limit: float) -> None:
    """Print what came of it."""
    sender, memory = done.sender, done.memory
    print(f"files sent                      {len(memory)}")
    print(f"cases                           {len(sender.seed_of)}")
    print(f"  broken at the end             {len(sender.broken)}")
    print(f"  broken, then replaced         {len(sender.mended)}")
    for what, wrong in done.wrong().items():
        print(f"{what}: {len(wrong)} {', '.join(wrong[:5])}")
    for share in (STARTED, 0.33, 0.67, 1.0):
        print(f"memory at {100 * share:3.0f} % of the time      {at_share(memory, share):.1f} MiB")
    print(f"growth, last two thirds         {60 * slope(memory, 'minute'):+.2f} MiB an hour")
    print(f"                                {1000 * slope(memory, 'files'):+.2f} MiB for 1,000 files")
    over = "over" if grows_too_fast(memory, limit) else "not over"
    print(f"                                {over} the limit of {limit:g}, or of one step of {STEP:g} MiB")


def draw(folders: Sequence[Path], path: Path) -> None:
    """Draw the memory of soaks against time, from zero on: what is flat should look flat."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "segtrust"  # the same figure is the same file
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6.8, 3), layout="constrained")
    for folder, colour in zip(folders, ("#0072b2", "#d55e00", "#009e73"), strict=False):
        rows = read_table(folder / "memory.csv").rows
        minutes, mib = ([row[name] for row in rows] for name in ("minute", "mib"))
        axis.plot(minutes, mib, color=colour, label=folder.name)
    axis.set(xlabel="minutes", ylabel="memory (MiB)")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between files")
    parser.add_argument("--keep", type=int, help="files that stay when others are moved away; usually all")
    parser.add_argument("--limit", type=float, default=LIMIT, help="MiB of memory for 1,000 files")
    parser.add_argument("--out", type=Path, required=True, help="a new folder, or the figure")
    parser.add_argument("--draw", type=Path, nargs="+", help="folders of soaks that are over")
    given = parser.parse_args()
    if given.draw:
        draw(given.draw, given.out)
        return
    done = soak(given.out, given.minutes, given.every, given.keep)
    write_table(given.out / "memory.csv", Table.of(list(done.memory)))
    tell(done, given.limit)
    sys.exit(1 if any(done.wrong().values()) or grows_too_fast(done.memory, given.limit) else 0)


if __name__ == "__main__":
    main()
