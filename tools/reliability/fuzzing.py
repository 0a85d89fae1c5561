"""Feed every reader with files that somebody has tampered with, for a bounded time, and tell what came of it.

No reader may crash, hang, take more memory than a case may, or end in an error that is not segtrust's own;
and what it says must name the file, on one line. Where atheris is installed, coverage leads; elsewhere, or
with ``--blind``, real files are changed at random in the same ways.

    python -m tools.reliability.fuzzing --seconds 120
    python -m tools.reliability.fuzzing tiff zarr --seconds 30 --keep tests/fixtures/fuzz

Each finding is confirmed by a process that nothing else was done in; ``--keep`` writes the confirmed ones
down as files, for the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tools.reliability.fuzz.bundles import Bundle, lay_out, pack, unpack
from tools.reliability.fuzz.checks import Cost
from tools.reliability.fuzz.mutations import mutated
from tools.reliability.fuzz.seeds import SEEDS
from tools.reliability.fuzz.served import Served, environment

__all__ = ["COLUMNS", "Fuzzed", "fuzz"]

COLUMNS = ("reader", "inputs", "seconds", "a second", "edges", "slowest, s", "most memory, MiB", "findings")
"""Of the table that is printed."""
_ROOT = Path(__file__).parents[2]
_DEAD = ("crash-", "timeout-", "oom-", "leak-")
"""How atheris calls what has ended its process."""
_EXECUTED = re.compile(r"^(?:stat::number_of_executed_units: +|#)(\d+)", re.MULTILINE)
_DONE = re.compile(r"Done \d+ runs in (\d+) second")
_COVERED = re.compile(r"cov: (\d+) ")
_LEAST_S = 5
"""Time that is worth another process."""


@dataclass
class Fuzzed:
    """What came of a reader.

    Attributes
    ----------
    reader
        Its name.
    inputs, seconds
        How many were read, in which time.
    edges
        Of the counted code that were passed; 0 where nothing was counted.
    most
        Time of a core and memory that one input took at most.
    findings
        By what was found, the smallest input that shows it.
    unconfirmed
        What a process of its own did not show.
    """

    reader: str
    inputs: int = 0
    seconds: float = 0.0
    edges: int = 0
    most: Cost = field(default_factory=Cost)
    findings: dict[str, Bundle] = field(default_factory=dict)
    unconfirmed: list[str] = field(default_factory=list)

    def row(self) -> str:
        """Give a row of the table."""
        rate = self.inputs / self.seconds if self.seconds else 0.0
        edges = f"{self.edges:,}" if self.edges else "–"
        took = f"{self.most.seconds:.2g} | {self.most.mebibytes:.0f}"
        counts = f"{self.inputs:,} | {self.seconds:.0f} | {rate:.0f} | {edges}"
        return f"| {self.reader} | {counts} | {took} | {len(self.findings)} |"


def fuzz(reader: str, seconds: float, seed: int, *, guided: bool) -> Fuzzed:
    """Fuzz a reader for so long, and confirm what is found."""
    found = Fuzzed(reader)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, Served([reader]) as served:
        candidates = (_guided if guided else _blind)(found, seconds, seed, Path(folder), served)
        for bundle in list(candidates):
            _confirm(found, bundle, Path(folder) / "confirmed", served)
        found.most = served.most.or_more(_noted(Path(folder) / "cost.json"))
    return found


def _noted(path: Path) -> Cost:
    """Give what processes that are led by coverage have noted; nothing where there were none."""
    return Cost(**json.loads(path.read_text())) if path.exists() else Cost()


def _confirm(found: Fuzzed, bundle: Bundle, folder: Path, served: Served) -> None:
    verdict = served.judged(found.reader, lay_out(bundle, folder))
    what = f"{verdict.kind}: {verdict.what}"
    if not verdict.is_fault(found.reader):
        found.unconfirmed.append(what)
    elif what not in found.findings or _size(bundle) < _size(found.findings[what]):
        found.findings[what] = bundle


def _size(bundle: Bundle) -> int:
    return sum(map(len, bundle.values()))


def _guided(found: Fuzzed, seconds: float, seed: int, folder: Path, _: Served) -> Iterator[Bundle]:
    """Let atheris lead; where an input has ended its process, begin another for the time that is left."""
    begin = time.monotonic()
    while (left := seconds - (time.monotonic() - begin)) > _LEAST_S:
        told = _one_process(found, left, seed, folder)
        seed += 1
        for path in sorted((folder / "findings").glob("*")):
            if path.name.startswith(_DEAD) and not path.name.endswith(".seen"):
                _tell(f"{found.reader}: {path.name.partition('-')[0]}")
                bundle = unpack(path.read_bytes())
                path.rename(path.with_suffix(".seen"))
                if bundle is not None:
                    yield bundle
        if told is None:
            raise RuntimeError(f"{found.reader}: the fuzzer did not begin.")
    kept = [path for path in (folder / "findings").glob("*") if path.suffix not in (".txt", ".seen")]
    yield from filter(None, (unpack(path.read_bytes()) for path in kept))


def _one_process(found: Fuzzed, seconds: float, seed: int, folder: Path) -> str | None:
    module = "tools.reliability.fuzz.guided"
    command = [sys.executable, "-m", module, found.reader, str(int(seconds)), str(seed), str(folder)]
    begin = time.monotonic()
    done = subprocess.run(
        command, env=environment(), cwd=_ROOT, capture_output=True, check=False, timeout=seconds + 300
    )
    told = done.stderr.decode("utf-8", "replace")
    found.inputs += max(map(int, _EXECUTED.findall(told)), default=0)  # 0 where it has crashed at once
    fuzzed = _DONE.search(told)  # without the time in which all is imported
    found.seconds += float(fuzzed[1]) if fuzzed else time.monotonic() - begin
    found.edges = max([found.edges, *map(int, _COVERED.findall(told))])
    if "INITED" not in told and not _EXECUTED.search(told):
        _tell(told[-2000:])
        return None
    return told


def _blind(found: Fuzzed, seconds: float, seed: int, folder: Path, served: Served) -> Iterator[Bundle]:
    """Change real files at random, each in a way of its own."""
    chance = random.Random(seed)  # nosec B311  # to be repeated, not to be secret
    (folder / "made").mkdir()
    seeds = SEEDS[found.reader](folder / "made")
    for bundle in seeds:  # the time of the first start is no time of the reader
        served.judged(found.reader, lay_out(bundle, folder / "input"))
    begin, seen = time.monotonic(), set()
    while time.monotonic() - begin < seconds:
        bundle = mutated(chance.choice(seeds), chance, chance.choice(seeds))
        verdict = served.judged(found.reader, lay_out(bundle, folder / "input"))
        found.inputs += 1
        if verdict.is_fault(found.reader) and verdict not in seen:
            seen.add(verdict)
            yield bundle
    found.seconds = time.monotonic() - begin


def _keep(found: Fuzzed, folder: Path) -> None:
    """Write findings down, each in a folder of its own."""
    for what, bundle in found.findings.items():
        kind = what.partition(":")[0]
        seen = (
            pack(bundle) if kind in ("crash", "hang") else what.encode()
        )  # where nothing else tells them apart
        name = hashlib.sha256(seen).hexdigest()[:8]
        place = folder / found.reader / f"{kind}-{name}"
        lay_out(bundle, place)
        if len(bundle) > 1:
            (place / "main").write_text(next(iter(bundle)) + "\n")


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(SEEDS)}; all of them")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each reader (20)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens by chance (1)")
    parser.add_argument("--blind", action="store_true", help="without coverage, also where atheris is there")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where findings are written as files")
    found = parser.parse_args()
    if unknown := set(found.readers) - set(SEEDS):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SEEDS)}")
    return found


def main() -> int:
    """Fuzz, and print a table; the exit code tells whether anything was found."""
    asked = _arguments()
    guided = not asked.blind and find_spec("atheris") is not None
    _tell("led by coverage" if guided else "without coverage")
    _say(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    everything = []
    for reader in asked.readers or SEEDS:
        found = fuzz(reader, asked.seconds, asked.seed, guided=guided)
        everything.append(found)
        _say(found.row())
        for what in found.findings:
            _tell(f"    {what}")
        if found.unconfirmed:
            _tell(f"    not shown again by a process of its own: {len(found.unconfirmed)}")
        if asked.keep is not None:
            _keep(found, asked.keep)
    return int(any(found.findings for found in everything))


if __name__ == "__main__":
    sys.exit(main())
