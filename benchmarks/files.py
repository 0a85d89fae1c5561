"""Files made up for measuring: a case of nnU-Net, folders of maps, a map larger than most memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._optional import require

__all__ = ["REGIONS", "SHAPE", "make_folder", "make_nifti", "make_nnunet_case", "make_pngs", "make_zarr"]

SHAPE = (155, 240, 240)
"""Of a case of BraTS."""
REGIONS = {"background": 0, "whole tumor": [1, 2, 3], "tumor core": [2, 3], "enhancing tumor": [3]}
_SLAB = 64


def blob(shape: tuple[int, ...], radius: float, blur: float) -> Any:
    """Give the probabilities of a ball, exactly 0 far away from it, as a model leaves them."""
    axes = np.ogrid[tuple(slice(length) for length in shape)]
    distance = np.sqrt(sum((axis - length / 2) ** 2 for axis, length in zip(axes, shape, strict=True)))
    noise = np.random.default_rng(0).normal(0.0, 0.5, shape)
    p = 1.0 / (1.0 + np.exp(np.clip((distance - radius) / blur + noise, -30.0, 30.0)))
    return np.where(p < 1e-5, 0.0, p).astype(np.float32)


def make_nnunet_case(folder: Path, *, shape: tuple[int, ...] = SHAPE) -> Path:
    """Write what nnU-Net writes of a case with three regions: probabilities, geometry, mask and labels."""
    import pickle

    nibabel = require("nibabel", extra="io")
    scale = min(shape) / 155
    p = np.stack([blob(shape, radius * scale, 3.0 * scale) for radius in (45, 30, 15)])
    np.savez_compressed(folder / "case.npz", probabilities=p)
    geometry = {"spacing": (1.0,) * 3, "origin": (0.0,) * 3, "direction": tuple(np.eye(3).reshape(-1))}
    (folder / "case.pkl").write_bytes(pickle.dumps({"sitk_stuff": geometry, "spacing": [1.0] * 3}))
    labels = sum((each > 0.5).astype(np.uint8) for each in p)
    image = nibabel.Nifti1Image(labels.transpose(), np.diag([-1.0, -1.0, 1.0, 1.0]))
    nibabel.save(image, folder / "case.nii.gz")
    described = {"labels": REGIONS, "regions_class_order": [1, 2, 3]}
    (folder / "dataset.json").write_text(json.dumps(described))
    return folder / "case.npz"


def make_nifti(path: Path, *, shape: tuple[int, ...] = SHAPE) -> None:
    """Write a compressed volume of probabilities."""
    nibabel = require("nibabel", extra="io")
    nibabel.save(nibabel.Nifti1Image(blob(shape, min(shape) / 4, min(shape) / 50).T, np.eye(4)), path)


def make_folder(folder: Path, *, count: int, size: int, packed: bool) -> None:
    """Write many maps of images, as archives or as plain arrays."""
    rng = np.random.default_rng(0)
    base = blob((size, size), size / 4, size / 40 + 0.5)
    for i in range(count):
        p = np.roll(base, rng.integers(0, size, 2), (0, 1)) * np.float32(rng.uniform(0.7, 1.0))
        if packed:
            np.savez_compressed(folder / f"case_{i:05d}.npz", probabilities=p[np.newaxis])
        else:
            np.save(folder / f"case_{i:05d}.npy", p)


def make_pngs(folder: Path, *, count: int, size: int) -> None:
    """Write many maps of images as 8-bit PNG."""
    image = require("PIL.Image", extra="io")
    rng = np.random.default_rng(0)
    base = 255 * blob((size, size), size / 4, size / 40 + 0.5)
    for i in range(count):
        p = np.roll(base, rng.integers(0, size, 2), (0, 1)) * np.float32(rng.uniform(0.7, 1.0))
        image.fromarray(p.astype(np.uint8)).save(folder / f"case_{i:05d}.png")


def make_zarr(path: Path, *, side: int) -> Any:
    """Write a cube of single floats in chunks, a slab at a time."""
    zarr = require("zarr", extra="io")
    array = zarr.create_array(
        store=str(path),
        shape=(side,) * 3,
        chunks=(_SLAB,) * 3,
        dtype="float32",
        overwrite=True,
        config={"write_empty_chunks": True},  # a missing chunk is an error
    )
    slab = blob((_SLAB, side, side), side / 4, side / 100)
    for first in range(0, side, _SLAB):
        array[first : first + _SLAB] = slab[: min(_SLAB, side - first)]
    return array
