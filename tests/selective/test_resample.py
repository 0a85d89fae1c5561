"""Bootstrap intervals: repeatable, of the right size, and honest about degenerate tables."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import segtrust as st
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    ParameterError,
    TooFewCasesError,
    UnknownNameError,
)
from segtrust.selective.bca import bca_levels
from segtrust.selective.curve import risk_coverage_curve
from segtrust.selective.resample import Bootstrap, bootstrap_interval, interval_of
from segtrust.selective.statistic import coverage_at_risk

FEW = Bootstrap(resamples=500)
ALL = ("aurc", "augrc", "e_aurc", coverage_at_risk(0.2))


def cases(seed=0, n=60):
    rng = np.random.default_rng(seed)
    loss = rng.beta(2, 8, n)
    return -loss + 0.1 * rng.standard_normal(n), loss


def ends(found):
    return found.low, found.high


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_percentiles_leave_as_much_on_either_side(level):
    values = np.random.default_rng(0).permutation(101) / 100
    bootstrap = Bootstrap(level=level, method="percentile")
    assert interval_of(values, 0.5, None, bootstrap) == pytest.approx(((1 - level) / 2, (1 + level) / 2))


def test_ends_are_corrected_where_that_is_asked_for():
    """Three quarters of the resamples lie below the estimate, so both ends move up as far as BCa says."""

    class Resamples:
        units = 20

        def left_out(self, groups):
            return np.sqrt(groups)

    values, tails = np.linspace(0, 1, 101), np.array([0.1, 0.9])
    bootstrap = Bootstrap(level=0.8, method="bca")
    low, high = interval_of(values, 0.75, Resamples(), bootstrap)
    assert (low, high) == pytest.approx(bca_levels(values, 0.75, np.sqrt(np.arange(20)), tails))
    assert low > 0.3
    assert high > 0.95


def test_values_that_differ_by_rounding_only_are_one():
    values = 0.3 + np.array([0.0, 1e-16, -1e-16])
    assert interval_of(values, 0.3, None, Bootstrap(method="percentile")) == (0.3, 0.3)


@pytest.mark.parametrize("statistic", ALL, ids=str)
def test_few_cases_and_resamples(statistic):
    """Small enough to be followed by hand, and where loops are not compiled."""
    few = Bootstrap(resamples=100, level=0.8, method="percentile")
    confidence, loss = cases(n=8)
    found = bootstrap_interval(confidence, loss, statistic, bootstrap=few)
    assert found.low <= found.estimate <= found.high
    assert found.low < found.high
    again = bootstrap_interval(confidence[::-1], loss[::-1], statistic, bootstrap=few)
    assert again.estimate == pytest.approx(found.estimate, abs=1e-15)
    wider = bootstrap_interval(confidence, loss, statistic, bootstrap=replace(few, level=0.99))
    assert wider.low <= found.low <= found.high <= wider.high


@pytest.mark.parametrize("statistic", ALL, ids=str)
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_estimate_lies_inside(statistic, method):
    found = bootstrap_interval(*cases(), statistic, bootstrap=Bootstrap(resamples=1000, method=method))
    assert found.low <= found.estimate <= found.high
    assert found.low < found.high
    assert found.units == 60


def test_estimates_are_those_of_the_curve():
    confidence, loss = cases()
    curve = risk_coverage_curve(confidence, loss)
    expected = (curve.aurc, curve.augrc, curve.e_aurc, curve.coverage_at_risk(0.2))
    found = [bootstrap_interval(confidence, loss, each, bootstrap=FEW).estimate for each in ALL]
    assert found == pytest.approx(expected, abs=1e-15)


def test_the_same_seed_gives_the_same_ends_whatever_the_threads():
    alone = bootstrap_interval(*cases())
    for threads in (1, 2, 3):
        with st.use_threads(threads):
            assert bootstrap_interval(*cases()) == alone
    assert ends(bootstrap_interval(*cases(), bootstrap=Bootstrap(seed=1))) != ends(alone)


@pytest.mark.parametrize(("method", "other"), [("bca", "BCa"), ("percentile", "percentile")])
def test_ends_are_those_of_scipy(method, other):
    """SciPy resamples the same statistic by a Python loop, with another generator."""
    confidence, loss = cases(n=40)

    def aurc(*drawn):
        return risk_coverage_curve(*drawn).aurc

    options = {"paired": True, "vectorized": False, "n_resamples": 4000, "rng": 0, "method": other}
    expected = stats.bootstrap((confidence, loss), aurc, **options)
    found = bootstrap_interval(confidence, loss, bootstrap=Bootstrap(method=method))
    room = 0.12 * expected.standard_error
    assert ends(found) == pytest.approx(tuple(expected.confidence_interval), abs=room)


def test_whole_patients_make_longer_intervals():
    confidence, loss = cases(n=40)
    repeated = [np.repeat(each, 5) for each in (confidence, loss)]
    patients = np.repeat(np.arange(40), 5)
    alone = bootstrap_interval(confidence, loss)
    together = bootstrap_interval(*repeated, patients=patients)
    apart = bootstrap_interval(*repeated)
    assert ends(together) == pytest.approx(ends(alone), abs=1e-12)  # the same evidence, five times over
    assert together.units == 40
    assert apart.high - apart.low < 0.6 * (together.high - together.low)


def test_names_of_patients_may_be_anything():
    confidence, loss = cases(n=6)
    found = [
        bootstrap_interval(confidence, loss, patients=patients, bootstrap=FEW)
        for patients in (["b", "b", "a", "a", "c", "c"], [7, 7, 3, 3, 9, 9])
    ]
    assert found[0] == found[1]


def test_cases_without_weight_are_as_if_absent():
    confidence, loss = cases(n=30)
    weights = np.tile([1.0, 0.0, 2.0], 10)
    kept = weights > 0
    found = bootstrap_interval(confidence, loss, weights=weights)
    assert found.units == 20
    assert found == bootstrap_interval(confidence[kept], loss[kept], weights=weights[kept])
    scaled = bootstrap_interval(confidence, loss, weights=1e200 * weights)
    assert ends(scaled) == pytest.approx(ends(found))


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_equal_losses_leave_no_doubt(method):
    found = bootstrap_interval(np.arange(20), np.full(20, 0.3), bootstrap=Bootstrap(method=method))
    assert ends(found) == (found.estimate, found.estimate)
    assert found.estimate == pytest.approx(0.3)


def test_a_risk_that_is_never_reached_is_coverage_zero():
    found = bootstrap_interval([0.1, 0.2, 0.3], [0.9, 0.8, 0.7], coverage_at_risk(0.1))
    assert (found.estimate, found.low, found.high) == (0, 0, 0)


def test_all_tied():
    found = bootstrap_interval(np.zeros(50), np.random.default_rng(0).random(50))
    assert found.low < found.estimate < found.high


def test_many_units_are_left_out_in_groups():
    plan = Bootstrap()
    assert plan.groups(1000).tolist() == list(range(1000))
    sizes = np.bincount(plan.groups(2500))
    assert sizes.size == 1000
    assert set(sizes) == {2, 3}
    confidence, loss = cases(n=2500)
    found = bootstrap_interval(confidence, loss, bootstrap=Bootstrap(resamples=1000))
    assert found.low < found.estimate < found.high


def test_refused_cases():
    with pytest.raises(TooFewCasesError, match="at least 2 cases"):
        bootstrap_interval([0.1], [0.2])
    with pytest.raises(TooFewCasesError, match="patients: expected at least 2 to resample, got 1"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], patients=["a", "a"])
    with pytest.raises(TooFewCasesError, match="cases: expected at least 2 to resample, got 1"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], weights=[0, 1])
    with pytest.raises(CaseLengthError, match="patients"):
        bootstrap_interval([0.1, 0.2], [0.2, 0.1], patients=["a"])
    with pytest.raises(CaseValueError, match="loss"):
        bootstrap_interval([0.1, 0.2], [0.2, np.nan])


@pytest.mark.parametrize(
    "bad",
    [{"level": 1.0}, {"level": 0}, {"method": "basic"}, {"resamples": 99}, {"seed": -1}, {"seed": None}],
)
def test_refused_plans(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Bootstrap(**bad)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["aurc", "augrc"])
@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_intervals_hold_the_truth_as_often_as_they_say(statistic, method):
    """95 % intervals, 100 cases, 1000 draws: between 92.5 and 97 % hold the value of a million cases."""
    truth = getattr(risk_coverage_curve(*cases(99, 10**6)), statistic)
    plan = Bootstrap(resamples=999, method=method)
    found = [bootstrap_interval(*cases(seed, 100), statistic, bootstrap=plan) for seed in range(1000)]
    assert 0.925 < np.mean([each.low <= truth <= each.high for each in found]) < 0.97


@pytest.mark.slow
def test_intervals_of_patients_hold_the_truth():
    """Four cases a patient that are much alike; 60 patients."""

    def clustered(seed, patients):
        rng = np.random.default_rng(seed)
        own = rng.beta(2, 8, patients)
        loss = np.clip(np.repeat(own, 4) + 0.02 * rng.standard_normal(4 * patients), 0, 1)
        shift = np.repeat(0.1 * rng.standard_normal(patients), 4)
        return -loss + shift, loss, np.repeat(np.arange(patients), 4)

    truth = risk_coverage_curve(*clustered(99, 200_000)[:2]).aurc
    plan = Bootstrap(resamples=999, method="percentile")
    hits = np.zeros(2)
    for seed in range(500):
        confidence, loss, patients = clustered(seed, 60)
        for at, units in enumerate((patients, None)):
            found = bootstrap_interval(confidence, loss, patients=units, bootstrap=plan)
            hits[at] += found.low <= truth <= found.high
    together, apart = hits / 500
    assert together > 0.91
    assert apart < 0.8


def test_percentiles_are_the_default_of_a_coverage():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(40), rng.random(40)
    assert bootstrap_interval(confidence, loss).bootstrap.method == "bca"
    found = bootstrap_interval(confidence, loss, coverage_at_risk(0.5))
    assert found.bootstrap == Bootstrap(method="percentile")


def test_large_losses_do_not_overflow():
    rng = np.random.default_rng(0)
    confidence, loss = rng.random(40), rng.random(40)
    usual, large = (bootstrap_interval(confidence, loss * scale) for scale in (1.0, 1e200))
    assert large.low == pytest.approx(usual.low * 1e200)


@pytest.mark.parametrize("statistic", [[], None, 3, "auc"])
def test_what_is_no_statistic(statistic):
    with pytest.raises(UnknownNameError, match="Unknown statistic"):
        bootstrap_interval([0.1, 0.2], [0.1, 0.2], statistic)


def test_the_method_is_the_suited_one_whatever_else_is_said():
    confidence, loss = cases()
    options = Bootstrap(resamples=100, seed=1)
    assert bootstrap_interval(confidence, loss, bootstrap=options).bootstrap.method == "bca"
    coverage = bootstrap_interval(confidence, loss, coverage_at_risk(0.3), bootstrap=options)
    assert coverage.bootstrap.method == "percentile"
    assert st.compare_estimators(confidence, loss, loss, bootstrap=options).bootstrap.method == "percentile"
    chosen = Bootstrap(resamples=100, method="bca")
    assert st.compare_estimators(confidence, loss, loss, bootstrap=chosen).bootstrap.method == "bca"
