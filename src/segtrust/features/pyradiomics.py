"""PyRadiomics as a backend: any number of grey levels, and the reference for the compiled features."""

from __future__ import annotations

import logging
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from segtrust._optional import require
from segtrust.errors import GreyLevelsError
from segtrust.features.first_order import ZERO_IF_CONSTANT

if TYPE_CHECKING:
    from segtrust.features.region import Region


CALCULATORS = {
    "shape": "RadiomicsShape",
    "shape2D": "RadiomicsShape2D",
    "firstorder": "RadiomicsFirstOrder",
    "glcm": "RadiomicsGLCM",
    "glrlm": "RadiomicsGLRLM",
    "glszm": "RadiomicsGLSZM",
    "gldm": "RadiomicsGLDM",
}
"""Class of PyRadiomics that computes each feature class; also the name of its module."""
_MOST_LEVELS = 1000
"""Its matrices grow with the square of the number of grey levels."""
_FAILURES = (ArithmeticError, AssertionError, IndexError, RuntimeError, ValueError)


def pyradiomics_features(region: Region, bin_width: float) -> dict[str, dict[str, float]]:
    """Compute all feature classes except the shape with the default settings of PyRadiomics.

    The bounding box with a border of zeros is passed instead of the whole array: this is faster and gives the
    same result. Without the border PyRadiomics fails on a box of a single pixel.
    """
    low, high = float(region.values.min()), float(region.values.max())
    if (high - low) / bin_width > _MOST_LEVELS:
        raise GreyLevelsError(
            f"bin_width: expected at most {_MOST_LEVELS} grey levels, got more: a width of {bin_width:g} for "
            f"values from {low:g} to {high:g}. Use a wider bin, such as {(high - low) / 20.0:.2g}."
        )
    image = np.zeros(region.padded.shape)
    image[region.padded.astype(bool)] = region.values
    features = {
        group: _calculate(group, image, region.padded, bin_width)
        for group in CALCULATORS
        if not group.startswith("shape")
    }
    if region.is_constant:
        features["firstorder"].update(dict.fromkeys(ZERO_IF_CONSTANT, 0.0))
    return features


def pyradiomics_shape(mask: Any) -> dict[str, float]:
    """Compute the shape features of a whole mask with PyRadiomics.

    The mask is not cropped, because the mesh volume that PyRadiomics computes for a ragged mask depends on
    the position of the mask in its array.
    """
    return _calculate("shape2D" if mask.ndim == 2 else "shape", mask, mask, 1.0)


def _calculate(group: str, image: Any, mask: Any, bin_width: float) -> dict[str, float]:
    """Compute one feature class; return an empty dict where PyRadiomics fails on the class as a whole."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        require("radiomics", extra="radiomics")
        calculator = getattr(import_module(f"radiomics.{group}"), CALCULATORS[group])
        images = map(import_module("SimpleITK").GetImageFromArray, (image, mask))
        logger = logging.getLogger("radiomics")
        level = logger.level
        try:
            logger.setLevel(logging.CRITICAL + 1)  # what it cannot compute becomes 0 here, without a word
            features = calculator(*images, binWidth=bin_width).execute()
        except _FAILURES:
            return {}
        finally:
            logger.setLevel(level)
    return {name: float(value) for name, value in features.items()}
