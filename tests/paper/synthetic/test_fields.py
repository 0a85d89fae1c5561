"""Smooth fields have the variance and the correlation that they promise, and truths the probabilities."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from segtrust.paper.synthetic.fields import SmoothField, sampled_dices
from tests.references import enumerated_tversky


@pytest.mark.parametrize(("side", "length"), [(20, 0.1), (21, 0.07), (10, 0.0)])
def test_correlation_falls_with_the_distance(side, length):
    fields = SmoothField(side, length).draw(np.random.default_rng(0), 3000)
    assert abs(fields.mean()) < 0.05
    for distance in range(4):
        found = float((fields * np.roll(fields, distance, axis=2)).mean())
        wanted = math.exp(-((distance / side / length) ** 2) / 2) if length else float(distance == 0)
        assert found == pytest.approx(wanted, abs=0.03)
        assert found == pytest.approx(float((fields * np.roll(fields, distance, axis=1)).mean()), abs=0.03)


def test_values_are_standard_normal_and_the_two_of_a_pair_independent():
    fields = SmoothField(16, 0.2).draw(np.random.default_rng(1), 20_000)
    one = fields[:, 3, 5]
    np.testing.assert_allclose(np.quantile(one, [0.05, 0.5, 0.95]), norm.ppf([0.05, 0.5, 0.95]), atol=0.05)
    assert abs(np.corrcoef(one[:10_000], one[10_000:])[0, 1]) < 0.04


@pytest.mark.parametrize("count", [1, 2, 5])
def test_any_number_of_fields(count):
    assert SmoothField(8, 0.3).draw(np.random.default_rng(0), count).shape == (count, 8, 8)


def test_drawn_truths_of_independent_pixels_have_the_enumerated_mean():
    q = np.array([[0.9, 0.2, 0.6], [0.1, 0.5, 0.3], [0.05, 0.7, 0.4]])
    dices = sampled_dices(q, q >= 0.5, SmoothField(3, 0.0), np.random.default_rng(0), 40_000)
    wanted = float(enumerated_tversky(q, q >= 0.5))
    assert abs(dices.mean() - wanted) < 4 * dices.std() / 200


def test_fully_smooth_errors_move_all_pixels_at_once():
    """With a length of many sides there are two truths for a constant map: everything and nothing."""
    q = np.full((6, 6), 0.3)
    dices = sampled_dices(q, np.ones((6, 6), bool), SmoothField(6, 1.0), np.random.default_rng(0), 4000)
    assert set(dices) == {0.0, 1.0}
    assert dices.mean() == pytest.approx(0.3, abs=0.03)


def test_certain_maps_have_one_truth():
    q = np.zeros((4, 4))
    q[1:3, 1:3] = 1.0
    dices = sampled_dices(q, q >= 0.5, SmoothField(4, 0.2), np.random.default_rng(0), 7)
    assert dices.tolist() == [1.0] * 7
    assert sampled_dices(0 * q, q < 0, SmoothField(4, 0.2), np.random.default_rng(0), 3).tolist() == [0.0] * 3
