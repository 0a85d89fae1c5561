"""Masks written beside nothing: in the format of the map that they were made of, where it can hold one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write
from segtrust._optional import require
from segtrust.errors import ParameterError
from segtrust.io.grids import Grid

__all__ = ["mask_path", "write_mask"]

_NIFTI = (".nii.gz", ".nii")
_ITK = (".mha", ".nrrd")
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")


def mask_path(folder: Path, name: str, source: Path, grid: Grid | None) -> Path:
    """Say where the mask of a map goes: its ending is that of the map where masks can be kept so.

    Pictures become PNG; what is neither a picture nor NIfTI, MHA or NRRD becomes NIfTI where it is known to
    lie in space, and NPY where not.

    Examples
    --------
    >>> mask_path(Path("masks"), "a/7", Path("maps/a/7.nii.gz"), None).as_posix()
    'masks/a/7.nii.gz'
    >>> mask_path(Path("masks"), "8", Path("maps/8.jpg"), None).as_posix()
    'masks/8.png'
    """
    path = folder / f"{name}{_ending(source.name.lower(), grid)}"
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ParameterError(
            f"{name}: expected a name for a mask below {folder}, got one that leads elsewhere."
        )
    return path


def _ending(name: str, grid: Grid | None) -> str:
    if name.endswith(_PICTURES) and grid is None:
        return ".png"
    kept = next((each for each in (*_NIFTI, *_ITK, ".npy") if name.endswith(each)), None)
    if kept in _ITK and grid is None:
        return ".npy"
    return kept or (".npy" if grid is None else ".nii.gz")


def write_mask(path: Path, mask: Any, grid: Grid | None) -> None:
    """Write a mask as 0 and 1, or 0 and 255 in a picture; a file that is there is replaced in one step.

    Parameters
    ----------
    path
        Of `mask_path`.
    mask
        Bool, of the map's shape.
    grid
        Where it lies; ``None`` where nothing tells.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    writers: dict[tuple[str, ...], Callable[[Path, Any, Grid | None], None]] = {
        _NIFTI: _write_nifti,
        _ITK: _write_itk,
        (".png",): _write_png,
        (".npy",): _write_npy,
    }
    write = next(each for endings, each in writers.items() if path.name.endswith(endings))
    with atomic_write(path) as draft:
        whole = draft.with_name(f"{draft.name}{path.name[path.name.index('.') :]}")  # libraries go by endings
        try:
            write(whole, np.asarray(mask).astype(np.uint8), grid)
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
    placed = {} if grid is None else grid.itk()
    for name, values in placed.items():
        getattr(image, f"Set{name.capitalize()}")(values)
    try:
        itk.WriteImage(image, str(path), True)
    except RuntimeError as error:  # all that it knows, also of a disk that is full
        said = str(error).strip().rpartition("\n")[2]
        raise OSError(f"{path}: could not be written ({said}).") from None


def _as_volume(mask: Any, grid: Grid | None) -> Any:
    """Give the one slice of a picture that lies in space an axis of its own."""
    return mask[None] if grid is not None and mask.ndim == 2 else mask


def _write_png(path: Path, mask: Any, grid: Grid | None) -> None:
    require("PIL.Image", extra="io").fromarray(mask * 255).save(path)


def _write_npy(path: Path, mask: Any, grid: Grid | None) -> None:
    np.save(path, mask)
