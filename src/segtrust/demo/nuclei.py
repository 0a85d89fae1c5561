"""The embedded cases as a run: scored, judged, decided by a policy, and what became of its promise.

Of the test cases in distribution every second one that has a map here is taken for new; the policy is
certified on all others. Those of the other set, which the network has never seen the like of, are new too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from segtrust.confidence import get_estimators
from segtrust.engine import (
    Calibration,
    LossSource,
    ScoreJob,
    ScoreRun,
    calibrate_table,
    check_drift,
    decide_rows,
    load_policies,
    make_executor,
    read_reference,
    reference_path,
    save_policies,
    score_cases,
)
from segtrust.io import FOREGROUND, Dataset, Table, find_cases, read_table
from segtrust.policy import Decision, Policy
from segtrust.selective import DriftTest, Observed, Target

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


def prepare_run(folder: Path, advance: Callable[[int], object] = lambda done: None) -> Path:
    """Make a folder to be reported and reviewed, and give its policy; of one that is there verdicts stay."""
    policy, judge = folder / "policy.json", LossSource()
    job = ScoreJob(tuple(get_estimators(ESTIMATORS)))
    # Never goes on with what is there: another release may have begun it.
    run = ScoreRun(folder / SCORES, make_executor(), resume=False, advance=advance, command=("demo",))
    score_cases(_both_sets(), job, run, finish=judge.add_to, more=judge.about)
    made = read_table(run.out)
    new = [row["sdc"] for row in _new_rows(made.rows, FIRST)]
    known = _known_scores(made)
    how = Calibration("sdc", (_TARGET,), predictor=PREDICTOR, reference={FOREGROUND: new})
    save_policies(policy, calibrate_table(known, how), known)
    return policy


def promised(policy: Path) -> Policy:
    """Give the policy of a prepared run as it stands for the embedded maps, which are of its own network."""
    (found,) = load_policies(policy).values()
    return found.for_predictor(PREDICTOR)


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
    rows = read_table(folder / SCORES).rows
    return [_triaged(name, _new_rows(rows, name), policy) for name in SETS]


def _triaged(name: str, rows: Sequence[Row], path: Path) -> Triaged:
    policies = load_policies(path)
    ((structure, policy),) = policies.items()
    decided = decide_rows(policies)(rows)
    accepted = [row for row in decided if row["decision"] == Decision.ACCEPT]
    drift = check_drift(rows, policies, read_reference(reference_path(path), policies))
    return Triaged(
        name,
        len(rows),
        len(accepted),
        sum(row["dice"] for row in accepted) / len(accepted),
        policy.targets[0].observed([row["loss"] for row in accepted]),
        drift[structure],
    )


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
