"""Maps, and what is asked of them, for the tests of arrays that other libraries than NumPy sum."""

import numpy as np
import pytest

import segtrust
from segtrust import ThresholdLevel
from tests.references import logit_normal

TOLERANCE = 1e-12
ESTIMATORS = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla", ThresholdLevel(tau=0.3))

RANDOM = np.random.default_rng(7)
MAPS = {
    "random": RANDOM.random((9, 11)),
    "logit-normal": logit_normal((70, 60)),
    "several blocks": logit_normal((3, 181, 191)),
    "much mass": logit_normal((5, 160, 170), mean=0.0),
    "volume": logit_normal((7, 12, 13)),
    "four dimensions": logit_normal((3, 4, 5, 6)),
    "one dimension": logit_normal(50),
    "one pixel": np.array([0.7]),
    "no dimension": np.array(0.7),
    "zeros": np.zeros((6, 7)),
    "ones": np.ones((6, 7)),
    "halves": np.full((6, 7), 0.5),
    "saturated": RANDOM.integers(0, 2, (8, 9)).astype(float),
    "negative zeros": np.array([-0.0, 0.0, 0.9]),
    "near empty": np.where(RANDOM.random((40, 50)) < 0.999, 0.0, 0.6),
    "near full": 1.0 - 1e-9 * RANDOM.random((20, 30)),
    "tiny": 10.0 ** -RANDOM.uniform(5, 300, (10, 12)),
    "ties": RANDOM.choice([0.0, 0.25, 0.75], (300, 301)),
    "half certain": np.where(np.arange(90000) % 2, 0.0, RANDOM.random(90000)),
}


def public_values(p, mask=None, *, threshold=0.5):
    """Every public number that a map and a mask have, by name."""
    delivered = p >= threshold if mask is None else mask
    values = {
        "soft_dice_confidence": segtrust.soft_dice_confidence(p, mask, threshold=threshold),
        "sdc, agree": segtrust.soft_dice_confidence(p, mask, threshold=threshold, empty="agree"),
        "ideal_dice_confidence": segtrust.ideal_dice_confidence(p, mask, threshold=threshold),
        "idc, agree": segtrust.ideal_dice_confidence(p, mask, threshold=threshold, empty="agree"),
        "expected_iou": segtrust.expected_iou(p, mask, threshold=threshold),
        "expected_f_beta": segtrust.expected_f_beta(p, mask, beta=2.0, threshold=threshold),
        "expected_tversky": segtrust.expected_tversky(p, mask, alpha=0.3, beta=0.6, threshold=threshold),
        "full_posterior_dice": segtrust.full_posterior_dice(p, delivered),
        "average_class_probability": segtrust.average_class_probability(p, mask, threshold=threshold),
        "average_max_probability": segtrust.average_max_probability(p),
        "average_negative_entropy": segtrust.average_negative_entropy(p),
        "median_min_max_confidence": segtrust.median_min_max_confidence(p),
        "patch_level_confidence": segtrust.patch_level_confidence(p, size=3),
        "threshold_level_confidence": segtrust.threshold_level_confidence(p, tau=0.4),
    }
    return values | segtrust.score(p, mask, ESTIMATORS, threshold=threshold)


GOOD = np.full((2, 3), 0.5, np.float32)
BAD = {
    "NaN": (np.array([[0.1, np.nan]]), None),
    "infinite": (np.array([[0.1, np.inf]]), None),
    "all NaN": (np.array([np.nan, np.nan]), None),
    "logits": (np.array([[0.1, 0.2], [-3.0, 2.0]]), None),
    "levels": (np.array([0.0, 254.0]), None),
    "a little above 1": (np.array([0.0, 1.0 + 1e-9]), None),
    "half-precision logits": (np.array([0.1, -2.0], np.float16), None),
    "no pixel": (np.zeros((0, 3)), None),
    "complex": (np.array([0.5 + 0j]), None),
    "signed": (np.array([0, 1], np.int16), None),
    "wide unsigned": (np.array([0, 1], np.uint32), None),
    "mask of another shape": (GOOD, np.zeros((3, 2), bool)),
    "mask of labels": (GOOD, np.array([[0, 1, 2], [3, 4, 5]], np.int64)),
    "mask of many labels": (GOOD.repeat(5, 0), np.arange(30, dtype=np.uint8).reshape(10, 3)),
    "mask of probabilities": (GOOD, np.full((2, 3), 0.25)),
    "complex mask": (GOOD, np.zeros((2, 3), complex)),
}


def complaint(p, mask):
    with pytest.raises(segtrust.errors.SegtrustError) as caught:
        segtrust.score(p, mask, ["sdc", "idc", "amsp"])
    return type(caught.value), str(caught.value).replace("torch.", "")
