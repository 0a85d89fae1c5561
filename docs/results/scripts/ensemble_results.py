"""SDC of a fused map against pairwise Dice between its members: the figures of docs/results/ensembles.md.

``python -m docs.results.scripts.ensemble_results compare FIRST MEMBER … --truth TRUTHS`` prints the table of
one ensemble, whose members are folders of maps. ``python -m docs.results.scripts.ensemble_results flips TASK
RUN WEIGHTS OUT`` makes an ensemble of one network: it sees each test image of a prepared run as it is and
mirrored along each axis and along both.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import segtrust as st
from segtrust.confidence import get_estimators
from segtrust.engine import ScoreJob
from segtrust.ensembles import Fusion
from segtrust.io import ReadOptions, find_cases

FLIPS = ((), (2,), (3,), (2, 3))
MEAN = "mean SDC of members"
SHOWN = {"sdc": "SDC of the fused map", "pairwise-dice": "pairwise Dice", MEAN: MEAN}


def rows_of(cases, fuse, estimators):
    """Score cases that have a truth which is not empty; give rows by case."""
    job = ScoreJob(tuple(get_estimators(estimators)), ReadOptions(mask="threshold", fuse=fuse))
    outcomes = [job(case) for case in cases]
    failed = [each.failure.reason for each in outcomes if each.failure]
    if failed:
        raise SystemExit(f"{len(failed)} failed: {failed[0]}")
    rows = [row for each in outcomes for row in each.rows if row["truth_ratio"] > 0]
    return {row["case"]: row for row in rows}


def compare(folders, truth):
    """Print the AURCs of both fusions, and the differences to the SDC of the fused map."""
    cases = find_cases(folders[0], truth=truth, members=folders[1:]).cases
    alone = [
        rows_of([replace(case, probabilities=case.maps[i], members=()) for case in cases], None, ["sdc"])
        for i in range(len(folders))
    ]
    dice = ", ".join(f"{np.mean([row['dice'] for row in rows.values()]):.3f}" for rows in alone)
    say(f"{len(alone[0])} cases, {len(folders)} members with a mean Dice of {dice}\n")
    say("| fusion | mean Dice | confidence | AURC | SDC of the fused map less this one | p |")
    say("|---|---|---|---|---|---|")
    for fusion in Fusion:
        rows = rows_of(cases, fusion, ["sdc", "pairwise-dice"])
        for name, row in rows.items():
            row[MEAN] = np.mean([each[name]["sdc"] for each in alone])
        tell(fusion, list(rows.values()))


def tell(fusion, rows):
    """Print the rows of one fusion."""
    loss = 1.0 - np.array([row["dice"] for row in rows])
    columns = {name: np.array([row[name] for row in rows]) for name in SHOWN}
    for name, label in SHOWN.items():
        found = st.bootstrap_interval(columns[name], loss)
        interval = f"{found.estimate:.4f} [{found.low:.3f}, {found.high:.3f}]"
        line = f"| {fusion} | {1 - loss.mean():.3f} | {label} | {interval} |"
        if name != "sdc":
            pair = st.compare_estimators(columns["sdc"], columns[name], loss)
            line += f" {pair.difference:+.4f} [{pair.low:+.3f}, {pair.high:+.3f}] | {pair.p_value:.3f} |"
        say(line if name != "sdc" else f"{line} | |")
    oracle = st.risk_coverage_curve(-loss, loss).aurc
    say(f"| {fusion} | {1 - loss.mean():.3f} | oracle | {oracle:.4f} | | |")


def say(line):
    """Print a line."""
    print(line)  # noqa: T201


def flips(task_name, run, weights, out):
    """Write the maps of each way to look at a test image, by set, and the truths."""
    from segtrust.paper.networks.registry import create_ensemble
    from segtrust.paper.tasks import get_task
    from segtrust.paper.tasks.mapping import map_cases
    from segtrust.paper.tasks.preparing import read_prepared

    task, cases = get_task(task_name), read_prepared(run).of("test")
    model = create_ensemble(task.network, [weights], **task.options)
    for number, axes in enumerate(FLIPS):
        seen = replace(task, normalise=lambda images, axes=axes: np.flip(task.normalise(images), axes))
        for mapped in map_cases(seen, model, cases, channels=model.channels):
            name = mapped.case.case.rsplit("/", 1)[-1]
            p = np.flip(mapped.probabilities, tuple(axis - 2 for axis in axes))
            save(out / mapped.case.set / f"member-{number}" / f"{name}.npy", np.ascontiguousarray(p))
            save(out / mapped.case.set / "truths" / f"{name}.npy", task.truth(mapped.labels))


def save(path, values):
    """Write an array into a folder that need not be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values)


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("compare")
    one.add_argument("folders", nargs="+", type=Path)
    one.add_argument("--truth", type=Path, required=True)
    other = commands.add_parser("flips")
    other.add_argument("task")
    for name in ("run", "weights", "out"):
        other.add_argument(name, type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        compare(given.folders, given.truth)
    else:
        flips(given.task, given.run, given.weights, given.out)


if __name__ == "__main__":
    main()
