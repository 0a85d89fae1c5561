"""Loss or Dice: exactly one of them, in every function that takes either, and a warning for the wrong one."""

import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import segtrust as st
from segtrust.errors import ParameterError, SegtrustWarning
from segtrust.selective import Target
from segtrust.selective.vectors import check_outcomes, warn_if_reversed

RNG = np.random.default_rng(7)
CONFIDENCE = RNG.random(200)
DICE = np.clip(CONFIDENCE + RNG.normal(0, 0.1, 200), 0, 1)
LOSS = 1 - DICE
QUICK = st.Bootstrap(resamples=100)


def certificate(c, *loss, **more):
    found = st.certify_threshold(c, *loss, target_risk=0.4, **more)
    return found.threshold, found.digest


USES = {
    "curve": lambda c, *a, **k: st.risk_coverage_curve(c, *a, **k).risks.tolist(),
    "interval": lambda c, *a, **k: st.bootstrap_interval(c, *a, bootstrap=QUICK, **k),
    "comparison": lambda c, *a, **k: st.compare_estimators(c, c**2, *a, bootstrap=QUICK, **k),
    "failures": lambda c, *a, **k: st.failure_detection(c, *a, cutoff=0.5, **k),
    "certificate": certificate,
    "cases": lambda c, *a, **k: st.CalibrationCases(c, *a, **k).digest,
}
DICE_FIRST = {
    "intervals": lambda c, *a, **k: st.ConformalDice(seed=1).fit(c, *a, **k).to_dict(),
    "mean": lambda c, *a, **k: st.MeanDiceEstimator().fit(c, *a, **k).to_dict(),
    "recalibration": st.Recalibration.fit,
}
ALL = USES | DICE_FIRST


@pytest.mark.parametrize("name", ALL)
def test_loss_and_dice_give_the_same(name):
    use = ALL[name]
    first = LOSS if name in USES else 1 - LOSS
    positional = use(CONFIDENCE, first)
    dice = 1 - LOSS  # the losses that the Dice gives, to the last bit
    assert use(CONFIDENCE, loss=1 - dice) == use(CONFIDENCE, dice=dice)
    keyword = use(CONFIDENCE, **{"loss" if name in USES else "dice": first})
    assert positional == keyword


@pytest.mark.parametrize("name", ALL)
def test_exactly_one_is_needed(name):
    with pytest.raises(ParameterError, match="loss, dice: expected exactly one of them, got both"):
        ALL[name](CONFIDENCE, loss=LOSS, dice=DICE)
    with pytest.raises(ParameterError, match="loss, dice: expected exactly one of them, got neither"):
        ALL[name](CONFIDENCE)


@pytest.mark.parametrize("name", ALL)
def test_one_passed_for_the_other_warns_where_it_was_passed(name):
    use = ALL[name]
    with pytest.warns(SegtrustWarning, match="dice: more confident cases have a lower Dice") as caught:
        use(CONFIDENCE, dice=LOSS)
    assert Path(caught[0].filename) == Path(__file__)
    with pytest.warns(SegtrustWarning, match=r"loss: more confident cases have a higher loss.*Pass a Dice"):
        use(CONFIDENCE, loss=DICE)


def test_the_comparison_warns_about_either_confidence():
    with pytest.warns(SegtrustWarning, match="higher loss"):
        st.compare_estimators(CONFIDENCE, -CONFIDENCE, LOSS, bootstrap=QUICK)


def test_a_target_takes_either():
    target = Target(0.2, below_dice=0.5)
    assert target.observed(dice=DICE) == target.observed(LOSS)
    with pytest.raises(ParameterError, match="exactly one"):
        target.observed()


def count_warnings(confidence, quality):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_reversed(np.asarray(confidence, float), np.asarray(quality, float), "dice")
    return len(caught)


def test_small_and_tied_samples_do_not_warn():
    assert count_warnings(np.arange(9), -np.arange(9)) == 0
    assert count_warnings(np.arange(10), -np.arange(10)) == 1
    assert count_warnings(np.ones(100), np.arange(100)) == 0
    assert count_warnings(np.arange(100), np.ones(100)) == 0
    one_failure = np.append(np.ones(99), 0.0)  # the only failure has the highest confidence
    assert count_warnings(np.arange(100), one_failure) == 0
    assert count_warnings(one_failure, -one_failure) == 0
    half = np.repeat([1.0, 0.0], 50)
    assert count_warnings(np.arange(100), half) == 1


def random_levels(count):
    return lambda rng, n: rng.integers(0, count, n).astype(float)


RANDOM = {
    "no ties": (lambda rng, n: rng.random(n), lambda rng, n: rng.random(n)),
    "three confidences": (random_levels(3), lambda rng, n: rng.random(n)),
    "five confidences, success or failure": (random_levels(5), random_levels(2)),
    "success or failure": (lambda rng, n: rng.random(n), random_levels(2)),
    "half of them tied": (
        lambda rng, n: np.maximum(rng.random(n), 0.5),
        lambda rng, n: np.maximum(rng.random(n), 0.5),
    ),
}


@pytest.mark.parametrize("n", [10, 20, 50])
@pytest.mark.parametrize("name", RANDOM)
def test_random_confidences_hardly_ever_warn(name, n):
    rng = np.random.default_rng(n)
    confidence, quality = RANDOM[name]
    alarms = sum(count_warnings(confidence(rng, n), quality(rng, n)) for _ in range(2000))
    assert alarms <= 8  # 0.1 to 0.25 % in 20,000 draws; more than 8 of 2000 have a probability of 7 %


@pytest.mark.parametrize("levels", [3, 4, 8])
def test_few_different_confidences_that_are_reversed_warn(levels):
    confidence = np.arange(20) * levels // 20
    assert count_warnings(confidence, -np.arange(20)) == 1
    assert count_warnings(confidence, np.arange(20)) == 0
    assert count_warnings(np.arange(20) * 2 // 20, -np.arange(20)) == 0


def test_the_correlation_is_that_of_spearman():
    dice = np.round(DICE, 1)
    expected = spearmanr(CONFIDENCE, -dice).statistic
    with pytest.warns(SegtrustWarning, match=f"quality {expected:.2f}\\)"):
        check_outcomes(CONFIDENCE, dice, None)


def test_many_cases_are_checked_quickly():
    confidence = RNG.random(100_000)
    begin = time.perf_counter()
    check_outcomes(confidence, 1 - confidence, None)
    assert time.perf_counter() - begin < 1.0
