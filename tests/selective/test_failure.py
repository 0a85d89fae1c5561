"""Failure detection against pairwise and stepwise definitions."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from segtrust.errors import CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective.failure import failure_detection
from tests.selective import brute


def slow_scores(confidence, failed):
    """AUROC by pairs; average precision and FPR at 95 % TPR threshold by threshold."""
    precision, before, alarms = 0.0, 0.0, None
    for threshold in np.unique(confidence):
        flagged = confidence <= threshold
        recall = np.mean(flagged[failed])
        precision += (recall - before) * np.mean(failed[flagged])
        before = recall
        if alarms is None and recall >= 0.95:
            alarms = np.mean(flagged[~failed])
    return brute.auroc(confidence, failed), precision, alarms


def test_against_slow_definitions():
    rng = np.random.default_rng(0)
    for n in rng.integers(5, 60, 300):
        confidence = rng.integers(0, rng.integers(2, 40), n).astype(float)
        loss = rng.random(n)
        loss[:2] = 0, 1
        found = failure_detection(confidence, loss, cutoff=0.7)
        expected = slow_scores(confidence, loss > 0.3)
        assert (found.auroc, found.aupr, found.fpr_at_95_tpr) == pytest.approx(expected, abs=1e-12)
        assert found.failures == np.sum(loss > 0.3)


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(2)
    confidence, loss = rng.integers(0, 9, 50).astype(float), rng.random(50)
    found = failure_detection(confidence, loss, cutoff=0.5)
    assert found.spearman == pytest.approx(spearmanr(confidence, 1 - loss).statistic)
    assert found.pearson == pytest.approx(pearsonr(confidence, 1 - loss).statistic)


def test_correlation_of_far_away_numbers():
    found = failure_detection([1e300, 2e300, 3e300], [0.5, 0.25, 0], cutoff=0.6)
    assert found.pearson == pytest.approx(1)


@pytest.mark.parametrize("dice", [0.1, 0.3, 0.7, 0.8, 0.9, 1 / 3])
def test_a_case_at_the_cutoff_is_no_failure(dice):
    for loss in (1 - dice, round(1 - dice, 10) if dice != 1 / 3 else 2 / 3):
        assert failure_detection([0.1, 0.9], [loss, 0.0], cutoff=dice).failures == 0
    assert failure_detection([0.1, 0.9], [1 - dice + 1e-9, 0.0], cutoff=dice).failures == 1


@pytest.mark.parametrize(("loss", "failures"), [([0.0, 0.1, 0.2], 0), ([0.9, 0.8, 1.0], 3)])
def test_only_one_kind(loss, failures):
    found = failure_detection([0.1, 0.2, 0.3], loss, cutoff=0.5)
    assert found.failures == failures
    assert np.isnan([found.auroc, found.aupr, found.fpr_at_95_tpr]).all()
    assert not np.isnan(found.spearman)


def test_all_tied():
    found = failure_detection([0.5] * 4, [0.0, 0.0, 0.9, 0.9], cutoff=0.5)
    assert (found.auroc, found.aupr, found.fpr_at_95_tpr) == (0.5, 0.5, 1)
    assert np.isnan([found.spearman, found.pearson]).all()


def test_refusals():
    with pytest.raises(CaseValueError, match=r"a loss in \[0, 1\]"):
        failure_detection([0.1, 0.2], [0.1, 1.2], cutoff=0.5)
    with pytest.raises(ParameterError, match="cutoff"):
        failure_detection([0.1, 0.2], [0.1, 0.2], cutoff=1.5)
    with pytest.raises(TooFewCasesError):
        failure_detection([0.1], [0.1], cutoff=0.5)
