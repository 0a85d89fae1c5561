"""Workers of a Dask cluster die, starve and dawdle: each case must be in the table once, as if they had not.

``python -m tools.reliability.cluster_faults --cases 2000 --out faults`` runs ``segtrust score --dask`` on a
cluster that it starts itself, once without a fault and then once for each kind of fault, and compares what
is left (`tools.reliability.without_times`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.files import make_folder
from segtrust.engine import read_log
from tools.reliability.clusters import Cluster, free_port
from tools.reliability.without_times import Content, contents, differences

__all__ = ["TRIALS", "Found", "Study", "Trial", "compare", "main"]

_LONGEST_S = 1200.0
"""After which a run that does not end is a fault of its own."""
_SIDE = 256
_LARGE_CASES = 8
_MEMORY_MB = 1000
"""Of a worker, which takes about 200 MB itself."""
_LARGE_SIDE = 10_600
"""Of a map of 450 MB, which fits into a worker, and not into half of one."""
_MEDIUM_SIDE, _TIGHT_MB = 4_180, 280
"""Of a map of 70 MB, and a worker that seems to have room for it, but for what it takes itself."""
_KILLED = -signal.SIGKILL


@dataclass
class Run:
    """``segtrust score`` on a cluster, which may be given again: in a folder, where it writes to ``out``."""

    maps: Path
    folder: Path
    address: str
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Give the command."""
        command = ("score", self.maps, "-o", "out/scores.csv", "--dask", self.address)
        with self.said_path.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "segtrust", *map(str, command)],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    @property
    def said_path(self) -> Path:
        """Where its errors are."""
        return self.folder / "stderr.txt"

    def logged(self) -> list[str]:
        """Return the cases that the log of the run has."""
        path = self.folder / "out/.scores.csv.log"
        return [outcome.case for outcome in read_log(path).outcomes] if path.exists() else []

    def lasts(self, seconds: float) -> bool:
        """Wait for so long, and tell whether it is still at work."""
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def reaches(self, cases: float) -> bool:
        """Wait until so many cases are done; tell whether it is still at work then."""
        while self.lasts(0.1):
            if len(self.logged()) >= cases:
                return True
        return False

    def end(self) -> int:
        """Wait for the end, and give the exit code."""
        try:
            return self.process.wait(timeout=_LONGEST_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@dataclass(frozen=True)
class Scene:
    """Where a fault happens: a cluster, a run that has begun on it, its cases, and the chance."""

    cluster: Cluster
    run: Run
    cases: int
    rng: np.random.Generator


def _starve(scene: Scene) -> int:
    """Leave all to the limits of memory."""
    scene.run.end()
    return scene.cluster.killed_for_memory()


def _kill_one_by_one(scene: Scene) -> int:
    """Kill a worker, any, every second and a half in the mean."""
    kills = 0
    while scene.run.lasts(scene.rng.exponential(1.5)):
        number = int(scene.rng.integers(len(scene.cluster.memory)))
        kills += scene.cluster.signal_worker(number, signal.SIGKILL)
        scene.cluster.mend()
    return kills


def _kill_all(scene: Scene) -> int:
    """Kill all workers when a third is done, and let them come back after ten seconds."""
    if not scene.run.reaches(scene.cases / 3):
        return 0
    kills = scene.cluster.kill_workers()
    scene.run.lasts(10.0)
    scene.cluster.mend()
    return kills


def _slow_down(scene: Scene) -> int:
    """Let a worker work a tenth of the time."""
    while scene.run.lasts(0.1):
        scene.cluster.signal_worker(0, signal.SIGSTOP)
        scene.run.lasts(0.9)
        scene.cluster.signal_worker(0, signal.SIGCONT)
    return 0


def _hang(scene: Scene) -> int:
    """Stop a worker when a third is done, for good: it does not die, and answers no more."""
    return int(scene.run.reaches(scene.cases / 3) and scene.cluster.signal_worker(0, signal.SIGSTOP))


def _kill_scheduler(scene: Scene) -> int:
    """Kill the scheduler when a third is done; the same command on a new one goes on."""
    if not scene.run.reaches(scene.cases / 3):
        return 0
    scene.cluster.kill_scheduler()
    code = scene.run.end()
    said = scene.run.said_path.read_text(encoding="utf-8")
    if code != 2 or "the scheduler is gone" not in said or said.count("\n") != 1:
        raise RuntimeError(f"exit code {code} instead of 2, or unclear: {said[-2000:]}")
    scene.cluster.kill_workers()
    scene.cluster.begin()
    scene.run.start()
    return 1


def _kill_client(scene: Scene) -> int:
    """Kill the command itself four times on its way, and give it again."""
    kills = 0
    for share in sorted(scene.rng.uniform(0.05, 0.95, 4)):
        if scene.run.reaches(share * scene.cases):
            scene.run.process.kill()
            kills += scene.run.end() == _KILLED
            scene.run.start()
    return kills


@dataclass(frozen=True)
class Trial:
    """A kind of fault.

    Attributes
    ----------
    name
        What happens.
    disturb
        Does it while the command runs, and gives how many times.
    side
        Of the larger ones among the maps; 0 where there are none.
    smallest_mb
        Memory of one of the workers.
    """

    name: str
    disturb: Callable[[Scene], int]
    side: int = 0
    smallest_mb: int = _MEMORY_MB


TRIALS = (
    Trial("workers killed one by one", _kill_one_by_one),
    Trial("all workers dead for a while", _kill_all),
    Trial("a worker with half the memory", _starve, _LARGE_SIDE, _MEMORY_MB // 2),
    Trial("a worker with too little memory", _starve, _MEDIUM_SIDE, _TIGHT_MB),
    Trial("a worker ten times slower", _slow_down),
    Trial("a worker that hangs", _hang),
    Trial("scheduler killed", _kill_scheduler),
    Trial("command killed", _kill_client),
)


@dataclass
class Found:
    """What came of a fault.

    Attributes
    ----------
    kills
        How many times it happened.
    cases, doubled, missing, different
        Of the table: cases that should be there, are there more than once are not
        there, or have other numbers than those of the run without a fault.
    faults
        What else was not as it should be.
    seconds, unbroken_s
        With the fault, and without.
    shared
        How many times a case was at a worker that died.
    """

    kills: int = 0
    cases: int = 0
    doubled: int = 0
    missing: int = 0
    different: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    unbroken_s: float = 0.0
    shared: int = 0

    @property
    def is_well(self) -> bool:
        """Whether the table is that of the run without a fault."""
        return not (self.doubled or self.missing or self.different or self.faults)

    def row(self, name: str) -> str:
        """Give a row of the printed table."""
        lost = self.seconds - self.unbroken_s
        counts = (self.kills, self.cases, self.doubled, self.missing, self.different, self.shared)
        each = f"{lost / self.kills:.1f}" if self.kills else "–"
        said = "; ".join(self.faults) or ("yes" if self.is_well else "NO")
        times = (f"{seconds:.1f}" for seconds in (self.unbroken_s, self.seconds, lost))
        cells = (name, *counts, *times, each, said)
        return f"| {' | '.join(map(str, cells))} |"


HEADS = (
    *("what happens", "times", "cases", "doubled", "missing", "different", "cases at workers that died"),
    *("unbroken, s", "seconds", "lost, s", "lost a time, s", "equal"),
)


@dataclass
class Study:
    """All trials on the same maps, in a folder that must not be there."""

    folder: Path
    cases: int
    workers: int = 3
    seed: int = 0
    _port: int = field(default_factory=free_port, init=False)
    _unbroken: dict[int, tuple[float, Content]] = field(default_factory=dict, init=False)

    def try_out(self, trial: Trial) -> Found:
        """Run the command with a fault, and compare what it leaves."""
        unbroken_s, expected = self.unbroken(trial.side)
        found = Found(cases=self.cases, unbroken_s=unbroken_s)
        compare(found, expected, self._run(trial, found))
        return found

    def unbroken(self, side: int) -> tuple[float, Content]:
        """Give the seconds of the run without a fault on workers that are alike, and what it left."""
        if side not in self._unbroken:
            found = Found()
            left = self._run(Trial(f"unbroken {side}", _starve, side), found)
            if found.faults or found.kills:
                raise RuntimeError(f"{found.kills} workers were killed. {'; '.join(found.faults)}")
            self._unbroken[side] = found.seconds, left
        return self._unbroken[side]

    def _run(self, trial: Trial, found: Found) -> Content:
        memory = [trial.smallest_mb, *[_MEMORY_MB] * (self.workers - 1)]
        maps = self._maps(trial.side)
        with Cluster(self.folder / trial.name.replace(" ", "-"), memory, self._port) as cluster:
            run = Run(maps, self.folder, cluster.address)
            begin = time.monotonic()
            run.start()
            found.kills = trial.disturb(Scene(cluster, run, self.cases, np.random.default_rng(self.seed)))
            code = run.end()
            found.seconds = time.monotonic() - begin
            found.shared = cluster.deaths_shared()
        said = run.said_path.read_text(encoding="utf-8", errors="replace")
        found.faults += [f"exit code {code}: {said[-300:]}"] if code or said else []
        left = contents(self.folder / "out")
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        return left

    def _maps(self, side: int) -> Path:
        """Write the maps once; larger ones are names of one file."""
        folder = self.folder / f"maps{side or ''}"
        if not folder.exists():
            folder.mkdir(parents=True)
            count = self.cases - _LARGE_CASES if side else self.cases
            make_folder(folder, count=count, size=_SIDE, packed=False)
            if side:
                _write_large(folder, side, apart=count // _LARGE_CASES)
        return folder


def _write_large(folder: Path, side: int, apart: int) -> None:
    """Write a map row by row, without having it all in memory, under names so far apart among the others."""
    paths = [folder / f"case_{number * apart:05d}_large.npy" for number in range(_LARGE_CASES)]
    p = np.lib.format.open_memmap(paths[0], mode="w+", dtype=np.float32, shape=(side, side))
    across = np.linspace(0.0, 1.0, side, dtype=np.float32)
    for y in range(side):
        p[y] = across * np.float32(y / side)
    p.flush()
    for path in paths[1:]:
        os.link(paths[0], path)


def _rows_of(content: Content) -> tuple[Counter[str], set[tuple[str, ...]]]:
    """Give how many rows each case has in a table, and all rows, without times."""
    heads, *rows = content.get("scores.csv") or [["case"]]
    at = heads.index("case")
    return Counter(row[at] for row in rows), {tuple(row) for row in rows}


def compare(found: Found, expected: Content, left: Content) -> None:
    """Add to what was found how what a run has left differs from what it should."""
    counts, rows = _rows_of(left)
    wanted, wanted_rows = _rows_of(expected)
    found.doubled += sum(count - 1 for count in counts.values())
    found.missing = len(wanted.keys() - counts.keys())
    found.different = len(rows - wanted_rows)
    found.faults += [f"{name} is another" for name in differences(expected, left)]
    if len(wanted) != found.cases:
        found.faults.append(f"the run without a fault has {len(wanted)} cases")


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="for data and results; must not be there")
    parser.add_argument("--cases", type=int, default=2000, help="maps (2000)")
    parser.add_argument("--workers", type=int, default=3, help="of the cluster (3)")
    parser.add_argument("--seed", type=int, default=0, help="of moments and victims (0)")
    parser.add_argument("--only", action="append", choices=[each.name for each in TRIALS], help="a fault")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all faults, print what came of it, and fail where something is not as it was."""
    asked = _parsed(arguments)
    asked.out.mkdir(parents=True)
    study = Study(asked.out.resolve(), asked.cases, asked.workers, asked.seed)
    rows, is_well = [], True
    for trial in TRIALS:
        if asked.only and trial.name not in asked.only:
            continue
        found = study.try_out(trial)
        rows.append(found.row(trial.name))
        is_well &= found.is_well
        sys.stderr.write(f"{rows[-1]}\n")
    sys.stdout.write("\n".join([f"| {' | '.join(HEADS)} |", "|" + "---|" * len(HEADS), *rows]) + "\n")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
