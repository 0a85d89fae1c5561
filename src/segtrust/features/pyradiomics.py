"""PyRadiomics as a backend: any bin width, and the oracle of the compiled one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from segtrust.features.names import CLASSES
from segtrust.features.region import Region
from segtrust.optional import require

__all__ = ["pyradiomics_features"]

_CALCULATORS = {
    "shape": "RadiomicsShape",
    "shape2D": "RadiomicsShape2D",
    "firstorder": "RadiomicsFirstOrder",
    "glcm": "RadiomicsGLCM",
    "glrlm": "RadiomicsGLRLM",
    "glszm": "RadiomicsGLSZM",
    "gldm": "RadiomicsGLDM",
}
_FAILURES = (ArithmeticError, AssertionError, IndexError, RuntimeError, ValueError)
_ZERO_WHERE_CONSTANT = (
    "Kurtosis",
    "MeanAbsoluteDeviation",
    "RobustMeanAbsoluteDeviation",
    "Skewness",
    "Variance",
)


def pyradiomics_features(mask: Any, region: Region, bin_width: float) -> Any:
    """Give the vector of features, each class computed by PyRadiomics in its default settings.

    The shape is taken from the whole mask, because the mesh volume of PyRadiomics depends on where a ragged
    mask lies in its array; the rest from the mask's box, which is quicker and gives the same as long as the
    box has a border: without one PyRadiomics fails where the box is a single pixel.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        require("radiomics", extra="radiomics")
    image = np.zeros(region.cells.shape)
    image[region.cells.astype(bool)] = region.values
    with _in_silence():
        found = {}
        for group in CLASSES[region.ndim]:
            pair = (mask, mask) if group.startswith("shape") else (image, region.cells)
            found[group] = _calculate(group, pair, bin_width)
    if region.is_constant:  # the mean of equal numbers may differ from them in the last digit
        found["firstorder"].update(dict.fromkeys(_ZERO_WHERE_CONSTANT, 0.0))
    return np.array(
        [
            _finite(found[group].get(name, 0.0))
            for group, names in CLASSES[region.ndim].items()
            for name in names.split()
        ]
    )


def _calculate(group: str, pair: tuple[Any, Any], bin_width: float) -> dict[str, Any]:
    """Run one class on an image and a mask; nothing where it fails as a whole."""
    from SimpleITK import GetImageFromArray

    calculator = getattr(import_module(f"radiomics.{group}"), _CALCULATORS[group])
    image, mask = map(GetImageFromArray, pair)
    try:
        return dict(calculator(image, mask, binWidth=bin_width).execute())
    except _FAILURES:
        return {}


def _finite(value: Any) -> float:
    number = float(value)
    return number if np.isfinite(number) else 0.0


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
