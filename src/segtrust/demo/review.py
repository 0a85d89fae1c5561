"""The embedded cases as a run that can be reviewed: scored, judged, and with a policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from segtrust.confidence.registry import get_estimators
from segtrust.engine.calibration import Calibration, calibrate_table, save_policies
from segtrust.engine.judging import Judge
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.io.cases import DataSet
from segtrust.io.datasets import find_cases
from segtrust.io.search import Search
from segtrust.io.tables import Table, read_table
from segtrust.selective.targets import Target

__all__ = ["DATA", "PREDICTOR", "prepare_run"]

DATA = Path(__file__).parent / "data"
PREDICTOR = "the network of the embedded maps"
"""What its policy calls what made the maps."""
_FIRST = "ID"
_SETS = {_FIRST: "id.csv", "bright": "ood-bright.csv"}
_TARGET = Target(0.2, below_dice=0.85)
_ESTIMATORS = ("sdc", "idc", "amsp", "ane", "mmmc", "pla")


def prepare_run(folder: Path) -> Path:
    """Make a folder to be reviewed, and give its policy; of one that is there only the verdicts stay.

    The policy is certified on the cases in distribution, of which not all have maps here; those of the other
    set, which no promise is about, are what is new.
    """
    policy, judge = folder / "policy.json", Judge()
    job = ScoreJob(tuple(get_estimators(_ESTIMATORS)))
    run = ScoreRun(folder / "scores.csv", Engine(), resume=False)  # another release may have begun it
    score_cases(_both_sets(), job, run, finish=judge.judged, more=judge.about)
    known = _known_scores(read_table(run.out))
    how = Calibration("sdc", (_TARGET,), predictor=PREDICTOR)
    save_policies(policy, calibrate_table(known, how), known)
    return policy


def _both_sets() -> DataSet:
    """Give the embedded cases, each under the name of its set."""
    found = {name: find_cases([DATA / file], Search()).cases for name, file in _SETS.items()}
    return DataSet(tuple(replace(case, set=name) for name, cases in found.items() for case in cases))


def _known_scores(made: Table) -> Table:
    """Give the scores in distribution that come with the data, made as the others were."""
    scores = read_table(DATA / "scores.csv")
    rows = tuple(row for row in scores.rows if row["set"] == _FIRST)
    return replace(scores, rows=rows, about=made.about)
