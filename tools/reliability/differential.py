"""Compare every estimator and curve with a slow reference, over as many random cases as asked for.

Cases are drawn by number: six of ten are maps, three are tables of confidences and losses, one is spoilt and
must be refused. The largest error of each quantity is kept, by type and by the way the map was summed.
Results do not depend on the number of workers; a run that was broken off goes on where it was.

    python -m tools.reliability.differential --cases 1000000 --seed 0 --workers 2 --out differential
    python -m tools.reliability.differential --seed 0 --only 123456
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tools.reliability.compared import check_map, check_table
from tools.reliability.limits import LIMITS, TOLERANCES, Limit
from tools.reliability.random_cases import draw_map, draw_table, rng_of
from tools.reliability.refused import check_refused_map, check_refused_table

__all__ = ["Worst", "check_case", "check_cases", "run"]

BLOCK = 1000
_KINDS = ("map",) * 6 + ("table",) * 3 + ("spoilt",)
_MOST_FAULTS = 20
_ROOT = Path(__file__).parents[2]

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Checked:
    """One quantity of one case.

    Attributes
    ----------
    quantity, dtype, path
        What it is, and of which kind of map; empty where there is no map.
    error
        How far it is off, see `tools.reliability.compared`.
    """

    quantity: str
    dtype: str
    path: str
    error: float

    @property
    def tolerance(self) -> float:
        """How far it may be off."""
        return TOLERANCES.get(self.quantity, 0.0)

    @property
    def is_fault(self) -> bool:
        """Whether it is farther off."""
        return not self.error <= self.tolerance


def check_case(seed: int, number: int) -> Iterator[Checked]:
    """Draw a case and compare it; an exception where none belongs is a fault too."""
    rng = rng_of(seed, number)
    kind = _KINDS[number % len(_KINDS)]
    spoilt_map = kind == "spoilt" and rng.random() < 0.7
    drawn = draw_map(rng) if kind == "map" or spoilt_map else draw_table(rng)
    check = {
        "map": check_map,
        "table": check_table,
        "spoilt": check_refused_map if spoilt_map else check_refused_table,
    }
    place = getattr(drawn, "dtype", ""), getattr(drawn, "path", "")
    try:
        for quantity, error in check[kind](drawn, rng):
            yield Checked(quantity, *place, float(error))
    except Exception as raised:  # noqa: BLE001 - the number of the case is to be told, and the run goes on
        yield Checked(f"raised {type(raised).__name__}: {raised}"[:200], *place, math.inf)


@dataclass
class Worst:
    """The largest errors of many cases.

    Attributes
    ----------
    errors
        By quantity, type and way: the largest error, the number of its case, and how many were compared.
    faults
        Number of a case, quantity and error, where it is too large; no more than a few are kept.
    cases, faulty
        How many cases were compared, and in how many comparisons the error was too large.
    """

    errors: dict[Key, tuple[float, int, int]] = field(default_factory=dict)
    faults: list[tuple[int, str, float]] = field(default_factory=list)
    cases: int = 0
    faulty: int = 0

    def add_case(self, number: int, checks: Iterable[Checked]) -> None:
        """Add all quantities of one case."""
        self.cases += 1
        for check in checks:
            self._add((check.quantity, check.dtype, check.path), (check.error, number, 1))
            if check.is_fault:
                self.faulty += 1
                self.faults.append((number, check.quantity, check.error))

    def _add(self, key: Key, new: tuple[float, int, int]) -> None:
        """Keep the larger error; of equal ones that of the earlier case, whoever came first."""
        old = self.errors.get(key, (-1.0, 0, 0))
        error, number = min((-old[0], old[1]), (-new[0], new[1]))
        self.errors[key] = (-error, number, old[2] + new[2])

    def add(self, other: Worst) -> None:
        """Add what another block of cases gave."""
        for key, value in other.errors.items():
            self._add(key, value)
        self.faults = sorted(self.faults + other.faults)[:_MOST_FAULTS]
        self.cases += other.cases
        self.faulty += other.faulty

    def to_json(self) -> dict[str, Any]:
        """Give it as what JSON can hold."""
        errors = [[*key, *value] for key, value in self.errors.items()]
        return {"errors": errors, "faults": self.faults, "cases": self.cases, "faulty": self.faulty}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Worst:
        """Make it again."""
        errors = {tuple(row[:3]): tuple(row[3:]) for row in saved["errors"]}
        return cls(errors, [tuple(each) for each in saved["faults"]], saved["cases"], saved["faulty"])


def check_cases(seed: int, first: int, last: int) -> Worst:
    """Compare the cases from one number up to another, all warnings being faults."""
    worst = Worst()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(first, last):
            worst.add_case(number, check_case(seed, number))
    worst.faults = worst.faults[:_MOST_FAULTS]
    return worst


def _digest() -> str:
    """Fingerprint of the library, of the references and of this tool: a run goes on with the same only."""
    digest = hashlib.sha256()
    sources = [*(_ROOT / "src/segtrust").rglob("*.py"), *(_ROOT / "tools/reliability").glob("*.py")]
    for path in sorted([*sources, _ROOT / "tests/references.py", _ROOT / "tests/selective/brute.py"]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Journal:
    """The blocks that are done, a line each; a line that is not whole does not count."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "blocks.jsonl"
        self._head = {"seed": seed, "block": BLOCK, "source": _digest()}

    def read(self) -> dict[int, Worst]:
        """Give the blocks by their first case."""
        if not self._path.exists():
            self._path.write_text(json.dumps(self._head) + "\n")
            return {}
        written = self._path.read_text()
        whole = written[: written.rfind("\n") + 1]
        if whole != written:  # or the next line would be joined to the broken one
            self._path.write_text(whole)
        head, *lines = whole.splitlines()
        if json.loads(head) != self._head:
            raise SystemExit(f"{self._path}: of another seed or source, {head}. Choose another folder.")
        return {int(block["first"]): Worst.from_json(block) for block in map(json.loads, lines)}

    def add(self, first: int, worst: Worst) -> None:
        """Write one block."""
        with self._path.open("a") as file:
            file.write(json.dumps({"first": first, **worst.to_json()}) + "\n")


