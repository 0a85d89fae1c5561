"""What is said about values that are no probabilities, masks that are none, and numbers out of range."""

import numpy as np
import pytest

from segtrust.confidence import expected_f_beta, patch_level_confidence, soft_dice_confidence
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
)
from segtrust.maps import Prediction
from segtrust.risks import dice


def as_torch(values):
    import torch

    return torch.from_numpy(values)


KINDS = [np.asarray, pytest.param(as_torch, marks=pytest.mark.needs("torch"))]

REMEDIES = {
    "rounding below": ([0.3, -1e-9], r"looks like a rounding error: clip it first, numpy\.clip\(p, 0, 1\)"),
    "rounding above": ([0.3, 1.0 + 1e-6], "looks like a rounding error"),
    "half precision": ([0.3, 1.005], "looks like a rounding error"),
    "logits below": ([0.3, -0.02], "look like logits"),
    "logits above": ([0.3, 1.02], "look like logits"),
    "logits on both sides": ([-7.0, 12.0], "look like logits"),
    "rounding beside logits": ([-1e-9, -4.0], "look like logits"),
    "8-bit levels": ([0.0, 254.0], "look like 8-bit levels"),
    "logits above 1 only": ([0.2, 3.7, 8.1], "look like logits"),
    "logits between whole numbers": ([0.0, 3.7, 8.0], "look like logits"),
    "NaN": ([0.3, np.nan], "never ranked"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_suits_the_values(name, kind):
    values, remedy = REMEDIES[name]
    with pytest.raises(ProbabilityRangeError, match=remedy):
        soft_dice_confidence(kind(np.array(values)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0 + 1e-9, "1.000000001"), (np.nextafter(1.0, 2.0), "1.0000000000000002"), (1.25, "1.25")],
)
def test_an_excess_is_not_rounded_to_the_bound(value, shown, kind):
    with pytest.raises(ProbabilityRangeError, match=rf"got {shown} at .* span \[0.5, {shown}\]"):
        soft_dice_confidence(kind(np.array([0.5, value])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "shown"),
    [([np.nan] * 9, "nan"), ([np.nan, 3, 3, np.nan], "3, nan"), ([0, 1 + 1e-9], "1.000000001")],
)
def test_values_of_a_mask_are_listed_once(values, shown, kind):
    mask = np.array(values, float)
    with pytest.raises(NotBinaryError, match=rf"got the values {shown}\. Threshold"):
        soft_dice_confidence(kind(np.full(mask.shape, 0.5)), kind(mask))


P = np.full((2, 3), 0.25)
BOTH_SHAPES = r"got \(2, 3\)\. Both must lie on the same grid; resample or transpose one of them first"
BAD_CALLS = {
    "dice of two shapes": (lambda: dice(P > 0, P.T > 0), MaskShapeError, BOTH_SHAPES),
    "mask of another shape": (lambda: soft_dice_confidence(P.T, P > 0), MaskShapeError, BOTH_SHAPES),
    "mask of a prediction": (lambda: Prediction(P.T, P > 0), MaskShapeError, BOTH_SHAPES),
    "object mask": (
        lambda: soft_dice_confidence(P, (P > 0).astype(object)),
        MaskError,
        r"got object\. Make it bool first, for example mask == 1\.",
    ),
    "object truth": (
        lambda: dice((P > 0).astype(object), P > 0),
        MaskError,
        r"truth: .* got object\. Make it bool first",
    ),
    "complex mask": (
        lambda: soft_dice_confidence(P, P + 0j),
        MaskError,
        r"got complex128\. Make it bool first",
    ),
    "threshold in percent": (
        lambda: soft_dice_confidence(P, threshold=50),
        ParameterError,
        r"threshold: expected a number in \[0, 1\], got 50\. Divide a percentage by 100",
    ),
    "threshold of logits": (
        lambda: soft_dice_confidence(P, threshold=-0.5),
        ParameterError,
        r"got -0\.5\. .* of a logit take the sigmoid\.",
    ),
    "threshold that is none": (lambda: Prediction(P, threshold=np.nan), ParameterError, r"got nan\. Divide"),
    "weight": (lambda: expected_f_beta(P, beta=-1), ParameterError, r"got -1\. Choose a number within"),
    "box": (lambda: patch_level_confidence(P, size=0), ParameterError, r"got 0\. It is the side of the box"),
    "nothing": (lambda: soft_dice_confidence(P[:0]), EmptyArrayError, "or leave the case out"),
    "two empty arrays": (lambda: dice(P[:0], P[:0]), EmptyArrayError, "or leave the case out"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_it_is_said_what_to_do(name):
    call, error, remedy = BAD_CALLS[name]
    with pytest.raises(error, match=remedy):
        call()


@pytest.mark.parametrize("dtype", [object, complex])
def test_the_remedy_for_a_mask_of_an_odd_type_helps(dtype):
    mask = np.array([[0, 1, 1], [0, 0, 1]])
    assert soft_dice_confidence(P, mask.astype(dtype) == 1) == soft_dice_confidence(P, mask)


@pytest.mark.needs("dask")
def test_a_chunked_map_is_refused_in_the_same_words():
    import dask.array

    with pytest.raises(MaskShapeError, match=BOTH_SHAPES):
        soft_dice_confidence(dask.array.from_array(P.T), P > 0)
    with pytest.raises(EmptyArrayError, match="or leave the case out"):
        soft_dice_confidence(dask.array.from_array(P[:0]))
