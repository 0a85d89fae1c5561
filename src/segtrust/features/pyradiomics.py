"""PyRadiomics as a backend: any bin width, and the oracle of the compiled one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from segtrust.errors import GreyLevelsError
from segtrust.features.names import CLASSES, SHAPE_CLASSES, Features
from segtrust.features.region import Region
from segtrust.optional import require

__all__ = ["pyradiomics_features", "pyradiomics_shape"]

_CALCULATORS = {
    "shape": "RadiomicsShape",
    "shape2D": "RadiomicsShape2D",
    "firstorder": "RadiomicsFirstOrder",
    "glcm": "RadiomicsGLCM",
    "glrlm": "RadiomicsGLRLM",
    "glszm": "RadiomicsGLSZM",
    "gldm": "RadiomicsGLDM",
}
_MOST_LEVELS = 1000
_FAILURES = (ArithmeticError, AssertionError, IndexError, RuntimeError, ValueError)
_ZERO_WHERE_CONSTANT = (
    "Kurtosis",
    "MeanAbsoluteDeviation",
    "RobustMeanAbsoluteDeviation",
    "Skewness",
    "Variance",
)


def pyradiomics_features(region: Region, bin_width: float) -> Features:
    """Compute all classes but the shape, each by PyRadiomics in its default settings.

    From the mask's box, which is quicker than the whole array and gives the same as long as the box has a
    border: without one PyRadiomics fails where the box is a single pixel.
    """
    _check_levels(region, bin_width)
    image = np.zeros(region.cells.shape)
    image[region.cells.astype(bool)] = region.values
    groups = [group for group in CLASSES[region.ndim] if group != SHAPE_CLASSES[region.ndim]]
    found = {group: _calculate(group, (image, region.cells), bin_width) for group in groups}
    if region.is_constant:  # the mean of equal numbers may differ from them in the last digit
        found["firstorder"].update(dict.fromkeys(_ZERO_WHERE_CONSTANT, 0.0))
    return found


def _check_levels(region: Region, bin_width: float) -> None:
    """Refuse more grey levels than its matrices have room for, which grow with their square."""
    low, high = float(region.values.min()), float(region.values.max())
    if (high - low) / bin_width > _MOST_LEVELS:
        raise GreyLevelsError(
            f"bin_width: expected at most {_MOST_LEVELS} grey levels, got more: a width of {bin_width:g} for "
            f"values from {low:g} to {high:g}. Use a wider bin, such as {(high - low) / 20.0:.2g}."
        )


def pyradiomics_shape(mask: Any) -> Features:
    """Compute the shape by PyRadiomics.

    From the whole mask, because the mesh volume of PyRadiomics depends on where a ragged mask lies in its
    array.
    """
    group = SHAPE_CLASSES[mask.ndim]
    return {group: _calculate(group, (mask, mask), 1.0)}


def _calculate(group: str, pair: tuple[Any, Any], bin_width: float) -> dict[str, float]:
    """Run one class on an image and a mask; nothing where it fails as a whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require("radiomics", extra="radiomics")
        calculator = getattr(import_module(f"radiomics.{group}"), _CALCULATORS[group])
        image, mask = map(import_module("SimpleITK").GetImageFromArray, pair)
    with _in_silence():
        try:
            found = calculator(image, mask, binWidth=bin_width).execute()
        except _FAILURES:
            return {}
    return {name: float(value) for name, value in found.items()}


@contextmanager
def _in_silence() -> Iterator[None]:
    """Keep what PyRadiomics logs and warns of to ourselves: what it could not compute becomes 0 here."""
    logger = logging.getLogger("radiomics")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        level = logger.level
        logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            logger.setLevel(level)
