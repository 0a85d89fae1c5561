"""The names of the features, in the order in which they stand in a vector."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from segtrust.errors import ParameterError

__all__ = ["CLASSES", "SHAPE_CLASSES", "Features", "as_vector", "feature_names"]

_SHAPE = """Elongation Flatness LeastAxisLength MajorAxisLength Maximum2DDiameterColumn Maximum2DDiameterRow
    Maximum2DDiameterSlice Maximum3DDiameter MeshVolume MinorAxisLength Sphericity SurfaceArea
    SurfaceVolumeRatio VoxelVolume"""
_SHAPE_2D = """Elongation MajorAxisLength MaximumDiameter MeshSurface MinorAxisLength Perimeter
    PerimeterSurfaceRatio PixelSurface Sphericity"""
_FIRST_ORDER = """10Percentile 90Percentile Energy Entropy InterquartileRange Kurtosis Maximum Mean
    MeanAbsoluteDeviation Median Minimum Range RobustMeanAbsoluteDeviation RootMeanSquared Skewness
    TotalEnergy Uniformity Variance"""
_GLCM = """Autocorrelation ClusterProminence ClusterShade ClusterTendency Contrast Correlation
    DifferenceAverage DifferenceEntropy DifferenceVariance Id Idm Idmn Idn Imc1 Imc2 InverseVariance
    JointAverage JointEnergy JointEntropy MCC MaximumProbability SumAverage SumEntropy SumSquares"""
_GLRLM = """GrayLevelNonUniformity GrayLevelNonUniformityNormalized GrayLevelVariance
    HighGrayLevelRunEmphasis LongRunEmphasis LongRunHighGrayLevelEmphasis LongRunLowGrayLevelEmphasis
    LowGrayLevelRunEmphasis RunEntropy RunLengthNonUniformity RunLengthNonUniformityNormalized RunPercentage
    RunVariance ShortRunEmphasis ShortRunHighGrayLevelEmphasis ShortRunLowGrayLevelEmphasis"""
_GLSZM = """GrayLevelNonUniformity GrayLevelNonUniformityNormalized GrayLevelVariance
    HighGrayLevelZoneEmphasis LargeAreaEmphasis LargeAreaHighGrayLevelEmphasis LargeAreaLowGrayLevelEmphasis
    LowGrayLevelZoneEmphasis SizeZoneNonUniformity SizeZoneNonUniformityNormalized SmallAreaEmphasis
    SmallAreaHighGrayLevelEmphasis SmallAreaLowGrayLevelEmphasis ZoneEntropy ZonePercentage ZoneVariance"""
_GLDM = """DependenceEntropy DependenceNonUniformity DependenceNonUniformityNormalized DependenceVariance
    GrayLevelNonUniformity GrayLevelVariance HighGrayLevelEmphasis LargeDependenceEmphasis
    LargeDependenceHighGrayLevelEmphasis LargeDependenceLowGrayLevelEmphasis LowGrayLevelEmphasis
    SmallDependenceEmphasis SmallDependenceHighGrayLevelEmphasis SmallDependenceLowGrayLevelEmphasis"""

_AFTER_SHAPE = {
    "firstorder": _FIRST_ORDER,
    "glcm": _GLCM,
    "glrlm": _GLRLM,
    "glszm": _GLSZM,
    "gldm": _GLDM,
}
CLASSES: dict[int, dict[str, str]] = {
    2: {"shape2D": _SHAPE_2D, **_AFTER_SHAPE},
    3: {"shape": _SHAPE, **_AFTER_SHAPE},
}
"""By number of dimensions: the short names of each class, separated by spaces."""
SHAPE_CLASSES = {2: "shape2D", 3: "shape"}
"""By number of dimensions: the class that sees the mask alone, whatever the grey levels."""

Features = dict[str, dict[str, float]]
"""Values by class and short name."""


@cache
def feature_names(ndim: int) -> tuple[str, ...]:
    """Give the full names of the features of an image with so many dimensions.

    A full name is that of PyRadiomics, class first, so that short names that several classes use do not
    collide: three classes have a ``GrayLevelVariance``.

    Parameters
    ----------
    ndim
        2 for 97 names, 3 for 102.

    Returns
    -------
    tuple of str
        In the order of the vector that `extract_features` gives: classes in the order shape, first order,
        GLCM, GLRLM, GLSZM, GLDM, and in a class by the alphabet.

    Examples
    --------
    >>> len(feature_names(2)), len(feature_names(3))
    (97, 102)
    >>> feature_names(3)[-1]
    'gldm_SmallDependenceLowGrayLevelEmphasis'
    """
    if ndim not in CLASSES:
        raise ParameterError(f"ndim: expected 2 or 3, got {ndim!r}. Features exist for images and volumes.")
    return tuple(f"{group}_{name}" for group, names in CLASSES[ndim].items() for name in names.split())


def as_vector(found: Features, ndim: int) -> Any:
    """Put features in the order of their names; what is missing, NaN or infinite becomes 0."""
    values = [found[group].get(name, 0.0) for group, names in CLASSES[ndim].items() for name in names.split()]
    return np.nan_to_num(np.array(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
