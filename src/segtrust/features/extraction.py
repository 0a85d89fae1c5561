"""From an image and a mask to a vector of features, and the names of its entries."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from segtrust._arguments import check_nonnegative
from segtrust.errors import GreyLevelsError, ParameterError, UnknownNameError
from segtrust.features.first_order import first_order_features
from segtrust.features.pyradiomics import pyradiomics_features, pyradiomics_shape
from segtrust.kernels import as_array, as_binary, check_shapes, on_host

if TYPE_CHECKING:
    from segtrust.features.region import Region


Backend = Literal["compiled", "pyradiomics"]
BACKENDS: tuple[Backend, ...] = ("compiled", "pyradiomics")

_SHAPE_2D = """Elongation MajorAxisLength MaximumDiameter MeshSurface MinorAxisLength Perimeter
    PerimeterSurfaceRatio PixelSurface Sphericity"""
_SHAPE_3D = """Elongation Flatness LeastAxisLength MajorAxisLength Maximum2DDiameterColumn
    Maximum2DDiameterRow Maximum2DDiameterSlice Maximum3DDiameter MeshVolume MinorAxisLength Sphericity
    SurfaceArea SurfaceVolumeRatio VoxelVolume"""
_NAMES = {
    "firstorder": """10Percentile 90Percentile Energy Entropy InterquartileRange Kurtosis Maximum Mean
        MeanAbsoluteDeviation Median Minimum Range RobustMeanAbsoluteDeviation RootMeanSquared Skewness
        TotalEnergy Uniformity Variance""",
    "glcm": """Autocorrelation ClusterProminence ClusterShade ClusterTendency Contrast Correlation
        DifferenceAverage DifferenceEntropy DifferenceVariance Id Idm Idmn Idn Imc1 Imc2 InverseVariance
        JointAverage JointEnergy JointEntropy MCC MaximumProbability SumAverage SumEntropy SumSquares""",
    "glrlm": """GrayLevelNonUniformity GrayLevelNonUniformityNormalized GrayLevelVariance
        HighGrayLevelRunEmphasis LongRunEmphasis LongRunHighGrayLevelEmphasis LongRunLowGrayLevelEmphasis
        LowGrayLevelRunEmphasis RunEntropy RunLengthNonUniformity RunLengthNonUniformityNormalized
        RunPercentage RunVariance ShortRunEmphasis ShortRunHighGrayLevelEmphasis
        ShortRunLowGrayLevelEmphasis""",
    "glszm": """GrayLevelNonUniformity GrayLevelNonUniformityNormalized GrayLevelVariance
        HighGrayLevelZoneEmphasis LargeAreaEmphasis LargeAreaHighGrayLevelEmphasis
        LargeAreaLowGrayLevelEmphasis LowGrayLevelZoneEmphasis SizeZoneNonUniformity
        SizeZoneNonUniformityNormalized SmallAreaEmphasis SmallAreaHighGrayLevelEmphasis
        SmallAreaLowGrayLevelEmphasis ZoneEntropy ZonePercentage ZoneVariance""",
    "gldm": """DependenceEntropy DependenceNonUniformity DependenceNonUniformityNormalized
        DependenceVariance GrayLevelNonUniformity GrayLevelVariance HighGrayLevelEmphasis
        LargeDependenceEmphasis LargeDependenceHighGrayLevelEmphasis LargeDependenceLowGrayLevelEmphasis
        LowGrayLevelEmphasis SmallDependenceEmphasis SmallDependenceHighGrayLevelEmphasis
        SmallDependenceLowGrayLevelEmphasis""",
}
"""Short names of the features of each class except the shape, separated by spaces."""

_HUGE_WIDTH = 1e300
"""Above this bin width the edges of the bins may be infinite."""


@cache
def feature_names(ndim: int) -> tuple[str, ...]:
    """Return the names of the features of an image with the given number of dimensions.

    A name is the class and the name of the feature in PyRadiomics, as in ``"glcm_Contrast"``: several classes
    have a feature of the same name.

    Parameters
    ----------
    ndim
        Number of dimensions: 2 (97 names) or 3 (102 names).

    Returns
    -------
    tuple of str
        In the order of the vector that `extract_features` returns: the classes shape, first order, GLCM,
        GLRLM, GLSZM and GLDM, and the features of each class in alphabetical order.

    Examples
    --------
    >>> len(feature_names(2)), len(feature_names(3))
    (97, 102)
    >>> feature_names(3)[-1]
    'gldm_SmallDependenceLowGrayLevelEmphasis'
    """
    if ndim not in (2, 3):
        raise ParameterError(f"ndim: expected 2 or 3, got {ndim!r}. Features exist for images and volumes.")
    shape = {"shape2D": _SHAPE_2D} if ndim == 2 else {"shape": _SHAPE_3D}
    return tuple(f"{group}_{name}" for group, names in (shape | _NAMES).items() for name in names.split())


def extract_features(
    image: Any, mask: Any, *, bin_width: float = 25.0, backend: Backend | None = None
) -> Any:
    """Compute the features of PyRadiomics for an image inside a mask.

    The features are those of PyRadiomics with its default settings at a spacing of 1: 97 for an image (9
    shape, 18 first-order, 24 GLCM, 16 GLRLM, 16 GLSZM, 14 GLDM) and 102 for a volume (14 shape). With the
    default bin width of 25 an image with values in [0, 1] has one grey level, as in the paper: the texture
    features then depend on the mask alone.

    Parameters
    ----------
    image
        2-D or 3-D, such as the entropies of a probability map. Only values inside the mask count; they must
        be finite. Integers are not rescaled.
    mask
        Array of 0 and 1 of the same shape.
    bin_width
        Width of one grey level, above 0.
    backend
        ``"compiled"`` is fast, needs no further package and supports one grey level only. ``"pyradiomics"``
        supports any number, needs ``segtrust[radiomics]``, and may take hours for the shape of a ragged
        volume. ``None`` uses the compiled backend where there is one grey level; otherwise it takes the
        shape, which does not depend on the grey levels, from the compiled backend and all other features from
        PyRadiomics.

    Returns
    -------
    numpy.ndarray
        float64, one value per name in `feature_names`, always finite.

    Raises
    ------
    GreyLevelsError
        If the backend is ``"compiled"`` and the bin width makes several grey levels.
    MissingExtraError
        If PyRadiomics is needed and not installed; the message names the extra.

    Notes
    -----
    A feature that is undefined is 0, with both backends:

    * empty mask: all features;
    * a single pixel: elongation and flatness;
    * no two pixels touch (as with a single pixel): all GLCM features except MCC, which PyRadiomics sets to 1
      if there is one grey level;
    * no two pixels lie on one line of the grid, along an axis or a diagonal: all GLRLM features;
    * no value between the 10th and the 90th percentile, as with two different values:
      ``RobustMeanAbsoluteDeviation``;
    * all values equal: variance, both mean absolute deviations, skewness and kurtosis, which rounding could
      otherwise turn into any number;
    * a feature or a class of features for which PyRadiomics fails, or returns NaN or infinity.

    Examples
    --------
    >>> image = np.array([[0.0, 1.0, 0.75], [0.25, 0.75, 0.0]])
    >>> vector = extract_features(image, image > 0.5)
    >>> features = dict(zip(feature_names(2), vector.tolist(), strict=True))
    >>> features["firstorder_Maximum"], features["shape2D_PixelSurface"], features["glszm_ZonePercentage"]
    (1.0, 3.0, 0.3333333333333333)
    """
    from segtrust.features.region import crop_region  # here, because the compiled loops load Numba
    from segtrust.features.shape import shape_features

    image, mask = _check_arguments(image, mask, bin_width, backend)
    names = feature_names(image.ndim)
    region = crop_region(image, mask)
    if region is None:
        return np.zeros(len(names))
    if backend is None and has_one_level(region.values, bin_width):
        backend = "compiled"
    by_class = (_compiled_features if backend == "compiled" else pyradiomics_features)(region, bin_width)
    shape = pyradiomics_shape(mask) if backend == "pyradiomics" else shape_features(region)
    by_class["shape2D" if image.ndim == 2 else "shape"] = shape
    features = {f"{group}_{name}": value for group in by_class for name, value in by_class[group].items()}
    vector = np.array([features.get(name, 0.0) for name in names], np.float64)
    return np.nan_to_num(vector, nan=0.0, posinf=0.0, neginf=0.0)


def _check_arguments(image: Any, mask: Any, bin_width: Any, backend: Any) -> tuple[Any, Any]:
    """Check the arguments of `extract_features`; return image and mask as NumPy arrays, the mask as uint8."""
    check_nonnegative(bin_width, "bin_width", "a finite number above 0")
    if not bin_width:
        raise ParameterError("bin_width: expected a finite number above 0, got 0.")
    if backend is not None and backend not in BACKENDS:
        raise UnknownNameError(f"Unknown backend {backend!r}; available: {', '.join(BACKENDS)}.")
    image, mask = on_host(as_array(image, "image")), on_host(as_array(mask, "mask"))
    check_shapes(tuple(image.shape), tuple(mask.shape), "image")
    image, mask = np.asarray(image), np.asarray(mask)
    if image.ndim not in (2, 3):
        raise ParameterError(
            f"image: expected 2 or 3 dimensions, got the shape {image.shape}. Pass one channel at a time."
        )
    if image.dtype.kind not in "fiu":
        raise ParameterError(f"image: expected floats or integers, got {image.dtype}. Convert it first.")
    return image, as_binary(mask)


def _compiled_features(region: Region, bin_width: float) -> dict[str, dict[str, float]]:
    """Compute all feature classes except the shape for an image with one grey level."""
    from segtrust.features.texture import texture_features

    if not has_one_level(region.values, bin_width):
        low, high = float(region.values.min()), float(region.values.max())
        raise GreyLevelsError(
            f"bin_width: the backend 'compiled' expects one grey level inside the mask, but a width of "
            f"{bin_width:g} makes several of the values from {low:g} to {high:g}. Use a wider bin, such as "
            "25 for a map in [0, 1], or the backend 'pyradiomics'."
        )
    return {"firstorder": first_order_features(region), **texture_features(region)}


def has_one_level(values: Any, bin_width: float) -> bool:
    """Return whether PyRadiomics would assign all these values to one grey level.

    Its bins are half open and begin at the largest multiple of the width that is not above the smallest
    value; a value on an edge belongs to the bin above. The edges are computed exactly as PyRadiomics computes
    them, because rounding decides about values on an edge.

    Examples
    --------
    >>> has_one_level(np.array([0.0, 1.0]), 25.0), has_one_level(np.array([0.0, 25.0]), 25.0)
    (True, False)
    """
    low, high = values.min(), values.max()
    first = low - low % bin_width
    if bin_width > _HUGE_WIDTH:  # no image has values as large
        return bool(low >= 0.0 or high < 0.0)
    if high > first + 2.0 * bin_width:
        return False
    edges = np.arange(first, high + 2.0 * bin_width, bin_width)
    return bool((np.digitize((low, high), edges) == 1).all())
