"""IDC and its kin by their public names; `tests/kernels/test_integrals.py` has the digits."""

import math

import numpy as np
import pytest

from segtrust.confidence import (
    IdealDice,
    expected_f_beta,
    expected_iou,
    expected_tversky,
    full_posterior_dice,
    ideal_dice_confidence,
)
from segtrust.errors import MaskShapeError, ParameterError, ProbabilityRangeError
from segtrust.maps import Prediction
from segtrust.risks import dice, f_beta, iou
from tests.references import (
    close,
    counted_tversky,
    enumerated_tversky,
    full_posterior,
    logit_normal,
    truths_and_weights,
)

P = logit_normal(10, mean=0)
HARD = P >= 0.5
MASK = np.random.default_rng(1).random(10) < 0.5
EXPECTATIONS = {
    "dice": (ideal_dice_confidence, dice),
    "iou": (expected_iou, iou),
    "f1/4": (lambda *a, **b: expected_f_beta(*a, **b, beta=0.25), lambda *a: f_beta(*a, beta=0.25)),
    "f2": (lambda *a, **b: expected_f_beta(*a, **b, beta=2.0), lambda *a: f_beta(*a, beta=2.0)),
    "f0": (lambda *a, **b: expected_f_beta(*a, **b, beta=0.0), lambda *a: f_beta(*a, beta=0.0)),
}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_are_the_means_of_the_scores_over_all_truths(name):
    expectation, score = EXPECTATIONS[name]
    truths, weights = truths_and_weights(P)
    for mask in (MASK, ~MASK, HARD, np.zeros(10, bool), np.ones(10, bool)):
        mean = sum(weight * score(truth, mask) for truth, weight in zip(truths, weights, strict=True))
        assert close(expectation(P, mask), mean)
        assert type(expectation(P, mask)) is float


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_take_a_threshold(name):
    expectation, _ = EXPECTATIONS[name]
    for threshold in (0, 0.2, 1):
        assert expectation(P, threshold=threshold) == expectation(P, np.greater_equal(P, threshold))


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_f_beta_is_a_tversky_index(beta):
    weight = 1 / (1 + beta**2)
    assert close(expected_f_beta(P, beta=beta), enumerated_tversky(P, HARD, weight, 1 - weight))


class TestFullPosterior:
    @pytest.mark.parametrize("mean", [-12, -4, 0, 6])
    @pytest.mark.parametrize("mask", [MASK, ~MASK, np.zeros(10, bool)])
    def test_equals_the_sum_over_truths_that_are_not_empty(self, mean, mask):
        q = logit_normal(10, mean=mean)
        assert close(full_posterior_dice(q, mask), full_posterior(q, mask))

    @pytest.mark.parametrize("scale", [1e-9, 1e-100, 1e-250])
    def test_does_not_vanish_with_the_probabilities(self, scale):
        q = scale * np.array([2.0, 1.0, 1.0])
        # One pixel is true: the first, alone in the mask, with chance 1/2.
        assert close(full_posterior_dice(q, np.array([1, 0, 0])), 0.5, 1e-8)

    def test_is_the_plain_expectation_where_a_pixel_is_certain(self):
        q = np.append(P, 1.0)
        mask = np.append(MASK, True)
        assert close(full_posterior_dice(q, mask), ideal_dice_confidence(q, mask), 1e-15)

    def test_of_a_map_that_is_surely_empty_is_not_a_number(self):
        assert math.isnan(full_posterior_dice(np.zeros(3), np.ones(3)))

    def test_of_a_large_map(self):
        q = logit_normal((500, 400), mean=-2)
        assert close(full_posterior_dice(q, q > 0.3), ideal_dice_confidence(q, q > 0.3), 1e-15)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", -0.1),
        ("alpha", math.nan),
        ("beta", -1),
        ("beta", math.inf),
        ("beta", math.nan),
        ("beta", "1"),
        ("beta", 1.01e20),
        ("beta", 1e308),
        ("beta", 10**400),
    ],
)
def test_weights_out_of_range(name, value):
    with pytest.raises(ParameterError, match=f"{name}: expected a .*number .*, got "):
        expected_tversky(P, **{"alpha": 0.5, "beta": 0.5, name: value})


def test_a_false_positive_that_outweighs_a_hit_is_refused_with_the_reason():
    with pytest.raises(
        ParameterError, match=r"alpha: expected a number in \[0, 1\] \(beyond, .* diverge\), got 1.1"
    ):
        expected_tversky(P, alpha=1.1, beta=0.5)


@pytest.mark.parametrize("beta", [-1, math.nan, math.inf, 1.01e20, 1e308, 10**200])
def test_beta_out_of_range(beta):
    message = r"beta: expected a finite number of at least 0 and at most 1e\+20, got"
    with pytest.raises(ParameterError, match=message):
        expected_f_beta(P, beta=beta)
    with pytest.raises(ParameterError, match=message):
        f_beta(HARD, MASK, beta=beta)


@pytest.mark.parametrize("beta", [1e9, 10**20])
@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize(
    "background", [[1.0], [1e-12], [0.49] * 1600, [0.5, 1e-5, 1e-10, 1e-20], [1e-7] * 900]
)
def test_the_heaviest_false_negatives_are_exact(background, alpha, beta):
    p = np.concatenate([logit_normal(30, mean=1), background])
    mask = np.arange(p.size) < 30
    found = expected_tversky(p, mask, alpha=alpha, beta=beta)
    assert close(found, counted_tversky(p, mask, alpha, float(beta)), 1e-12)


@pytest.mark.parametrize("beta", [1e9, 1e20, np.float32(1e15), 10**20])
def test_f_beta_of_the_heaviest_beta_is_recall(beta):
    assert close(expected_f_beta(P, MASK, beta=beta), enumerated_tversky(P, MASK, 0, 1), 1e-12)


@pytest.mark.needs("jax")
@pytest.mark.parametrize("beta", [1e20])
def test_singles_do_not_overflow(beta):
    import jax

    p = np.concatenate([[0.9] * 30, np.full(100_000, 0.3)]).astype(np.float32)
    found = expected_tversky(jax.numpy.asarray(p), alpha=0.5, beta=beta)
    assert float(found) == pytest.approx(expected_tversky(p, alpha=0.5, beta=beta), rel=1e-4)


BAD = np.array([0.2, np.nan, 0.7])


@pytest.mark.parametrize(
    "function",
    [
        ideal_dice_confidence,
        expected_iou,
        lambda p: expected_f_beta(p, beta=2),
        lambda p: expected_tversky(p, alpha=0.3, beta=0.7),
        lambda p: full_posterior_dice(p, np.ones(3)),
    ],
)
def test_bad_values_are_refused(function):
    with pytest.raises(ProbabilityRangeError, match=r"got nan at index \(1,\)"):
        function(BAD)


def test_masks_of_another_shape_are_refused():
    with pytest.raises(MaskShapeError):
        full_posterior_dice(P, np.ones(3))


def test_estimator_and_function_agree():
    assert IdealDice().score(Prediction(P, MASK)) == ideal_dice_confidence(P, MASK)


@pytest.mark.parametrize("n", [1, 3, 7, 100, 100_000])
def test_rounding_does_not_carry_it_above_one(n):
    assert 1 - 1e-13 < ideal_dice_confidence(np.ones(n)) <= 1
