"""A map as it is scored: recalibrated, and cut where a mask was asked for."""

from __future__ import annotations

from typing import Any

from segtrust.io.loading import Decoding, ReadOptions
from segtrust.maps import EmptyPolicy, Prediction
from segtrust.policy import prepare_prediction

__all__ = ["as_scored", "is_decoded"]


def as_scored(prediction: Prediction, options: ReadOptions, scaling: Any = None) -> Prediction:
    """Give a prediction as it is scored.

    The best mask is that of the recalibrated map; a mask that was delivered, or that is the map cut at the
    threshold, is that of the map as it was.

    Parameters
    ----------
    prediction
        As it was read with these options.
    options
        Say how a mask is made where none was delivered.
    scaling
        A recalibration of the maps, such as a `segtrust.calibration.Scaling`, or ``None``.
    """
    decode_empty = options.decode_empty or EmptyPolicy.PAPER
    return prepare_prediction(prediction, scaling, decode_empty if is_decoded(prediction, options) else None)


def is_decoded(prediction: Prediction, options: ReadOptions) -> bool:
    """Tell whether the mask of a prediction, as it was read, is still to be sought."""
    return options.decode is Decoding.DICE_OPTIMAL and prediction.mask is None
