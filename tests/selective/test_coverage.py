"""Thresholds for a coverage: the binomial law exactly, and its guarantee by simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.errors import CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective import threshold_for_coverage
from segtrust.selective.coverage import as_decimal, reach_probability


def binomial_tail(n, k, q):
    """P(Bin(n, q) >= k), in fractions."""
    return sum(math.comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(k, n + 1))


@given(st.integers(1, 40), st.integers(1, 19), st.data())
def test_probability_is_the_binomial_law(n, twentieths, data):
    rank = data.draw(st.integers(1, n))
    expected = binomial_tail(n, rank, 1 - Fraction(twentieths, 20))
    assert reach_probability(twentieths / 20, n, rank) == pytest.approx(float(expected), rel=1e-12)


@given(st.integers(1, 60), st.integers(1, 19), st.sampled_from([0.01, 0.05, 0.2, 0.5]))
def test_rank_is_the_largest_that_will_do(n, twentieths, delta):
    found = threshold_for_coverage(np.arange(n), target_coverage=twentieths / 20, delta=delta)
    sure = [
        k
        for k in range(1, n + 1)
        if binomial_tail(n, k, 1 - Fraction(twentieths, 20)) >= 1 - as_decimal(delta)
    ]
    assert found.rank == (max(sure) if sure else 0)
    assert found.threshold == (found.rank - 1 if sure else None)
    assert found.possible == (n >= found.cases_needed)


@given(st.integers(1, 60), st.integers(0, 20))
def test_on_average(n, twentieths):
    found = threshold_for_coverage(np.arange(n), target_coverage=twentieths / 20, delta=None)
    target = Fraction(twentieths, 20)
    sure = [k for k in range(1, n + 1) if 1 - Fraction(k, n + 1) >= target]
    assert found.rank == (max(sure) if sure else 0)
    if found.possible:
        assert found.guarantee == pytest.approx(1 - found.rank / (n + 1))
        assert n >= found.cases_needed


@pytest.mark.parametrize("delta", [0.05, 0.2, None])
@pytest.mark.parametrize("levels", [None, 12])
def test_guarantee_by_simulation(delta, levels):
    """With ties (12 levels) the guarantee holds with room to spare; without, it is met."""
    rng, draws, n, target = np.random.default_rng(0), 4000, 80, 0.7
    coverages = np.empty(draws)
    for each in range(draws):
        u = rng.random(n)
        confidence = u if levels is None else np.floor(u * levels) / levels
        coverages[each] = (
            1 - threshold_for_coverage(confidence, target_coverage=target, delta=delta).threshold
        )
    if delta is None:
        assert coverages.mean() >= target - 3 * coverages.std() / math.sqrt(draws)
        return
    failures, error = np.mean(coverages < target - 1e-12), math.sqrt(delta * (1 - delta) / draws)
    assert failures <= delta + 3 * error
    if levels is None:
        exactly = 1 - threshold_for_coverage(np.arange(n), target_coverage=target, delta=delta).guarantee
        assert failures == pytest.approx(exactly, abs=4 * error)


def test_ties_are_all_accepted():
    found = threshold_for_coverage([0.5] * 50, target_coverage=0.9)
    assert (found.threshold, found.coverage) == (0.5, 1.0)


def test_not_possible():
    found = threshold_for_coverage(np.arange(58), target_coverage=0.95)
    assert (found.threshold, found.rank, found.guarantee, found.cases_needed) == (None, 0, 0.0, 59)
    assert "Not possible with 58 cases" in found.explain()
    assert "needs at least 59" in found.explain()
    assert threshold_for_coverage(np.arange(59), target_coverage=0.95).threshold == 0
    assert "cannot be guaranteed" in threshold_for_coverage([1, 2], target_coverage=1.0).explain()


@pytest.mark.parametrize(("target", "delta", "needed"), [(0.4, 0.16, 2), (0.2, 0.008, 3), (0.1, 1e-5, 5)])
def test_needed_cases_do_not_depend_on_rounding(target, delta, needed):
    """Of so many cases all lie above the threshold with probability target ** needed, which is delta."""
    found = threshold_for_coverage(np.arange(needed), target_coverage=target, delta=delta)
    assert (found.possible, found.cases_needed) == (True, needed)


def test_possible():
    found = threshold_for_coverage(np.arange(59), target_coverage=0.95)
    expected = "Threshold 0 accepts at least 0.95 of future cases with probability 0.95, from 59 cases."
    assert found.explain() == expected
    assert found.to_dict()["cases_needed"] == 59
    assert "on average" in threshold_for_coverage([1, 2, 3], target_coverage=0.5, delta=None).explain()


def test_no_target_is_met_by_the_highest():
    assert threshold_for_coverage([1, 2, 3], target_coverage=0.0).threshold == 3
    assert threshold_for_coverage([1, 2, 3], target_coverage=0, delta=None).threshold == 3


def test_invalid_arguments():
    with pytest.raises(ParameterError, match="target_coverage"):
        threshold_for_coverage([1, 2], target_coverage=1.2)
    with pytest.raises(ParameterError, match="delta"):
        threshold_for_coverage([1, 2], target_coverage=0.5, delta=0)
    with pytest.raises(TooFewCasesError):
        threshold_for_coverage([], target_coverage=0.5)
    with pytest.raises(CaseValueError, match="for case 1"):
        threshold_for_coverage([0.5, np.nan], target_coverage=0.5)


def test_no_number_up_to_a_billion_is_enough():
    found = threshold_for_coverage([0.1, 0.2], target_coverage=1 - 1e-12)
    assert (found.possible, found.cases_needed) == (False, None)
    assert "cannot be guaranteed" in found.explain()
