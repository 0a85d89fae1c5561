"""Failure detection, compared with pairwise and stepwise definitions."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from segtrust.errors import CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective import Target, failure_detection
from tests.selective import brute

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*more confident cases have:segtrust.errors.SegtrustWarning"  # random confidences, by chance
)


def test_compared_with_slow_definitions():
    rng = np.random.default_rng(0)
    for n in rng.integers(5, 60, 300):
        confidence = rng.integers(0, rng.integers(2, 40), n).astype(float)
        loss = rng.random(n)
        loss[:2] = 0, 1
        detection = failure_detection(confidence, loss, cutoff=0.7)
        slow = (brute.auroc, brute.average_precision, brute.false_alarms)
        expected = [score(confidence, loss > 0.3) for score in slow]
        assert (detection.auroc, detection.aupr, detection.fpr_at_95_tpr) == pytest.approx(
            expected, abs=1e-12
        )
        assert detection.failures == np.sum(loss > 0.3)


def test_false_positives_at_95_percent_of_the_failures():
    """19 of 20 failures are 95 %; with the 19th, three of the ten others are flagged as well."""
    confidence = np.arange(30.0)
    loss = np.ones(30)
    loss[[2, 7, 15, *range(22, 28), 29]] = 0.0
    detection = failure_detection(confidence, loss, cutoff=0.5)
    assert (detection.failures, detection.fpr_at_95_tpr) == (20, 3 / 10)
    loss[21], loss[22] = 0.0, 1.0  # the 19th failure is a little more confident than a fourth of the others
    assert failure_detection(confidence, loss, cutoff=0.5).fpr_at_95_tpr == 4 / 10


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(2)
    confidence, loss = rng.integers(0, 9, 50).astype(float), rng.random(50)
    detection = failure_detection(confidence, loss, cutoff=0.5)
    assert detection.spearman == pytest.approx(spearmanr(confidence, 1 - loss).statistic)
    assert detection.pearson == pytest.approx(pearsonr(confidence, 1 - loss).statistic)


def test_correlation_of_far_away_numbers():
    detection = failure_detection([1e300, 2e300, 3e300], [0.5, 0.25, 0], cutoff=0.6)
    assert detection.pearson == pytest.approx(1)


@pytest.mark.parametrize("scale", [1.0, 5e-324 * 2.0**60, 1.7e308])
def test_correlation_of_numbers_that_differ_in_their_last_digits(scale):
    confidence = scale * (1.0 - np.array([0, 0, 1, 0, 0, 3, 0]) * 2.0**-53)
    loss = np.array([0.1, 0.2, 0.7, 0.3, 0.1, 0.9, 0.0])
    detection = failure_detection(confidence, loss, cutoff=0.5)
    assert detection.pearson == pytest.approx(
        float(brute.correlation(confidence / scale, 1 - loss)), rel=1e-14
    )


def test_correlation_of_the_largest_numbers():
    detection = failure_detection([-1.7e308, 0.0, 1.7e308], [1.0, 0.5, 0.0], cutoff=0.6)
    assert detection.pearson == pytest.approx(1)


@pytest.mark.parametrize("dice", [0.1, 0.3, 0.7, 0.8, 0.9, 1 / 3])
def test_a_case_at_the_cutoff_is_not_a_failure(dice):
    for loss in (1 - dice, round(1 - dice, 10) if dice != 1 / 3 else 2 / 3):
        assert failure_detection([0.1, 0.9], [loss, 0.0], cutoff=dice).failures == 0
    assert failure_detection([0.1, 0.9], [1 - dice + 1e-9, 0.0], cutoff=dice).failures == 1


@pytest.mark.parametrize(("loss", "failures"), [([0.0, 0.1, 0.2], 0), ([0.9, 0.8, 1.0], 3)])
def test_only_one_kind(loss, failures):
    detection = failure_detection([0.1, 0.2, 0.3], loss, cutoff=0.5)
    assert detection.failures == failures
    assert np.isnan([detection.auroc, detection.aupr, detection.fpr_at_95_tpr]).all()
    assert not np.isnan(detection.spearman)


def test_all_tied():
    detection = failure_detection([0.5] * 4, [0.0, 0.0, 0.9, 0.9], cutoff=0.5)
    assert (detection.auroc, detection.aupr, detection.fpr_at_95_tpr) == (0.5, 0.5, 1)
    assert np.isnan([detection.spearman, detection.pearson]).all()


def test_rejected_arguments():
    with pytest.raises(CaseValueError, match=r"a loss in \[0, 1\]"):
        failure_detection([0.1, 0.2], [0.1, 1.2], cutoff=0.5)
    with pytest.raises(ParameterError, match="cutoff"):
        failure_detection([0.1, 0.2], [0.1, 0.2], cutoff=1.5)
    with pytest.raises(TooFewCasesError):
        failure_detection([0.1], [0.1], cutoff=0.5)


@pytest.mark.parametrize("cutoff", [0.1, 0.3, 0.55, 0.7, 0.8, 0.9])
def test_failures_are_those_of_a_target(cutoff):
    """A Dice at the cutoff is not a failure, whichever way its loss was rounded."""
    at = np.array([1.0 - cutoff, np.nextafter(1.0 - cutoff, 1.0), np.nextafter(1.0 - cutoff, 0.0)])
    loss = np.append(at, [1.0 - cutoff + 1e-9, 0.0])
    failures = Target(0.1, below_dice=cutoff).losses(loss).sum()
    assert failure_detection(np.arange(5), loss, cutoff=cutoff).failures == failures == 1
