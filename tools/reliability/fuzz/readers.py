"""Who reads: each reader with all that segtrust does with a file of its kind, up to a score."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.calibration import Scaling
from segtrust.confidence import get_estimators
from segtrust.engine import (
    ScoreJob,
    check_reading,
    decide_rows,
    load_policies,
    log_beside,
    read_unfinished_run,
)
from segtrust.engine.losses import read_losses
from segtrust.engine.run_log import RunLog, mark_of
from segtrust.errors import SegtrustError
from segtrust.io import (
    ArrayRef,
    CaseFiles,
    ModelChoice,
    PredictionFolder,
    ReadOptions,
    Volume,
    find_cases,
    memory_of,
    open_volume,
    read_manifest,
    read_picture,
    read_table,
)
from segtrust.io.formats._common import TRUTHS
from segtrust.io.formats.pickle import read_plain_pickle
from segtrust.io.structures import read_label_names, read_labels_of_dataset
from segtrust.io.volume import open_labels
from segtrust.kernels import is_chunked, tiles_of
from segtrust.selective import ExchangeabilityMartingale

__all__ = ["READ", "Unforeseen"]

_TILES = 2
"""Pieces of a large array that are read by the reader itself; scoring reads them all."""


class Unforeseen(Exception):  # noqa: N818 - it is what the engine tells, not an error of this module
    """The engine met an error that nobody had foreseen, and told it as the failure of a case."""


def read_map(path: Path) -> None:
    """Read a map as scoring does, whole, by channel and as labels; then score it."""
    place = ArrayRef(path)
    memory_of(CaseFiles("case", place))
    told = _first_refusal(
        lambda: _read_twice(open_volume(place)),
        lambda: _pixels(open_labels(place, TRUTHS).read()),
        lambda: [_scored(each) for each in find_cases([path]).cases[:1]],
    )
    read_label_names(path)
    _scored(CaseFiles("case", place, mask=place, truth=place))
    if told is not None:
        raise told


def _read_twice(volume: Volume) -> None:
    """Read an array whole, and its first channel where it may have any."""
    _pixels(volume.read())
    if volume.has_channels is not False and len(volume.shape) > 2 and volume.shape[0]:
        _pixels(volume.read(0))


def _first_refusal(*calls: Callable[[], Any]) -> SegtrustError | None:
    """Call all; give the first refusal, so that one does not hide what comes after it."""
    first = None
    for call in calls:
        try:
            call()
        except SegtrustError as error:
            first = first or error
    return first


def _pixels(values: Any) -> None:
    """Read pieces of an array that is read as it is needed."""
    if is_chunked(values):
        for tile in itertools.islice(tiles_of(values), _TILES):
            values[tile]


def _scored(case: CaseFiles) -> None:
    """Score a case, all structures; the engine tells everything as a failure, also what is none of it."""
    outcome = ScoreJob(tuple(get_estimators(["sdc"])), ReadOptions())(case)
    failure = outcome.failure
    if failure is not None and failure.kind == "MemoryError":
        raise MemoryError(failure.reason)
    if failure is not None and "unexpected: " in failure.reason:
        raise Unforeseen(f"{failure.kind}: {failure.reason}")


def read_policy(path: Path) -> None:
    """Read policies with the reference beside them, and decide by them."""
    policies = load_policies(path)
    check_reading(policies, {"threshold": 0.5})
    names = [name or "foreground" for name in policies]
    rows = [{"case": "a", "structure": name, "sdc": 0.5, "k": 3, "mask": "threshold"} for name in names]
    decide_rows(policies)(rows)
    [str(policy) for policy in policies.values()]


def read_state(path: Path) -> None:
    """Read what was learned or watched."""
    told = _first_refusal(
        lambda: ExchangeabilityMartingale.load(path),
        lambda: Scaling.from_dict(read_json(path), source=str(path)),
    )
    if told is not None:
        raise told


def read_log(path: Path) -> None:
    """Look at a run that is not finished, then resume it."""
    told = _first_refusal(lambda: read_unfinished_run(path), lambda: _resume(path))
    if told is not None:
        raise told


def _resume(path: Path) -> None:
    made_with = {"format": "segtrust-scores-1", "estimators": {"sdc": {}}, "read": {}}
    with RunLog(log_beside(path), made_with) as log:
        log.find("000", mark_of(["maps/0.npy", 12]))
        list(log.rows())


def read_dataset(path: Path) -> None:
    """Read what nnU-Net notes about data and predictions."""
    folder = PredictionFolder(path.parent)
    told = _first_refusal(
        lambda: read_labels_of_dataset(path),
        lambda: folder.name_of(ModelChoice(), ()),
        lambda: folder.name_of(ModelChoice("3d_fullres"), ()),
        lambda: folder.truths,
        lambda: find_cases([path.parent]),
    )
    if told is not None:
        raise told


READ: dict[str, Callable[[Path], object]] = {
    **dict.fromkeys(
        ("nnunet", "npz", "npy", "nifti", "itk", "image", "tiff", "hdf5", "zarr", "dicomseg"), read_map
    ),
    "pickle": read_plain_pickle,
    "picture": read_picture,
    "manifest": read_manifest,
    "table": read_table,
    "losses": lambda path: read_losses(path, "Dice" if path.suffix == ".csv" else None),
    "policy": read_policy,
    "state": read_state,
    "log": read_log,
    "dataset": read_dataset,
}
"""By name."""
