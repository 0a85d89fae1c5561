"""The embedded cases as a run: scored, judged, decided by a policy, and what became of its promise.

Of the test cases in distribution every second one that has a map here is taken for new; the policy is
certified on all others. Those of the other set, which the network has never seen the like of, are new too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from segtrust.engine import ScoreTable, loss_of_row
from segtrust.io import Dataset, Table, read_table
from segtrust.policy import Policy
from segtrust.selective import DriftTest, Observed, Target
from segtrust.workflows import calibrate, find_cases, score_cases, triage

__all__ = [
    "DATA",
    "ESTIMATORS",
    "PREDICTOR",
    "SCORES",
    "SETS",
    "Row",
    "Triaged",
    "prepare_run",
    "promised",
    "triage_new",
]

DATA = Path(__file__).parent / "data"
PREDICTOR = "the network of the embedded maps"
"""What its policy calls what made the maps."""
SCORES = "scores.csv"
_COMMAND = "demo"
FIRST, BRIGHT = "ID", "bright"
SETS = {FIRST: "id.csv", BRIGHT: "ood-bright.csv"}
"""The set that is like what the network was trained on, and the one that is not."""
_TARGET = Target(0.2, below_dice=0.85)
ESTIMATORS = ("sdc", "idc", "amsp", "ane", "mmmc", "pla")
_NEW = slice(None, None, 2)

Row = dict[str, Any]


@dataclass(frozen=True)
class Triaged:
    """What the policy did to new cases of a set, beside the truth that it has not seen.

    Attributes
    ----------
    set
        Name of the set.
    cases, accepted
        How many there are, and how many go through.
    mean_dice
        Of those accepted.
    observed
        What those accepted have of the quantity that is limited.
    drift
        Whether the cases look like those that the policy was made with.
    """

    set: str
    cases: int
    accepted: int
    mean_dice: float
    observed: Observed
    drift: DriftTest


def prepare_run(folder: Path) -> Path:
    """Make a folder to be reported and reviewed, and return its policy; verdicts that are there stay."""
    # Never resumed: another release may have begun the run.
    table = score_cases(_both_sets(), ESTIMATORS, output=folder / SCORES, resume=False, command=(_COMMAND,))
    new = Table.of(_new_rows(table.rows, FIRST))
    policy = folder / "policy.json"
    calibrate(
        _known_scores(table),
        output=policy,
        target_risk=_TARGET.risk,
        below_dice=_TARGET.below_dice,
        loss_column="dice",
        model=PREDICTOR,
        reference=new,
    )
    return policy


def promised(policy: Path) -> Policy:
    """Give the policy of a prepared run as it stands for the embedded maps, which are of its own network."""
    return Policy.load(policy).for_predictor(PREDICTOR)


def triage_new(folder: Path, policy: Path) -> list[Triaged]:
    """Decide on the new cases of both sets, and compare with their truths.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     same, bright = triage_new(Path(folder), prepare_run(Path(folder)))
    >>> same.observed.is_kept, same.drift.alarm, bright.observed.is_kept, bright.drift.alarm
    (True, False, False, True)
    """
    table = ScoreTable.load(folder / SCORES)
    triaged = []
    for name in SETS:
        result = triage(replace(table, rows=tuple(_new_rows(table.rows, name))), policy, model=PREDICTOR)
        ((structure, used),) = result.table.policies.items()
        accepted = result.accepted.rows
        losses = [loss_of_row(row, "dice") for row in accepted]
        triaged.append(
            Triaged(
                name,
                len(result.decisions),
                len(accepted),
                sum(row["dice"] for row in accepted) / len(accepted),
                used.targets[0].observed(losses),
                result.drift[structure],
            )
        )
    return triaged


def _both_sets() -> Dataset:
    """Give the embedded cases, each under the name of its set."""
    found = {name: find_cases(DATA / file).cases for name, file in SETS.items()}
    return Dataset(tuple(replace(case, set=name) for name, cases in found.items() for case in cases))


def _new_rows(rows: Sequence[Row], name: str) -> list[Row]:
    """Give the rows of the cases that the policy is not made with."""
    of_set = [row for row in rows if row["set"] == name]
    return of_set[_NEW] if name == FIRST else of_set


def _known_scores(made: Table) -> Table:
    """Give the scores in distribution on which the policy is certified.

    Those of embedded maps are taken as they were made here: the maps have 8 bits, those behind the others 32.
    """
    scores = read_table(DATA / SCORES)
    here = {row["case"]: row for row in made.rows if row["set"] == FIRST}
    new = {row["case"] for row in _new_rows(made.rows, FIRST)}
    rows = tuple(
        here.get(row["case"], row) for row in scores.rows if row["set"] == FIRST and row["case"] not in new
    )
    return replace(scores, rows=rows, about=made.about)
