"""Double the cases, the voxels and the workers, and fit how time and memory grow.

``python -m tools.reliability.growth --out growth`` prints tables with fitted exponents, and writes growth.csv
and growth.svg. Each time is the shortest of several runs that take turns. What every run costs, however small
it is, is measured with the smallest there is, one case or a small map, and taken away before a power is
fitted to the rest.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.files import make_folder
from benchmarks.process import memory_of
from segtrust.io import Table, read_table, write_table
from tools.reliability.powers import LABELS, SHARED, Study, Values, draw, said_of, table_of

_PAUSE_S = 0.02
"""Between two looks at the memory of a command."""
_SMALLEST_MAP = 1 << 14
"""Voxels of a map that is nothing beside the others; still smaller ones are assessed in another way."""
_SCORE = """
import sys, time
from segtrust.cli import main
sys.argv = ["segtrust", *sys.argv[1:]]
begin = time.perf_counter()
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(time.perf_counter() - begin)
"""
_ASSESS = """
import sys, time
from pathlib import Path
import numpy as np, segtrust as st
warm, voxels, times = map(int, sys.argv[1:])
def seconds_of(p):
    begin = time.perf_counter()
    st.assess(p, estimators=["sdc", "idc", "amsp"])
    return time.perf_counter() - begin
rng = np.random.default_rng(0)
small = rng.random(warm, dtype=np.float32).reshape(64, -1)
for _ in range(times):
    seconds_of(small)
p = rng.random(voxels, dtype=np.float32).reshape(64, -1)
print(min(seconds_of(p) for _ in range(times)))
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:")))
"""
"""The first map of a process takes far longer than the next, so others of the same kind come before."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    voxels, cases, workers
        That are doubled.
    shared
        How many maps of which side workers share out, for each study of them.
    rounds
        Turns that are taken; memory takes one more.
    """

    voxels: tuple[int, ...] = tuple(1 << exponent for exponent in range(20, 28))
    cases: tuple[int, ...] = (500, 1000, 2000, 4000, 8000)
    workers: tuple[int, ...] = (1, 2, 4)
    shared: tuple[tuple[int, int], ...] = ((100, 2048), (1000, 256))
    rounds: int = 4


SMALL = Sizes((1 << 20, 1 << 21, 1 << 22), (10, 20), (1, 2), ((20, 256),), 1)


def assessed(voxels: int, *, times: int = 5) -> Values:
    """Assess a map in a process of its own that is warm; memory is that of the process, the map among it."""
    command = [sys.executable, "-c", _ASSESS, *map(str, (_SMALLEST_MAP, voxels, times))]
    seconds, mib = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:]
    return {"seconds": float(seconds), "mib": float(mib)}


def scored(*arguments: object, is_looked_at: bool = False) -> Values:
    """Run ``segtrust score`` in a session of its own; who looks at its memory takes time from it."""
    command = [sys.executable, "-c", _SCORE, "score", *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL, start_new_session=True)
        found = {"mib": _highest(process)} if is_looked_at else {}
        if process.wait():
            raise SystemExit(f"{' '.join(command[3:])}: expected exit code 0, got {process.returncode}.")
        said.seek(0)
        return found or {"seconds": float(said.read().split()[-1])}


def _highest(process: subprocess.Popen[Any]) -> float:
    """Give the most memory that a process and its children are seen to have together, until it ends."""
    mib = 0.0
    while process.poll() is None:
        mib = max(mib, memory_of(process.pid))
        time.sleep(_PAUSE_S)
    return mib


def least(tries: Sequence[Values]) -> Values:
    """Give the shortest time of several tries, and the least memory: the rest is the machine's."""
    return {name: min(each[name] for each in tries if name in each) for name in LABELS}


def in_turns(sizes: Sequence[int], run: Callable[[int, bool], Values], rounds: int) -> dict[int, Values]:
    """Measure each size several times, taking turns, so that a slow minute hits all; at last its memory."""
    tries: dict[int, list[Values]] = {size: [] for size in sizes}
    for at in range(rounds + 1):
        for size in sizes:
            print(f"round {at + 1} of {rounds + 1}: {size}", file=sys.stderr)
            tries[size].append(run(size, at == rounds))
    return {size: least(found) for size, found in tries.items()}


