"""What nnU-Net, versions 1 and 2, and TotalSegmentator write with ``--save_probabilities``.

Beside each ``case.npz`` lies ``case.pkl`` with the geometry, and the mask that was delivered, ``case.nii.gz``
or of another format. ``dataset.json`` names the labels; it lies in the same folder, or where the model is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.io.grids import Grid
from segtrust.io.npz import open_member, read_directory
from segtrust.io.pickles import read_plain_pickle
from segtrust.io.structures import LabelScheme
from segtrust.io.volumes import Volume
from segtrust.saved import read_json

__all__ = [
    "KEYS",
    "check_channels",
    "dataset_json_of",
    "open_nnunet",
    "read_scheme",
    "recognises_nnunet",
    "scheme_beside",
]

KEYS = ("probabilities", "softmax")
"""Name of the array in version 2, and in version 1."""
_LEVELS_UP = 3
"""Folders above the predictions in which ``dataset.json`` is looked for, as above ``fold_0/validation``."""
_BACKGROUND = "background"


def recognises_nnunet(path: Path, head: bytes) -> bool:
    """Tell by the name of the array."""
    return (
        head[:2] == b"PK" and path.suffix.lower() == ".npz" and not set(KEYS).isdisjoint(read_directory(path))
    )


def open_nnunet(path: Path, key: str | None = None) -> Volume:
    """Open the probabilities of a case: channels first, on the grid of the image that was segmented."""
    members = read_directory(path)
    name = key or next(name for name in KEYS if name in members)
    volume = open_member(path, members[name])
    if len(volume.shape) not in (3, 4):
        raise WrongContentError(
            f"{path}: expected channels and two or three axes of an image, got the shape {volume.shape}."
        )
    about = _properties(path)
    if "crop_bbox" in about:
        return _uncropped(volume, about)
    return _with_grid(
        volume, _itk_grid(volume.shape[1:], about.get("sitk_stuff")) or _nifti_grid(volume, about)
    )


def _properties(path: Path) -> Mapping[str, Any]:
    """Read what is said about a case; nothing where there is no such file."""
    beside = path.with_suffix(".pkl")
    if not beside.exists():
        return {}
    found = read_plain_pickle(beside)
    if not isinstance(found, Mapping):
        raise DamagedFileError(f"{beside}: expected the geometry of a case, got {type(found).__name__}.")
    return found


def _itk_grid(shape: tuple[int, ...], about: Any) -> Grid | None:
    if not isinstance(about, Mapping) or len(shape) != 3:
        return None
    noted = {name: about.get(name) for name in ("spacing", "origin", "direction")}
    if [np.size(np.array(each)) for each in noted.values()] != [3, 3, 9] or None in noted.values():
        return None
    return Grid.of_itk(shape, **noted)


def _nifti_grid(volume: Volume, about: Mapping[str, Any]) -> Grid | None:
    """Give the grid that nnU-Net's reader of nibabel has noted.

    One of these readers turns images to a common orientation; the mask is then turned back, the probabilities
    are not.
    """
    noted = about.get("nibabel_stuff")
    names = ("reoriented_affine", "original_affine")
    affines = [noted[name] for name in names if name in noted] if isinstance(noted, Mapping) else []
    affine = affines[0] if affines else None
    if affine is None or np.shape(affine) != (4, 4) or len(volume.shape) != 4:
        return None
    return Grid(volume.shape[1:], np.asarray(affine, np.float64))


def _with_grid(volume: Volume, grid: Grid | None) -> Volume:
    return Volume(volume.path, volume.shape, volume.dtype, volume.load, has_channels=True, grid=grid)


def _uncropped(volume: Volume, about: Mapping[str, Any]) -> Volume:
    """Put the array of version 1, cut to where the image is not zero, back into the whole image."""
    shape = tuple(int(length) for length in about["original_size_of_raw_data"])
    box = tuple(slice(int(low), int(high)) for low, high in about["crop_bbox"])
    if tuple(each.stop - each.start for each in box) != volume.shape[1:]:
        raise DamagedFileError(
            f"{volume.path}: expected the shape of the box {about['crop_bbox']} in its .pkl file, got "
            f"{volume.shape[1:]}. Do they belong to one case?"
        )

    def load(channel: int | None) -> Any:
        if channel is not None:
            return _padded(volume.read(channel), box, shape, outside=float(channel == 0))
        return np.stack([load(i) for i in range(volume.shape[0])])

    noted = {name: about.get(f"itk_{name}") for name in ("spacing", "origin", "direction")}
    whole = (volume.shape[0], *shape)
    return Volume(volume.path, whole, volume.dtype, load, has_channels=True, grid=_itk_grid(shape, noted))


def _padded(part: Any, box: tuple[slice, ...], shape: tuple[int, ...], *, outside: float) -> Any:
    """Lay a part into an image that is background elsewhere."""
    whole = np.full(shape, outside, part.dtype)
    whole[box] = part
    return whole


def scheme_beside(path: Path) -> LabelScheme | None:
    """Find the names of the structures in ``dataset.json``, in the folder of a file or above it."""
    found = dataset_json_of(path)
    return None if found is None else read_scheme(found)


def dataset_json_of(path: Path) -> Path | None:
    """Find the ``dataset.json`` that a map belongs to, in its folder or above it."""
    folders = [path.parent, *path.parent.parents][: _LEVELS_UP + 1]
    return next((folder / "dataset.json" for folder in folders if (folder / "dataset.json").is_file()), None)


@cache
def read_scheme(path: Path) -> LabelScheme:
    """Read the labels that a ``dataset.json`` lists.

    Examples
    --------
    >>> import json, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "dataset.json"
    >>> labels = {"background": 0, "whole": [1, 2], "core": 2}
    >>> _ = path.write_text(json.dumps({"labels": labels, "regions_class_order": [1, 2]}))
    >>> read_scheme(path)
    LabelScheme(labels=(('whole', (1, 2)), ('core', (2,))), is_regions=True)
    """
    described = read_json(path, error=WrongContentError)
    labels = described.get("labels") if isinstance(described, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        raise WrongContentError(f"{path}: expected nnU-Net's 'labels', names with numbers, got {labels!r}.")
    try:
        pairs = [_label(name, value) for name, value in labels.items()]
    except (TypeError, ValueError):
        raise WrongContentError(
            f"{path}: expected whole numbers for each label, or lists of them, got {labels!r}."
        ) from None
    named = [(name, values) for name, values in pairs if name.lower() != _BACKGROUND and values != (0,)]
    is_regions = any(isinstance(value, list | tuple) for value in labels.values())
    if not is_regions:  # the channels of a softmax are in the order of the labels
        named.sort(key=lambda pair: pair[1])
    return LabelScheme(tuple(named), is_regions)


def _label(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    """Read one label: version 2 has names first, version 1 numbers."""
    if isinstance(value, str):
        return value, (int(name),)
    return name, tuple(int(each) for each in value) if isinstance(value, list | tuple) else (int(value),)


def check_channels(volume: Volume, scheme: LabelScheme) -> None:
    """Refuse probabilities that are of another model than the labels."""
    if volume.shape[0] != scheme.channels:
        kind = "regions" if scheme.is_regions else "labels and background"
        raise WrongContentError(
            f"{volume.path}: expected {scheme.channels} channels, for the {kind} of dataset.json "
            f"({', '.join(name for name, _ in scheme.labels)}), got {volume.shape[0]}. Are they of one model?"
        )
