"""From an image and a mask to a vector of features."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from segtrust.errors import ParameterError, UnknownNameError
from segtrust.features.names import SHAPE_CLASSES, Features, as_vector, feature_names
from segtrust.features.region import Region, check_pair, cut_out
from segtrust.kernels.inputs import check_number

__all__ = ["BACKENDS", "Backend", "extract_features"]

Backend = Literal["compiled", "pyradiomics"]
BACKENDS: tuple[Backend, ...] = ("compiled", "pyradiomics")


def extract_features(
    image: Any, mask: Any, *, bin_width: float = 25.0, backend: Backend | None = None
) -> Any:
    """Describe what an image holds inside a mask, and the mask's shape, by the features of PyRadiomics.

    The features are those of PyRadiomics in its default settings, at a spacing of 1: 97 of an image (9 of
    its shape, 18 first-order, 24 GLCM, 16 GLRLM, 16 GLSZM, 14 GLDM), 102 of a volume (14 of its shape). The
    default bin width of 25 leaves an image with values in [0, 1] one grey level, as in the paper: the
    texture features then see the mask alone.

    Parameters
    ----------
    image
        2-D or 3-D, such as the entropies of a probability map; only values inside the mask count, and they
        must be finite. Integers are taken as they are.
    mask
        Of the same shape, 0 and 1.
    bin_width
        Width of a grey level, above 0.
    backend
        ``"compiled"`` is fast, needs no further package and knows one grey level only; ``"pyradiomics"``
        knows any number, needs ``segtrust[radiomics]``, and may take hours over the shape of a ragged
        volume. ``None`` takes the first where there is one grey level; elsewhere it takes the shape, which
        does not depend on the grey levels, from the first and the rest from the second.

    Returns
    -------
    numpy.ndarray
        float64, one value for each of `feature_names`, always finite.

    Raises
    ------
    GreyLevelsError
        If the backend is ``"compiled"`` and the bin width makes several grey levels.
    MissingExtraError
        If PyRadiomics is needed and absent; the message names the extra.

    Notes
    -----
    Where a feature has no value it is 0, with both backends:

    * an empty mask: all features;
    * one pixel: elongation and flatness;
    * no two pixels that touch, as with one pixel: all GLCM features but MCC, which PyRadiomics sets to 1
      where there is one grey level;
    * no two pixels on one line of the grid, along an axis or a diagonal: all GLRLM features;
    * no value from the 10th to the 90th percentile, as with two different values:
      ``RobustMeanAbsoluteDeviation``;
    * equal values: variance, both deviations, skewness and kurtosis, which rounding would otherwise turn into
      any number;
    * a feature or a class of features at which PyRadiomics fails, or gives NaN or infinity.

    Examples
    --------
    >>> image = np.array([[0.0, 1.0, 0.75], [0.25, 0.75, 0.0]])
    >>> features = extract_features(image, image > 0.5)
    >>> found = dict(zip(feature_names(2), features.tolist(), strict=True))
    >>> found["firstorder_Maximum"], found["shape2D_PixelSurface"], found["glszm_ZonePercentage"]
    (1.0, 3.0, 0.3333333333333333)
    """
    _check_options(bin_width, backend)
    image, mask = check_pair(image, mask)
    region = cut_out(image, mask)
    if region is None:
        return np.zeros(len(feature_names(image.ndim)))
    return as_vector(_run(backend, mask, region, bin_width), image.ndim)


def _run(backend: Backend | None, mask: Any, region: Region, bin_width: float) -> Features:
    """Let the backend work; compiled loops and PyRadiomics are loaded only now."""
    from segtrust.features.compiled import compiled_features, has_one_level
    from segtrust.features.pyradiomics import pyradiomics_features, pyradiomics_shape
    from segtrust.features.shape import shape_features

    if backend == "compiled" or (backend is None and has_one_level(region.values, bin_width)):
        return compiled_features(region, bin_width)
    others = pyradiomics_features(region, bin_width)
    if backend == "pyradiomics":
        return pyradiomics_shape(mask) | others
    return {SHAPE_CLASSES[region.ndim]: shape_features(region)} | others


def _check_options(bin_width: Any, backend: Any) -> None:
    check_number(bin_width, "bin_width", "a finite number above 0")
    if not bin_width:
        raise ParameterError("bin_width: expected a finite number above 0, got 0.")
    if backend is not None and backend not in BACKENDS:
        raise UnknownNameError(f"Unknown backend {backend!r}; available: {', '.join(BACKENDS)}.")
