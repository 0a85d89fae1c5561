"""What is said about values that are no probabilities."""

import numpy as np
import pytest

from segtrust.confidence import soft_dice_confidence
from segtrust.errors import NotBinaryError, ProbabilityRangeError


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
