"""Files of this release, kept so that later ones must read them: ``python -m tools.release_fixtures``.

They go into ``tests/fixtures/release-<version>``, with the numbers that reading them must give. Those of a
release that is out are never made anew.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import segtrust as st
from tools.reliability.small_sets import write_breast_images, write_maps

__all__ = ["WEIGHT", "folder_of", "main", "opened_training", "tiny_task"]

WEIGHT = 0.01
"""Value of all weights of the checkpoints, which so take kilobytes instead of megabytes."""
_CASES = 60
_WORK = Path(tempfile.gettempdir()) / "segtrust-release"
"""The files say from where they were made: a place that tells nothing of a machine."""


def folder_of(version: str) -> Path:
    """Give the folder of a release."""
    return Path(__file__).parents[1] / "tests" / "fixtures" / f"release-{version}"


def _segtrust(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "segtrust", *arguments], cwd=_WORK, check=True, capture_output=True)


def _write_tables() -> None:
    """Write a table in each format, a folder of an evaluation, and a scaling of maps."""
    write_maps(_WORK / "set", cases=_CASES, side=24)
    st.TemperatureScaling(1.25).save(_WORK / "scaling.json")
    for ending in ("csv", "json", "parquet"):
        named = (
            "-o",
            f"scores.{ending}",
            "--estimators",
            "sdc,idc,amsp,pla",
            "--calibrate-maps",
            "scaling.json",
        )
        _segtrust("score", "set/predictions", "--truth", "set/masks", *named)
    _segtrust("evaluate", "scores.csv", "-o", "evaluation", "--resamples", "100")


def _write_policies() -> None:
    """Write a policy, its reference, and policies of two structures."""
    from segtrust.io import read_table
    from segtrust.policy import Policy, StructurePolicies

    promised = ("--target-risk", "0.45", "--below-dice", "0.1", "--start-coverage", "0.9")
    _segtrust("calibrate", "scores.csv", "-o", "policy.json", *promised)
    policy = Policy.load(_WORK / "policy.json")
    both = {name: replace(policy, structure=name) for name in ("cup", "disc")}
    StructurePolicies(both, ["cup"]).save(_WORK / "structures.json")
    table = read_table(_WORK / "scores.csv")
    watch = st.ExchangeabilityMartingale(table.column("sdc")[:40], alpha=0.05)
    watch.extend(table.column("sdc")[40:])
    watch.save(_WORK / "martingale.json")


def _write_verdicts() -> None:
    """Write a log with two verdicts, one of them taken back."""
    from segtrust.review.entries import Seen, Verdict
    from segtrust.review.store import Store

    store = Store.open(_WORK / "verdicts.sqlite", "scores.csv")
    seen = Seen("f" * 64, "crc32:0123abcd", 0.75, "defer")
    store.add(("", "case_000", "foreground"), Verdict.ACCEPT, seen, comment="sharp", reviewer="ann")
    given = store.add(("", "case_001", "foreground"), Verdict.REJECT, seen, comment="", reviewer="bo")
    store.undo(given.id, "bo")
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def tiny_task() -> Any:
    """Give the task of the checkpoints: that of breast ultrasound, very small."""
    from segtrust.paper.tasks import Recipe, get_task

    recipe = Recipe(learning_rate=1e-3, weight_decay=1e-4, epochs=2, batch=3)
    split = {"train": 3, "val": 2, "test": 1}
    return replace(get_task("breast-cancer"), size=(32, 32), recipes={"tiny": recipe}, split=split)


def opened_training(folder: Path, data: Path, until: int) -> Any:
    """Give the training of the checkpoints in a folder, up to an epoch."""
    from segtrust.paper.tasks.checking import find_samples
    from segtrust.paper.tasks.preparing import prepare
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    task = tiny_task()
    write_breast_images(data, benign=4, malignant=2, side=32)
    prepared = prepare(task, find_samples(task, data), folder)
    options = TrainingOptions(device="cpu", threads=1, until=until)
    return Trainer(task, task.recipe(), prepared, folder / "training", options)


def _even(values: Any) -> Any:
    """Give all that a checkpoint holds, with the same value for all weights."""
    import torch

    if isinstance(values, dict):
        return {name: _even(each) for name, each in values.items()}
    if isinstance(values, list):
        return [_even(each) for each in values]
    is_weight = isinstance(values, torch.Tensor) and values.is_floating_point() and values.ndim > 0
    return torch.full_like(values, WEIGHT) if is_weight else values


def _write_checkpoints() -> None:
    """Write what a training goes on from, and the weights of its best epoch.

    What tells the source of functions is left away: a later release may write them otherwise.
    """
    import torch

    opened_training(_WORK / "run", _WORK / "busi", until=1).run()
    for name in ("last.pt", "best.pt"):
        path = _WORK / "run" / "training" / name
        saved = _even(torch.load(path, weights_only=True))
        for each in ("digest of normalise", "digest of target"):
            saved.get("made_with", {}).pop(each, None)
        torch.save(saved, path)
        (_WORK / f"{name}.xz").write_bytes(lzma.compress(path.read_bytes()))


def _numbers() -> dict[str, Any]:
    """Give the numbers that reading the files must give."""
    from segtrust.io import read_table
    from segtrust.policy import Policy
    from segtrust.review.store import Store

    table, policy = read_table(_WORK / "scores.csv"), Policy.load(_WORK / "policy.json")
    watch = st.ExchangeabilityMartingale.load(_WORK / "martingale.json")
    state = asdict(watch.state)
    (_WORK / "again" / "training").mkdir(parents=True)
    shutil.copy(_WORK / "run" / "training" / "last.pt", _WORK / "again" / "training" / "last.pt")
    goes_on = opened_training(_WORK / "again", _WORK / "busi", until=2)
    store = Store.open(_WORK / "verdicts.sqlite", "scores.csv")
    return {
        "cases": len(table.rows),
        "sums": {
            name: float(np.sum(table.column(name))) for name in ("sdc", "idc", "amsp", "pla", "dice", "k")
        },
        "threshold": policy.threshold,
        "accepted": sum(str(policy.decide(value)) == "accept" for value in table.column("sdc")),
        "scaled": st.TemperatureScaling(1.25).apply(np.array([0.1, 0.5, 0.9])).tolist(),
        "martingale": state,
        "after one more": asdict(watch.update(0.5)),
        "verdicts": [
            [each.id, each.case, each.verdict, each.reviewer, each.undoes] for each in store.entries()
        ],
        "losses": [row["loss"] for row in goes_on.run()],
    }


_KEPT = (
    *("scores.csv", "scores.csv.about.json", "scores.json", "scores.parquet"),
    *("policy.json", "policy.reference.json", "structures.json", "scaling.json", "martingale.json"),
    *("verdicts.sqlite", "last.pt.xz", "best.pt.xz"),
)


def main() -> int:
    """Make the files anew, and print how large they are."""
    shutil.rmtree(_WORK, ignore_errors=True)
    _WORK.mkdir()
    os.chdir(_WORK)
    for step in (_write_tables, _write_policies, _write_verdicts, _write_checkpoints):
        step()
    out = folder_of(st.__version__)
    out.mkdir(parents=True, exist_ok=True)
    for name in _KEPT:
        shutil.copy(_WORK / name, out / name)
    shutil.copy(_WORK / "evaluation" / "run.json", out / "run.json")
    (out / "numbers.json").write_text(json.dumps(_numbers(), indent=1) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in out.iterdir())
    sys.stdout.write(f"{out.name}: {len(list(out.iterdir()))} files, {size / 1000:.0f} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
