"""What every estimator gives at the ends: no doubt, nothing but doubt, one pixel, no mask, all mask."""

import math

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, ThresholdLevel, dice_bounds, score
from tests.references import close, scores

TAU, SIDE = 0.3, 3
EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(TAU), PatchLevel(SIDE)]

ONE_BELOW = math.nextafter(1, 0)
SHAPE = (3, 4)
NOTHING, ALL = np.zeros(SHAPE, bool), np.ones(SHAPE, bool)
ONE_PIXEL = np.arange(12).reshape(SHAPE) == 5

# map, mask: sdc, idc, amsp, apc, ane, mmmc, tla, pla
TABLE = {
    "surely empty": (0.0, None, (0, 0, 1, 1, 0, 0, 0, 0)),
    "surely full": (1.0, None, (1, 1, 1, 1, 0, 0, 0, 0)),
    "surely wrong": (0.0, ALL, (0, 0, 1, 0, 0, 0, 0, 0)),
    "surely missed": (1.0, NOTHING, (0, 0, 1, 0, 0, 0, 0, 0)),
    "one of twelve": (1.0, ONE_PIXEL, (2 / 13, 2 / 13, 1, 1 / 12, 0, 0, 0, 0)),
    "nothing but doubt": (0.5, None, (2 / 3, None, 0.5, 0.5, -1, -2, -1, -9)),
    "doubt and no mask": (0.5, NOTHING, (0, 0, 0.5, 0.5, -1, -2, -1, -9)),
    "tiny": (1e-300, None, (0, 0, 1, 1, None, -2, 0, None)),
    "tiny in the mask": (1e-300, ALL, (2e-300, None, 1, 1e-300, None, -2, 0, None)),
    "smallest": (5e-324, None, (0, 0, 1, 1, None, -2, 0, None)),
    "next to 1": (ONE_BELOW, None, (ONE_BELOW, None, ONE_BELOW, ONE_BELOW, None, -2, 0, None)),
    "next to a half": (math.nextafter(0.5, 0), None, (0, 0, 0.5, 0.5, -1, -2, -1, -9)),
}
NAMES = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "tla", "pla")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", TABLE)
def test_table(name, dtype):
    value, mask, expected = TABLE[name]
    p = np.full(SHAPE, value, dtype)
    if float(p[0, 0]) != value:
        return  # another map in this type
    found = score(p, mask, EVERYTHING)
    pairs = {
        each: (found[each], number)
        for each, number in zip(NAMES, expected, strict=True)
        if number is not None
    }
    assert {each: pair for each, pair in pairs.items() if not math.isclose(*pair, rel_tol=1e-13)} == {}
    assert all(map(math.isfinite, found.values()))


def wrong(found, reference):
    """Scores that differ; a mean of probabilities is right to 1e-15, not to digits of what is left of it."""
    return {
        name: (found[name], reference[name])
        for name in NAMES
        if not close(found[name], reference[name])
        and not (name == "apc" and abs(found[name] - reference[name]) < 1e-15)
    }


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e-9, 0.1, 0.35, 0.5, 0.9, 1 - 1e-9, ONE_BELOW, 1.0])
@pytest.mark.parametrize("shape", [SHAPE, (2, 3, 2), (1,)])
def test_one_value_everywhere(value, shape):
    p = np.full(shape, value)
    for mask in (None, NOTHING, ALL, ONE_PIXEL):
        delivered = p >= 0.5 if mask is None else mask.reshape(-1)[: p.size].reshape(shape)
        found = score(p, None if mask is None else delivered, EVERYTHING)
        assert wrong(found, scores(p, delivered, TAU, SIDE)) == {}


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_certain_masks_have_narrow_bounds(value):
    p = np.where(ONE_PIXEL, 1.0, value)
    bounds = dice_bounds(p)
    if value == 0:
        assert (bounds.lower, bounds.upper, bounds.relative_error) == (1, 1, 0)
    assert bounds.mu == 1


def test_a_mask_without_probability_has_the_limits_of_the_bounds():
    bounds = dice_bounds(np.zeros(4), np.array([1, 1, 0, 0]))
    assert (bounds.k, bounds.s, bounds.mu, bounds.lam, bounds.upper) == (2, 0, 0, 0, 1)
    assert math.isclose(bounds.lower, 2 / 3)
