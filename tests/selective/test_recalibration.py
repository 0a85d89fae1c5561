"""The curve from confidence to Dice: growing, exact, and short."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from segtrust.errors import CaseLengthError, CaseValueError, ParameterError
from segtrust.selective.recalibration import Recalibration

levels = st.integers(0, 8).map(lambda i: i / 8)
tables = st.integers(1, 12).flatmap(
    lambda n: st.tuples(arrays(np.float64, n, elements=levels), arrays(np.float64, n, elements=levels))
)


def by_max_min(confidence, dice):
    """Isotonic regression by its max-min formula: max over starts of min over ends of the mean between."""
    found = []
    for c in np.unique(confidence):
        starts, ends = (np.unique(confidence[confidence <= c]), np.unique(confidence[confidence >= c]))
        between = [[dice[(confidence >= a) & (confidence <= b)].mean() for b in ends] for a in starts]
        found.append(max(min(row) for row in between))
    return np.array(found)


@given(tables)
def test_equals_the_max_min_formula(table):
    confidence, dice = table
    curve = Recalibration.fit(confidence, dice)
    assert curve.predict(np.unique(confidence)) == pytest.approx(by_max_min(confidence, dice), abs=1e-12)


@given(tables)
def test_keeps_the_mean(table):
    assert Recalibration.fit(*table).predict(table[0]).mean() == pytest.approx(table[1].mean())


def test_knots_inside_a_flat_run_are_left_out():
    curve = Recalibration.fit(np.arange(100) / 100, np.full(100, 0.5))
    assert curve == Recalibration((0.0, 0.99), (0.5, 0.5))


def test_flat_beyond_the_ends():
    assert Recalibration((0.2, 0.4), (0.5, 0.7)).predict([-5, 0.3, 5]) == pytest.approx([0.5, 0.6, 0.7])


def test_survives_json():
    curve = Recalibration.fit(np.random.default_rng(0).random(20), np.random.default_rng(1).random(20))
    assert Recalibration.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


def test_refusals():
    with pytest.raises(CaseValueError, match=r"dice: expected a number in \[0, 1\], got 1\.5 for case 1"):
        Recalibration.fit([0.1, 0.2], [0.5, 1.5])
    with pytest.raises(CaseLengthError, match="dice: expected 2 values"):
        Recalibration.fit([0.1, 0.2], [0.5])
    for knots in (((), ()), ((0.5, 0.1), (0.1, 0.2)), ((0.1, 0.5), (0.2, 0.1)), ((0.1,), (0.1, 0.2))):
        with pytest.raises(ParameterError, match="growing order"):
            Recalibration(*knots)


@pytest.mark.parametrize("dice", [(0.1, 0.5, 1.5), (-0.1, 0.5, 0.9)])
def test_knots_outside_of_the_range_of_dice(dice):
    with pytest.raises(ParameterError, match=rf"expected Dice in \[0, 1\], got {dice[0]} to {dice[2]}"):
        Recalibration((0.1, 0.2, 0.3), dice)
