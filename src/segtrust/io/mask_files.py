"""Masks written in the format of the map that they were computed from, if that can hold a mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write
from segtrust._optional import require
from segtrust.errors import ParameterError
from segtrust.io.grid import Grid

__all__ = ["mask_path", "write_mask"]

_NIFTI = (".nii.gz", ".nii")
_ITK = (".mha", ".nrrd")
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")


def mask_path(folder: Path, name: str, source: Path, grid: Grid | None) -> Path:
    """Return the path of the mask of a map: it ends like the map if masks can be saved in that format.

    Pictures become PNG; a format that is neither a picture nor NIfTI, MHA or NRRD becomes NIfTI if the map
    has a geometry, and NPY otherwise.

    Examples
    --------
    >>> mask_path(Path("masks"), "a/7", Path("maps/a/7.nii.gz"), None).as_posix()
    'masks/a/7.nii.gz'
    >>> mask_path(Path("masks"), "8", Path("maps/8.jpg"), None).as_posix()
    'masks/8.png'
    """
    lowered = source.name.lower()
    same = next((ending for ending in (*_NIFTI, *_ITK, ".npy") if lowered.endswith(ending)), None)
    if lowered.endswith(_PICTURES) and grid is None:
        ending = ".png"
    elif same in _ITK and grid is None:
        ending = ".npy"
    else:
        ending = same or (".npy" if grid is None else ".nii.gz")
    path = folder / f"{name}{ending}"
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ParameterError(
            f"{name}: expected a name for a mask below {folder}, got one that leads elsewhere."
        )
    return path


def write_mask(path: Path, mask: Any, grid: Grid | None) -> None:
    """Write a mask as 0 and 1, or 0 and 255 in a picture; an existing file is replaced in one step.

    Parameters
    ----------
    path
        Path from `mask_path`.
    mask
        Array of bool, of the map's shape.
    grid
        Where it lies; ``None`` if unknown.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.asarray(mask).astype(np.uint8)
    ending = path.name[path.name.index(".") :]
    with atomic_write(path) as draft:
        whole = draft.with_name(f"{draft.name}{ending}")  # libraries go by endings
        try:
            if path.name.endswith(_NIFTI):
                _write_nifti(whole, values, grid)
            elif path.name.endswith(_ITK):
                _write_itk(whole, values, grid)
            elif path.name.endswith(".png"):
                _write_png(whole, values)
            else:
                _write_npy(whole, values)
            whole.replace(draft)
        finally:
            whole.unlink(missing_ok=True)


def _write_nifti(path: Path, mask: Any, grid: Grid | None) -> None:
    nibabel = require("nibabel", extra="io")
    affine = np.eye(4) if grid is None else grid.affine
    nibabel.save(nibabel.Nifti1Image(_as_volume(mask, grid).T, affine), path)


def _write_itk(path: Path, mask: Any, grid: Grid | None) -> None:
    itk = require("SimpleITK", extra="io")
    image = itk.GetImageFromArray(_as_volume(mask, grid))
    for name, values in ({} if grid is None else grid.itk()).items():
        getattr(image, f"Set{name.capitalize()}")(values)
    try:
        itk.WriteImage(image, str(path), True)
    except RuntimeError as error:  # also if the disk is full
        reason = str(error).strip().rpartition("\n")[2]
        raise OSError(f"{path}: could not be written ({reason}).") from None


def _as_volume(mask: Any, grid: Grid | None) -> Any:
    """Return a picture that lies in space as a volume of one slice."""
    return mask[None] if grid is not None and mask.ndim == 2 else mask


def _write_png(path: Path, mask: Any) -> None:
    require("PIL.Image", extra="io").fromarray(mask * 255).save(path)


def _write_npy(path: Path, mask: Any) -> None:
    np.save(path, mask)
