"""What is said about values that are no probabilities."""

import numpy as np
import pytest

from segtrust.confidence import soft_dice_confidence
from segtrust.errors import ProbabilityRangeError

REMEDIES = {
    "rounding below": ([0.3, -1e-9], r"looks like a rounding error: clip it first, numpy\.clip\(p, 0, 1\)"),
    "rounding above": ([0.3, 1.0 + 1e-6], "looks like a rounding error"),
    "half precision": ([0.3, 1.005], "looks like a rounding error"),
    "logits below": ([0.3, -0.02], "look like logits"),
    "logits above": ([0.3, 1.02], "look like logits"),
    "logits on both sides": ([-7.0, 12.0], "look like logits"),
    "rounding beside logits": ([-1e-9, -4.0], "look like logits"),
    "8-bit levels": ([0.0, 254.0], "look like 8-bit levels"),
    "NaN": ([0.3, np.nan], "never ranked"),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_suits_the_values(name):
    values, remedy = REMEDIES[name]
    with pytest.raises(ProbabilityRangeError, match=remedy):
        soft_dice_confidence(np.array(values))
