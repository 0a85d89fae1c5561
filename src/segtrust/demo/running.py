"""The main job on the embedded cases, from maps to a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from segtrust.demo.nuclei import (
    ESTIMATORS,
    PREDICTOR,
    SCORES,
    SETS,
    Row,
    Triaged,
    prepare_run,
    promised,
    triage_new,
)
from segtrust.errors import ParameterError
from segtrust.evaluation import Evaluation
from segtrust.io import read_table
from segtrust.policy import Policy
from segtrust.report.evaluation import write_evaluation
from segtrust.report.html.page import write_report
from segtrust.report.runs import fresh_results, mark_running, open_run, write_run

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


def run_demo(folder: Path, advance: Callable[[int], object] = lambda done: None) -> Demo:
    """Score and judge the embedded cases, certify a threshold on some, decide on the others, and report.

    Parameters
    ----------
    folder
        For all that is written; one of an earlier demo, or new.
    advance
        Told of each case that is scored.
    """
    begin = time.perf_counter()
    _refuse_others_files(folder)
    open_run(folder, command=_COMMAND)
    mark_running(folder, command=_COMMAND)
    policy = prepare_run(folder, advance)
    rows = read_table(folder / SCORES).rows
    sets = {name: [row for row in rows if row["set"] == name] for name in SETS}
    how = Evaluation(ESTIMATORS)
    with fresh_results(folder):
        tables = write_evaluation(folder, sets, how)
        parameters = {"arguments": [_COMMAND], "seed": how.bootstrap.seed}
        write_run(folder, command=_COMMAND, parameters=parameters, seconds=time.perf_counter() - begin)
        page = write_report(folder, policy=policy, predictor=PREDICTOR)
    triaged = tuple(triage_new(folder, policy))
    return Demo(folder, len(rows), tuple(tables["areas"]), promised(policy), triaged, page)


def _refuse_others_files(folder: Path) -> None:
    """Refuse a folder with files that are not of a demo: somebody's own policy.json would be lost."""
    if folder.is_dir() and not (folder / "run.json").exists() and any(folder.iterdir()):
        raise ParameterError(
            f"{folder}: expected a folder that is new, empty or of an earlier demo, got one with other "
            "files. Choose another: --output."
        )
