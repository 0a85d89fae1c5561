"""What nnU-Net, versions 1 and 2, and TotalSegmentator write with ``--save_probabilities``.

Beside each ``case.npz`` lies ``case.pkl`` with the geometry, and the mask that was delivered, ``case.nii.gz``
or of another format. ``dataset.json`` names the labels; it lies in the same folder, or where the model is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.errors import WrongContentError
from segtrust.io.formats._common import Volume
from segtrust.io.formats.nnunet import AXES, KEYS, open_nnunet, recognises_nnunet, volume_in_memory  # moved
from segtrust.io.structures import LabelScheme
from segtrust.io.totalsegmentator import names_task, task_scheme

__all__ = [
    "AXES",
    "KEYS",
    "check_channels",
    "dataset_json_of",
    "open_nnunet",
    "read_scheme",
    "recognises_nnunet",
    "scheme_beside",
    "volume_in_memory",
]

_LEVELS_UP = 3
"""Folders above the predictions in which ``dataset.json`` is looked for, as above ``fold_0/validation``."""
_LONGEST = 8 << 20
"""Bytes of what nnU-Net writes about a data set."""
_SHOWN = 12
"""Names that an error lists."""
_IGNORED = "ignore"
"""Name of the label that nnU-Net leaves out of training; no channel is its own."""


def scheme_beside(path: Path) -> LabelScheme | None:
    """Find the names of the structures in ``dataset.json``, in the folder of a file or above it."""
    found = dataset_json_of(path)
    return None if found is None else read_scheme(found)


def dataset_json_of(path: Path) -> Path | None:
    """Find the ``dataset.json`` that a map belongs to, in its folder or above it."""
    folders = path.absolute().parents[: _LEVELS_UP + 1]
    return next((folder / "dataset.json" for folder in folders if (folder / "dataset.json").is_file()), None)


@cache
def read_scheme(path: Path) -> LabelScheme:
    """Read the labels that a ``dataset.json`` lists, or those of a task, ``totalsegmentator:total``.

    Examples
    --------
    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "dataset.json"
    >>> labels = {"background": 0, "whole": [1, 2], "core": 2}
    >>> _ = path.write_text(json.dumps({"labels": labels, "regions_class_order": [1, 2]}))
    >>> read_scheme(path)
    LabelScheme(labels=(('whole', (1, 2)), ('core', (2,))), is_regions=True)
    """
    if names_task(path):
        return task_scheme(path)
    described = read_json(path, error=WrongContentError, most=_LONGEST)
    labels = described.get("labels") if isinstance(described, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        raise WrongContentError(f"{path}: expected nnU-Net's 'labels', names with numbers, got {labels!r}.")
    try:
        pairs = [_label(name, value) for name, value in labels.items()]
    except (TypeError, ValueError, OverflowError):
        raise WrongContentError(
            f"{path}: expected whole numbers for each label, or lists of them, got {labels!r}."
        ) from None
    named = [(name, values) for name, values in pairs if name != _IGNORED and set(values) - {0}]
    if not named:
        raise WrongContentError(f"{path}: expected a label beside the background, got {labels!r}.")
    is_regions = any(len(values) > 1 for _, values in named)
    if not is_regions:  # the channels of a softmax are in the order of the labels
        named.sort(key=lambda pair: pair[1])
    return LabelScheme(tuple(named), is_regions)


def _label(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    """Read one label: version 2 has names first, version 1 numbers."""
    if isinstance(value, str):
        return value, (int(name),)
    return name, tuple(_whole(each) for each in (value if isinstance(value, list) else [value]))


def _whole(value: Any) -> int:
    if int(value) != value:
        raise ValueError(f"{value!r} is no whole number")
    return int(value)


def check_channels(volume: Volume, scheme: LabelScheme, remedy: str = "") -> None:
    """Refuse probabilities that are of another model than the labels."""
    if volume.shape[0] != scheme.channels:
        kind = "regions" if scheme.is_regions else "labels and background"
        names = [name for name, _ in scheme.labels]
        listed = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
        raise WrongContentError(
            f"{volume.path}: expected {scheme.channels} channels, for the {kind} that are named "
            f"({listed}), got {volume.shape[0]}. {remedy or 'Are they of one model?'}"
        )
