"""Tuning curves of the sets of an evaluation: each is split by itself, as in section 7.4 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from segtrust.confidence import Estimators
from segtrust.evaluation.file_cases import FileCase
from segtrust.evaluation.tables import ALL_STRUCTURES, EvaluatedSet
from segtrust.evaluation.tuning import TuningOptions, summarise_tuning, tuning_curve, tuning_sizes
from segtrust.io import CaseFiles, ReadOptions

Row = dict[str, Any]
SHARES = (0.1, 0.5)
"""Shares of a set to tune on that the paper's tables show."""
_FEWEST = 4


@dataclass(frozen=True)
class TuningPlan:
    """How often and with what sets are split.

    Attributes
    ----------
    estimators
        Names, or estimators with settings of their own.
    shares
        Of the cases to tune on, beside the sizes of `segtrust.evaluation.tuning_sizes`.
    repeats, seed
        Splits for each size, and the seed of the first.
    """

    estimators: Estimators = ("sdc", "sdc-tuned", "pla-tuned", "aef", "aef-sdc")
    shares: tuple[float, ...] = SHARES
    repeats: int = 50
    seed: int = 0

    def sizes(self, n: int) -> list[int]:
        """Give the sizes for so many cases, those of the shares among them."""
        exact = [count_of(share, n) for share in self.shares]
        return sorted({*tuning_sizes(n), *(size for size in exact if 1 <= size <= n - 2)})


def count_of(share: float, n: int) -> int:
    """Give a share of so many cases, rounded down.

    Examples
    --------
    >>> count_of(0.1, 162), count_of(0.5, 25)
    (16, 12)
    """
    return int(share * n + 1e-9)


@dataclass(frozen=True)
class TunedSets:
    """Where parts are kept, and how the work is done.

    Attributes
    ----------
    folder
        For finished parts.
    workers, advance
        As in `segtrust.evaluation.TuningOptions`.
    """

    folder: Path | None = None
    workers: int = 1
    advance: Callable[[int], object] = field(default=lambda done: None)


def cases_of_set(
    found: EvaluatedSet, files: Mapping[str, CaseFiles], options: ReadOptions, recalibration: Any = None
) -> list[FileCase]:
    """Give the cases of a set that count, to be loaded one at a time."""
    return [FileCase(files[row["case"]], options, found.structure, recalibration) for row in found.rows]


def tune_sets(
    sets: Sequence[tuple[EvaluatedSet, Sequence[FileCase]]],
    targets: Mapping[str, float],
    plan: TuningPlan,
    how: TunedSets,
) -> list[Row]:
    """Split each set again and again; fit on one part, and judge on the other.

    Parameters
    ----------
    sets
        With their cases. Sets of fewer than four cases are left out, and means over structures.
    targets
        Risk at which the coverage is read off, by structure.
    plan
        What is fitted.
    how
        Where parts are kept, and how the work is done.

    Returns
    -------
    list of dict
        Rows of `segtrust.evaluation.tuning_curve` with ``set``, ``structure`` and ``cases``, and with
        ``share``, which is that of the plan where a size is one of its shares.
    """
    return [
        row
        for number, (found, cases) in enumerate(sets)
        if found.structure != ALL_STRUCTURES and len(cases) >= _FEWEST
        for row in _tuned(found, cases, targets.get(found.structure), plan, _numbered(how, number))
    ]


def _numbered(how: TunedSets, number: int) -> TunedSets:
    return how if how.folder is None else replace(how, folder=how.folder / f"set-{number}")


def _tuned(
    found: EvaluatedSet, cases: Sequence[FileCase], target: float | None, plan: TuningPlan, how: TunedSets
) -> list[Row]:
    from segtrust import __version__

    options = TuningOptions(
        target_risk=target,
        folder=how.folder,
        about={"segtrust": __version__, "scikit-learn": version("scikit-learn")},
        workers=how.workers,
        advance=how.advance,
    )
    n = len(cases)
    sizes = plan.sizes(n)
    rows = tuning_curve(cases, plan.estimators, sizes, repeats=plan.repeats, seed=plan.seed, options=options)
    shares = {count_of(share, n): share for share in plan.shares}
    about = {"set": found.name, "structure": found.structure, "cases": n}
    return [{**about, **row, **about, "share": shares.get(row["size"])} for row in rows]


def summarise_sets(rows: Sequence[Row]) -> list[Row]:
    """Bring the splits together, see `segtrust.evaluation.summarise_tuning`."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["structure"]), []).append(row)
    return [
        {**about, **row, "share": shares[row["size"]]}
        for (name, structure), group in groups.items()
        for about in [{"set": name, "structure": structure, "cases": group[0]["cases"]}]
        for shares in [{row["size"]: row["share"] for row in group}]
        for row in summarise_tuning(group)
    ]
