"""The output of a model for one image, and the same with its ground truth.

Shape, type and geometry are checked when a value is created. The probabilities themselves are checked in the
pass that sums them, because a separate pass would cost more than the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any

import numpy as np

from segtrust._arguments import check_threshold, checksum_name
from segtrust.errors import GeometryError, ParameterError
from segtrust.kernels import (
    Agreement,
    as_array,
    as_binary,
    check_array,
    check_map_type,
    check_shapes,
    mask_name,
    on_host,
    raise_shape_mismatch,
)

__all__ = ["Case", "EmptyPolicy", "Prediction", "prediction_of", "volume_ml"]


class EmptyPolicy(StrEnum):
    """Score of an empty mask; one choice for the loss and for the confidence.

    Attributes
    ----------
    PAPER
        Two empty masks have a Dice of 0, and an empty mask has a confidence of 0.
    AGREE
        Two empty masks agree, with a Dice of 1. The confidence of an empty mask is the probability Π(1 - p)
        that the truth is empty too.
    """

    PAPER = "paper"
    AGREE = "agree"

    @property
    def dice_of_empty_masks(self) -> float:
        """Dice of two empty masks."""
        return 1.0 if self is EmptyPolicy.AGREE else 0.0

    @classmethod
    def _missing_(cls, value: object) -> EmptyPolicy:
        known = ", ".join(repr(policy.value) for policy in cls)
        raise ParameterError(f"empty: expected one of {known}, got {value!r}.")


@dataclass(frozen=True, eq=False)
class Prediction:
    """Probability map of one image and its mask.

    Attributes
    ----------
    probabilities
        Foreground probability of each pixel, in any number of dimensions: float, uint8 (/ 255), uint16
        (/ 65535) or bool, as an array of NumPy, Dask, Zarr, HDF5, torch, CuPy or JAX.
    mask
        The delivered mask, 0 and 1, of the same shape; ``None`` means ``probabilities >= threshold``.
    threshold
        Decision threshold in [0, 1]; not used if there is a mask.
    id
        Name of the image in errors and tables.
    spacing_mm
        Distance between neighbouring pixels along each axis, in millimetres, or ``None``.
    agreement
        For a map that was fused from an ensemble, how far the masks of its members agree; ``None`` for the
        map of one model.
    image
        The image that was segmented, or ``None``: an array of the map's shape, possibly with further axes
        for colours or channels behind it. Only estimators that see pixels read it.
    checksum
        Checksum of the map, such as the column ``digest`` of a score table, or empty. Whatever learns from
        the map remembers it, so that a copy under another id is recognised.

    Examples
    --------
    >>> import numpy as np
    >>> Prediction(np.zeros((4, 5), np.uint8), id="case 7", spacing_mm=(0.5, 0.5)).shape
    (4, 5)
    """

    probabilities: Any
    mask: Any = None
    threshold: float = 0.5
    id: str = ""
    spacing_mm: tuple[float, ...] | None = None
    agreement: Agreement | None = None
    image: Any = None
    checksum: str = ""

    def __post_init__(self) -> None:
        """Check type, shape and geometry."""
        check_array(self.probabilities, self.source)
        check_map_type(self.probabilities.dtype, self.source)
        if self.mask is not None:
            _check_same_shape(self.mask, self.shape, name=mask_name(self.source))
        check_shapes(self.shape, None, self.source)
        if type(self.threshold) is not float or not 0.0 <= self.threshold <= 1.0:
            threshold = check_threshold(self.threshold, f"{self.source}: threshold")
            object.__setattr__(self, "threshold", threshold)
        if self.spacing_mm is not None:
            _check_spacing(self.spacing_mm, self.shape, self.source)
        if self.image is not None:
            name = f"{self.source}: image"
            check_array(self.image, name)
            if tuple(self.image.shape)[: len(self.shape)] != self.shape:
                raise_shape_mismatch(
                    tuple(self.image.shape), f"the shape of the map, {self.shape}, and then channels", name
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return tuple(self.probabilities.shape)

    @property
    def used_names(self) -> frozenset[str]:
        """Id and checksum, as whatever learns from this map keeps them in ``used_ids``; empty if unknown."""
        return frozenset([self.id, checksum_name(self.checksum)]) - {""}

    @property
    def source(self) -> str:
        """Name of this prediction in errors."""
        return self.id or "prediction"


@dataclass(frozen=True, eq=False)
class Case:
    """A prediction and its ground truth.

    Attributes
    ----------
    prediction
        Probability map of one image and its mask.
    truth
        Reference mask, 0 and 1, of the same shape; ``None`` if it is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.2], [0.7, 0.1]])
    >>> Case(Prediction(p, id="a"), truth=np.array([[1, 0], [1, 1]])).id
    'a'
    """

    prediction: Prediction
    truth: Any

    def __post_init__(self) -> None:
        """Check that truth and map have the same shape."""
        if not isinstance(self.prediction, Prediction):
            raise _no_prediction(self.prediction, "prediction: expected a Prediction")
        if self.truth is not None:
            _check_same_shape(self.truth, self.prediction.shape, name=f"{self.prediction.source}: truth")

    @property
    def id(self) -> str:
        """Name of the image."""
        return self.prediction.id

    @property
    def used_names(self) -> frozenset[str]:
        """Id and checksum, as whatever learns from this case keeps them in ``used_ids``; empty if unknown."""
        return self.prediction.used_names


def _check_same_shape(mask: Any, shape: tuple[int, ...], *, name: str) -> None:
    check_array(mask, name)
    if tuple(mask.shape) != shape:
        raise_shape_mismatch(tuple(mask.shape), f"the shape of the map, {shape}", name)


def prediction_of(case: Case | Prediction) -> Prediction:
    """Return the prediction of a case, or the prediction itself; a bare array is rejected."""
    prediction = case.prediction if isinstance(case, Case) else case
    if not isinstance(prediction, Prediction):
        raise _no_prediction(prediction, "case: expected a Prediction or a Case")
    return prediction


def volume_ml(mask: Any, spacing_mm: Sequence[float]) -> float:
    """Return the volume of a 3-D mask in ml: the number of its voxels times the volume of one voxel.

    Parameters
    ----------
    mask
        Array of 0 and 1, or bool, with three axes. The volume of an empty mask is 0.
    spacing_mm
        Distance between neighbouring voxels along each axis of the array, in mm.

    Examples
    --------
    >>> volume_ml(np.ones((10, 20, 30), bool), spacing_mm=(5.0, 0.5, 0.5))
    7.5
    """
    voxels = as_binary(np.asarray(on_host(as_array(mask, "mask"))), "mask")
    if voxels.ndim != 3:
        raise GeometryError(
            f"mask: expected a volume with 3 axes, got shape {voxels.shape}. Stack the slices of one scan."
        )
    _check_spacing(spacing_mm, voxels.shape, "mask")
    return float(np.count_nonzero(voxels)) * math.prod(map(float, spacing_mm)) / 1000.0


def _no_prediction(value: object, expected: str) -> ParameterError:
    return ParameterError(f"{expected}, got {type(value).__name__}. Wrap an array first: Prediction(p).")


def _check_spacing(spacing_mm: Any, shape: tuple[int, ...], source: str) -> None:
    fits = np.ndim(spacing_mm) == 1 and len(spacing_mm) == len(shape)
    if not (fits and all(isinstance(step, Real) and 0.0 < float(step) < math.inf for step in spacing_mm)):
        raise GeometryError(
            f"{source}: spacing_mm: expected {len(shape)} positive numbers, one per axis, got "
            f"{spacing_mm!r}. Pass the distance between neighbouring pixels, such as {(1.0,) * len(shape)}."
        )