def run(cases: int, seed: int, workers: int, out: Path) -> Worst:
    """Compare so many cases, going on with what the folder holds."""
    journal = Journal(out, seed)
    known = {first: block for first, block in journal.read().items() if first + BLOCK <= cases}
    left = [first for first in range(0, cases, BLOCK) if first not in known]
    total = Worst()
    for block in known.values():
        total.add(block)
    begin = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        calls = {pool.submit(check_cases, seed, at, min(at + BLOCK, cases)): at for at in left}
        for done, call in enumerate(as_completed(calls), start=1):
            block = call.result()
            total.add(block)
            if block.cases == BLOCK:
                journal.add(calls[call], block)
            if done % 10 == 0 or done == len(calls):
                _tell_progress(total, cases, time.monotonic() - begin, done / len(calls))
    return total


def _tell_progress(total: Worst, cases: int, seconds: float, share: float) -> None:
    left = seconds / share - seconds
    _say(
        f"{total.cases:,} of {cases:,} cases, {total.faulty} faults, about {left / 60:.0f} min left",
        sys.stderr,
    )


def _say(words: str, where: Any = None) -> None:
    (where or sys.stdout).write(f"{words}\n")
    (where or sys.stdout).flush()


def tell(worst: Worst) -> None:
    """Print the largest errors, a line for each limit, and where they were met."""
    _say(
        "| quantity | compared | largest error | allowed | of, type, way | case |\n|---|---|---|---|---|---|"
    )
    for limit in (*LIMITS, *_without_limit(worst)):
        own = {key: value for key, value in worst.errors.items() if key[0] in limit.quantities}
        if own:
            _say(_row(limit, own))


def _without_limit(worst: Worst) -> Iterator[Limit]:
    """Give rows for refusals, of which none may be missed, and for what nobody has foreseen."""
    others = sorted({key[0] for key in worst.errors} - set(TOLERANCES))
    refused = tuple(name for name in others if name.startswith("refused: "))
    yield Limit(f"refusals, of {len(refused)} kinds", 0.0, refused)
    yield from (Limit(name, 0.0, (name,)) for name in others if name not in refused)


def _row(limit: Limit, errors: dict[Key, tuple[float, int, int]]) -> str:
    key, (error, number, _) = max(errors.items(), key=lambda item: (item[1][0], -item[1][1]))
    compared = sum(value[2] for value in errors.values())
    where = ", ".join(filter(None, key))
    return f"| {limit.row} | {compared:,} | {error:.1e} | {limit.allowed:.0e} | {where} | {number} |"


def write_errors(worst: Worst, path: Path) -> None:
    """Write the largest error of each quantity, type and way."""
    rows = ["quantity,type,way,largest error,case,compared"]
    for (quantity, dtype, way), (error, number, compared) in sorted(worst.errors.items()):
        rows.append(f'"{quantity}",{dtype},{way},{error!r},{number},{compared}')
    path.write_text("\n".join(rows) + "\n")


def _tell_one(seed: int, number: int) -> int:
    faults = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for check in check_case(seed, number):
            faults += check.is_fault
            sign = "  <- too large" if check.is_fault else ""
            _say(f"{check.quantity:40s} {check.error:.2e} (allowed {check.tolerance:.0e}){sign}")
    return int(faults > 0)


def main() -> int:
    """Read the command line, and run; the exit code tells whether any error was too large."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="how many (10000)")
    parser.add_argument("--seed", type=int, default=0, help="of what happens by chance (0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--out", type=Path, default=Path("differential"), help="folder of the results")
    parser.add_argument("--only", type=int, help="number of the one case to repeat")
    asked = parser.parse_args()
    if asked.only is not None:
        return _tell_one(asked.seed, asked.only)
    os.environ["SEGTRUST_THREADS"] = "1"
    worst = run(asked.cases, asked.seed, asked.workers, asked.out)
    write_errors(worst, asked.out / "errors.csv")
    tell(worst)
    _say(f"\n{worst.cases:,} cases, {worst.faulty} errors too large")
    for number, quantity, error in worst.faults:
        _say(f"  {quantity}: {error:.2e}; repeat it: --seed {asked.seed} --only {number}")
    return int(worst.faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
