"""The main job on the embedded cases, from maps to a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from segtrust.demo.nuclei import (
    ESTIMATORS,
    PREDICTOR,
    SCORES,
    Row,
    Triaged,
    prepare_run,
    promised,
    triage_new,
)
from segtrust.errors import ParameterError
from segtrust.policy import Policy
from segtrust.report.runs import mark_running, open_run
from segtrust.workflows import evaluate

__all__ = ["Demo", "run_demo"]

_COMMAND = "demo"


@dataclass(frozen=True)
class Demo:
    """What came of the embedded cases.

    Attributes
    ----------
    folder
        Scores, tables, figures, policy and report.
    cases
        How many were scored, of both sets.
    areas
        How well each confidence ranks the errors of each set, with intervals.
    policy
        What is promised.
    triaged
        What became of the promise on new cases of each set.
    report
        A page for a browser.
    """

    folder: Path
    cases: int
    areas: tuple[Row, ...]
    policy: Policy
    triaged: tuple[Triaged, ...]
    report: Path


def run_demo(folder: Path) -> Demo:
    """Score and evaluate the embedded cases, certify a threshold on some, decide on the others, and report.

    Parameters
    ----------
    folder
        For all that is written; one of an earlier demo, or new.
    """
    _refuse_others_files(folder)
    open_run(folder, command=_COMMAND)
    mark_running(folder, command=_COMMAND)
    policy = prepare_run(folder)
    evaluation = evaluate(folder / SCORES, estimators=ESTIMATORS, command=(_COMMAND,))
    page = evaluation.report(folder, policy=policy, model=PREDICTOR, command=_COMMAND)
    triaged = tuple(triage_new(folder, policy))
    cases = len(evaluation.scores.rows)
    return Demo(folder, cases, tuple(evaluation.areas.rows), promised(policy), triaged, page)


def _refuse_others_files(folder: Path) -> None:
    """Refuse a folder with files that are not of a demo: somebody's own policy.json would be lost."""
    if folder.is_dir() and not (folder / "run.json").exists() and any(folder.iterdir()):
        raise ParameterError(
            f"{folder}: expected a folder that is new, empty or of an earlier demo, got one with other "
            "files. Choose another: --output."
        )
