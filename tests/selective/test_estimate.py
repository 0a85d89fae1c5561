"""The curve from confidence to Dice, and the mean Dice without labels: right, or withheld."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    NotFittedError,
    ParameterError,
    SeenCasesError,
    TooFewCasesError,
)
from segtrust.selective import ExchangeabilityMartingale, MeanDiceEstimator, Recalibration
from tests.selective.polyps import INSIDE, OUTSIDE, vectors

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*more confident cases have:segtrust.errors.SegtrustWarning"  # random confidences, by chance
)

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


def test_invalid_knots():
    with pytest.raises(CaseValueError, match=r"dice: expected a number in \[0, 1\], got 1\.5 for case 1"):
        Recalibration.fit([0.1, 0.2], [0.5, 1.5])
    with pytest.raises(CaseLengthError, match="dice: expected 2 values"):
        Recalibration.fit([0.1, 0.2], [0.5])
    for knots in (((), ()), ((0.5, 0.1), (0.1, 0.2)), ((0.1, 0.5), (0.2, 0.1)), ((0.1,), (0.1, 0.2))):
        with pytest.raises(ParameterError, match="increasing order"):
            Recalibration(*knots)


@pytest.mark.parametrize("dice", [(0.1, 0.5, 1.5), (-0.1, 0.5, 0.9)])
def test_knots_outside_of_the_range_of_dice(dice):
    with pytest.raises(ParameterError, match=rf"expected Dice in \[0, 1\], got {dice[0]} to {dice[2]}"):
        Recalibration((0.1, 0.2, 0.3), dice)


def draw(rng, n):
    confidence = rng.beta(8, 2, n)
    return confidence, np.clip(confidence**1.5 + rng.normal(0, 0.25 * (1 - confidence) + 0.03), 0, 1)


def test_interval_holds_for_the_population_and_for_these_cases():
    rng = np.random.default_rng(0)
    truth = draw(np.random.default_rng(1), 10**6)[1].mean()
    found = []
    for seed in range(80):
        estimator = MeanDiceEstimator(0.9, alpha=0.001, resamples=200, seed=seed).fit(*draw(rng, 100))
        new, dice = draw(rng, 80)
        mean = estimator.estimate(new)
        if not mean.withheld:
            found.append([mean.lower <= each <= mean.upper for each in (truth, dice.mean())])
    assert len(found) >= 77
    assert (np.mean(found, axis=0) >= 0.9 - 3 * np.sqrt(0.09 / len(found))).all()


@pytest.mark.parametrize("n", [10, 20])
def test_interval_holds_if_few_cases_are_labelled_and_failures_are_rare(n):
    """3 % of the cases have a Dice of about 0.2; most samples of 10 or 20 contain none of them."""

    def failing(rng, n):
        confidence, dice = draw(rng, n)
        return confidence, np.where(rng.random(n) < 0.03, rng.beta(2, 8, n), dice)

    truth, rng = failing(np.random.default_rng(1), 10**6)[1].mean(), np.random.default_rng(n)
    contained = []
    for seed in range(60):
        estimator = MeanDiceEstimator(alpha=0.01, resamples=100, seed=seed).fit(*failing(rng, n))
        mean = estimator.estimate(failing(rng, 100)[0])
        if not mean.withheld:
            contained.append(mean.lower <= truth <= mean.upper)
    assert np.mean(contained) >= 0.93


def test_interval_is_that_of_clopper_and_pearson_if_confidences_are_tied_and_dice_is_0_or_1():
    dice = np.array([0.0] * 3 + [1.0] * 17)
    mean = MeanDiceEstimator(resamples=4000).fit([0.5] * 20, dice).estimate([0.5] * 2000)
    expected = stats.binomtest(17, 20).proportion_ci()
    assert (mean.lower, mean.upper) == pytest.approx(tuple(expected), abs=0.015)


def test_interval_stays_within_the_range_of_dice():
    """Ten perfect cases do not show that all are perfect."""
    confidence = np.linspace(0.5, 0.9, 10)
    best, worst = (
        MeanDiceEstimator().fit(confidence, [dice] * 10).estimate(confidence) for dice in (1.0, 0.0)
    )
    assert (best.value, best.upper, worst.value, worst.lower) == (1.0, 1.0, 0.0, 0.0)
    assert best.lower < 0.8
    assert worst.upper > 0.2


def test_what_is_not_said_is_the_same_in_each_release():
    plain = MeanDiceEstimator()
    assert (plain.level, plain.alpha, plain.resamples, plain.seed) == (0.95, 0.05, 1000, 0)


def test_value_is_the_mean_of_the_recalibrated_confidence():
    rng = np.random.default_rng(2)
    confidence, dice = draw(rng, 100)
    new = draw(rng, 50)[0]
    mean = MeanDiceEstimator().fit(confidence, dice).estimate(new)
    assert mean.value == Recalibration.fit(confidence, dice).predict(new).mean()
    assert mean.lower < mean.value < mean.upper
    assert (mean.n_reference, mean.n_new, mean.withheld, mean.reason) == (100, 50, False, None)
    assert MeanDiceEstimator().fit(confidence, dice).estimate(new) == mean


def test_withheld_when_the_test_alarms():
    rng = np.random.default_rng(2)
    estimator = MeanDiceEstimator().fit(*draw(rng, 100))
    mean = estimator.estimate(draw(rng, 100)[0] ** 3)
    assert (mean.value, mean.lower, mean.upper, mean.withheld) == (None, None, None, True)
    assert "Drift detected (two-sample test" in mean.reason
    assert json.loads(json.dumps(mean.to_dict()))["test"]["alarm"]


def test_withheld_when_the_martingale_alarms():
    rng = np.random.default_rng(2)
    confidence, dice = draw(rng, 100)
    watch = ExchangeabilityMartingale(confidence)
    estimator, new = MeanDiceEstimator().fit(confidence, dice), draw(rng, 50)[0]
    assert not estimator.estimate(new, watches=[watch]).withheld
    watch.extend(draw(rng, 60)[0] ** 4)
    mean = estimator.estimate(new, watches=[watch])
    assert mean.value is None
    assert not mean.test.alarm
    assert mean.reason.startswith("Drift detected after ")


def test_all_tied():
    mean = MeanDiceEstimator().fit([0.5] * 20, [0.2, 0.6] * 10).estimate([0.5] * 10)
    assert mean.value == pytest.approx(0.4)
    assert mean.lower < 0.4 < mean.upper


def test_invalid_arguments():
    with pytest.raises(NotFittedError):
        MeanDiceEstimator().estimate([0.5, 0.5])
    with pytest.raises(ParameterError, match="resamples"):
        MeanDiceEstimator(resamples=0)
    confidence = np.linspace(0.5, 0.9, 20)
    with pytest.raises(SeenCasesError):
        MeanDiceEstimator().fit(confidence, confidence, ids=range(20), used_ids=[7])
    fitted = MeanDiceEstimator().fit(confidence, confidence, ids=range(20))
    with pytest.raises(SeenCasesError):
        fitted.estimate([0.5, 0.6], ids=["7", "c"])
    with pytest.raises(TooFewCasesError):
        fitted.estimate([0.5])
    with pytest.raises(CaseLengthError, match="ids: expected 20 values"):
        MeanDiceEstimator().fit(confidence * np.nan, confidence, ids=["a"])
    with pytest.raises(CaseLengthError, match="ids: expected 2 values"):
        fitted.estimate([0.5, np.nan], ids=["a"])


def test_too_few_to_learn_from():
    with pytest.raises(TooFewCasesError, match="at least 10 cases, got 2"):
        MeanDiceEstimator().fit([0.5, 0.6], [0.5, 0.6])


@pytest.mark.parametrize("name", ["level", "alpha"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_certainty_is_not_on_offer(name, value):
    with pytest.raises(ParameterError, match=name):
        MeanDiceEstimator(**{name: value})


def test_fewest_resamples():
    assert MeanDiceEstimator(resamples=100).resamples == 100
    with pytest.raises(ParameterError, match="resamples"):
        MeanDiceEstimator(resamples=99)


def test_a_single_case_has_no_mean_to_estimate():
    """Though one, of many labelled cases, could make the test before it alarm."""
    confidence = np.linspace(0.1, 0.9, 80)
    with pytest.raises(TooFewCasesError, match="at least 2"):
        MeanDiceEstimator().fit(confidence, confidence).estimate([0.5])


def test_too_few_for_the_test_that_comes_first():
    """Two new cases among 12 give no p-value below 2/66, whatever they are."""
    confidence = np.linspace(0.5, 0.9, 10)
    fitted = MeanDiceEstimator(alpha=0.02).fit(confidence, confidence)
    with pytest.raises(
        TooFewCasesError, match=r"10 labelled and 2 new cases cannot show a drift at alpha = 0.02"
    ):
        fitted.estimate([0.0, 0.0])
    assert MeanDiceEstimator(alpha=0.05).fit(confidence, confidence).estimate([0.0, 0.0]).withheld


@pytest.mark.needs("data:polyp", "PIL")
def test_polyps_out_of_distribution(data):
    """It would say 0.85 where 0.80 is true, so it says nothing."""
    inside, outside = (vectors(data("polyp"), sets) for sets in (INSIDE, OUTSIDE))
    would_say = Recalibration.fit(*inside[:2]).predict(outside[0]).mean()
    assert (round(would_say, 3), round(outside[1].mean(), 3)) == (0.850, 0.799)
    estimator = MeanDiceEstimator().fit(*inside[:2], ids=inside[2])
    assert estimator.estimate(outside[0], ids=outside[2]).value is None


@pytest.mark.needs("data:polyp", "PIL")
def test_polyps_in_distribution(data):
    """One half against the other, 50 times: given nearly always, and right."""
    confidence, dice, _ = vectors(data("polyp"), INSIDE)
    found, errors = [], []
    for seed in range(50):
        one, other = np.array_split(np.random.default_rng(seed).permutation(confidence.size), 2)
        estimator = MeanDiceEstimator(resamples=200, seed=seed).fit(confidence[one], dice[one])
        mean, truth = estimator.estimate(confidence[other]), dice[other].mean()
        if not mean.withheld:
            found.append(mean.lower <= truth <= mean.upper)
            errors.append(mean.value - truth)
    assert len(found) >= 45
    assert np.mean(found) >= 0.85
    assert abs(np.mean(errors)) < 0.01


def test_a_small_alpha_can_still_withhold():
    confidence = np.random.default_rng(0).random(200)
    estimator = MeanDiceEstimator(alpha=1e-4, resamples=100).fit(confidence, confidence**2)
    assert estimator.estimate(confidence - 0.6).value is None


@pytest.mark.parametrize("watches", ["w", ["w"], 7, ExchangeabilityMartingale(np.arange(20.0))])
def test_what_cannot_watch(watches):
    estimator = MeanDiceEstimator(resamples=100).fit(np.arange(20) / 20, np.arange(20) / 20)
    with pytest.raises(ParameterError, match="watches: expected"):
        estimator.estimate(np.arange(20) / 20, watches=watches)


def test_the_labelled_cases_are_copied():
    confidence, dice = np.linspace(0, 1, 50), np.linspace(0, 1, 50)
    estimator = MeanDiceEstimator().fit(confidence, dice)
    confidence[:], dice[:] = 0.0, 0.0
    assert estimator.confidence.max() == estimator.dice.max() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        estimator.dice[0] = 1.0
