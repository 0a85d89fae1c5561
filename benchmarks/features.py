"""The feature extractor against PyRadiomics called plainly, and on the most ragged mask there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.process import Reading
from benchmarks.timing import Ratio, shortest_times
from segtrust._optional import require
from segtrust.features import extract_features, feature_names

__all__ = ["SIZES", "compare_features", "lesion", "plain_features", "time_ragged"]

SIZES = {(155, 240, 240): 75_000, (512, 512): 20_000}
"""Shape of the map, and pixels of the mask."""
_SECONDS = 10.0
_CALCULATORS = {
    "firstorder": "RadiomicsFirstOrder",
    "glcm": "RadiomicsGLCM",
    "glrlm": "RadiomicsGLRLM",
    "glszm": "RadiomicsGLSZM",
    "gldm": "RadiomicsGLDM",
}


def lesion(shape: tuple[int, ...], pixels: int) -> tuple[Any, Any]:
    """Make a map in [0, 1] and a mask of so many pixels: an ellipsoid whose edge is somewhat ragged.

    Examples
    --------
    >>> image, mask = lesion((40, 50), 300)
    >>> image.shape, int(mask.sum())
    ((40, 50), 300)
    """
    rng = np.random.default_rng(0)
    axes = np.ogrid[tuple(slice(length) for length in shape)]
    squares = [((axis / length - 0.45) * 3.0) ** 2 for axis, length in zip(axes, shape, strict=True)]
    depth = 0.005 * rng.standard_normal(shape) - np.sqrt(sum(squares))
    mask = depth >= np.partition(depth, -pixels, axis=None)[-pixels]
    return rng.random(shape), mask


def plain_features(image: Any, mask: Any) -> list[dict[str, Any]]:
    """Run the classes of PyRadiomics as a script would: on the whole arrays, one after the other."""
    from SimpleITK import GetImageFromArray

    pair = GetImageFromArray(image), GetImageFromArray(mask.astype(np.uint8))
    shape = {"shape": "RadiomicsShape"} if image.ndim == 3 else {"shape2D": "RadiomicsShape2D"}
    calculators = [
        getattr(import_module(f"radiomics.{group}"), name) for group, name in (shape | _CALCULATORS).items()
    ]
    return [calculator(*pair, binWidth=25).execute() for calculator in calculators]


def compare_features(sizes: dict[tuple[int, ...], int] | None = None, *, rounds: int = 3) -> Iterator[Ratio]:
    """Time the compiled features against PyRadiomics on the same arrays; the ratio is the gain."""
    require("radiomics", extra="radiomics").setVerbosity(60)
    for shape, pixels in (SIZES if sizes is None else sizes).items():
        image, mask = lesion(shape, pixels)

        runs: dict[str, Callable[[], object]] = {
            "ours": partial(extract_features, image, mask, backend="compiled"),
            "theirs": partial(plain_features, image, mask),
        }
        times = shortest_times(runs, rounds=rounds)
        gain = times["theirs"] / times["ours"]
        name = f"{'×'.join(map(str, shape))}, {pixels:,} in the mask"
        yield Ratio(
            f"{len(feature_names(image.ndim))} features", "PyRadiomics", name, times["ours"], gain, ">= 5"
        )


def time_ragged(shape: tuple[int, ...] = (155, 240, 240), *, rounds: int = 3) -> Iterator[Reading]:
    """Time masks of which every pixel is drawn by itself, from scattered ones to a nearly full box."""
    rng = np.random.default_rng(0)
    image, noise = rng.random(shape), rng.random(shape)
    for share in (0.01, 0.5, 0.99):
        run = partial(extract_features, image, noise < share)
        times = shortest_times({"ours": run}, rounds=rounds)
        what = f"{'×'.join(map(str, shape))}, {share:.0%} of the pixels at random"
        yield Reading(what, times["ours"], "s", _SECONDS)