def grow_voxels(sizes: Sequence[int], rounds: int) -> Study:
    """Assess larger and larger maps, beside one that is nothing."""
    found = in_turns((_SMALLEST_MAP, *sizes), lambda size, _: assessed(size), rounds - 1)  # each gives both
    base = found.pop(_SMALLEST_MAP)
    return Study("voxels of a map", found, base)


def grow_cases(folder: Path, sizes: Sequence[int], rounds: int) -> Study:
    """Score folders of more and more small maps, beside one of a single map."""
    files = sorted(maps_in(folder / "maps", count=max(sizes), size=64).iterdir())

    def run(count: int, is_looked_at: bool) -> Values:
        with tempfile.TemporaryDirectory(dir=folder) as part:
            for path in files[:count]:
                (Path(part) / path.name).hardlink_to(path)
            return scored(part, "-o", folder / f"{time.time_ns()}.csv", is_looked_at=is_looked_at)

    found = in_turns((1, *sizes), run, rounds)
    base = found.pop(1)
    return Study("cases of a folder", found, base)


def grow_workers(folder: Path, workers: Sequence[int], shared: tuple[int, int], rounds: int) -> Study:
    """Score one folder with more and more processes, beside one of a single map with one."""
    count, side = shared
    single = maps_in(folder / f"single_{side}", count=1, size=side)
    many = copied(single, folder / f"many_{side}", count)

    def run(processes: int, is_looked_at: bool) -> Values:
        where, how = (many, processes) if processes else (single, 1)
        out = folder / f"{time.time_ns()}.csv"
        return scored(where, "-o", out, "--workers", how, is_looked_at=is_looked_at)

    found = in_turns((0, *workers), run, rounds)
    base = found.pop(0)
    return Study(f"{SHARED}, {count:,} maps of {side}×{side}", found, base)


def maps_in(folder: Path, *, count: int, size: int) -> Path:
    """Fill a new folder with packed maps."""
    folder.mkdir()
    make_folder(folder, count=count, size=size, packed=True)
    return folder


def copied(single: Path, folder: Path, count: int) -> Path:
    """Fill a new folder with the one map of another, under many names."""
    (path,) = single.iterdir()
    folder.mkdir()
    for number in range(count):
        (folder / f"case_{number:05d}{path.suffix}").hardlink_to(path)
    return folder


def rows_of(study: Study) -> list[dict[str, Any]]:
    """Give the measurements as rows of a table, the base with the size 0."""
    sizes = {0: study.base, **study.found}
    return [{"what": study.what, "cores": study.cores, "size": size, **each} for size, each in sizes.items()]


def studies_of(rows: Iterable[Mapping[str, Any]]) -> list[Study]:
    """Make again the studies that rows are of."""
    found: dict[tuple[str, int], dict[int, Values]] = {}
    for row in rows:
        values = {name: float(row[name]) for name in LABELS}
        found.setdefault((row["what"], int(row["cores"])), {})[int(row["size"])] = values
    return [Study(what, each, each.pop(0), cores) for (what, cores), each in found.items()]


def tell(study: Study) -> None:
    """Print a study, with the exponents."""
    print(f"\n{study.what}")
    print(f"  {'(smallest)':>12}   {study.base['seconds']:9.4f} s   {study.base['mib']:9.1f} MiB")
    for size, each in study.found.items():
        print(f"  {size:>12,d}   {each['seconds']:9.4f} s   {each['mib']:9.1f} MiB")
    for name, (label, _) in LABELS.items():
        print(f"  {label}: {said_of(study, name)}")


def measured(sizes: Sizes) -> list[Study]:
    """Make all studies."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            grow_voxels(sizes.voxels, sizes.rounds),
            grow_cases(folder, sizes.cases, sizes.rounds),
            *(grow_workers(folder, sizes.workers, shared, sizes.rounds) for shared in sizes.shared),
        ]


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the table and the figure")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--draw-only", action="store_true", help="draw and tell what was measured before")
    given = parser.parse_args()
    table = given.out / "growth.csv"
    if not given.draw_only:
        rows = [row for study in measured(SMALL if given.small else Sizes()) for row in rows_of(study)]
        write_table(table, Table.of(rows))
        print(f"load of the machine in the last 15 minutes: {os.getloadavg()[2]:.1f}")
    studies = studies_of(read_table(table).rows)
    draw(studies, given.out / "growth.svg")
    for study in studies:
        tell(study)
    print(f"\n{table_of(studies)}")


if __name__ == "__main__":
    main()
