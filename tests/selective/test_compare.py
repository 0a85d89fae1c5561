"""Paired comparison of two estimators."""

import numpy as np
import pytest
from scipy import stats

import segtrust as st
from segtrust.errors import CaseLengthError, CaseValueError
from segtrust.selective import Bootstrap, compare_estimators, coverage_at_risk, risk_coverage_curve
from segtrust.selective.bootstrap import Sample, get_statistic
from segtrust.selective.compare import shift_p_value, sign_flip_p_value


def cases(seed=0, n=80, noise=(0.1, 0.1)):
    rng = np.random.default_rng(seed)
    loss = rng.beta(2, 8, n)
    return *(-loss + scale * rng.standard_normal(n) for scale in noise), loss


@pytest.mark.parametrize("statistic", ["aurc", "augrc", "e_aurc"])
def test_values_and_difference(statistic):
    a, b, loss = cases()
    result = compare_estimators(a, b, loss, statistic=statistic)
    expected = [getattr(risk_coverage_curve(confidence, loss), statistic) for confidence in (a, b)]
    assert (result.a, result.b) == pytest.approx(expected, abs=1e-15)
    assert result.difference == result.a - result.b
    assert result.low <= result.difference <= result.high
    assert result.bootstrap.method == "percentile"


@pytest.mark.parametrize("statistic", ["aurc", "augrc", "e_aurc", coverage_at_risk(0.2)], ids=str)
def test_few_cases_and_resamples(statistic):
    few = Bootstrap(resamples=100)
    a, b, loss = cases(n=8, noise=(0.01, 0.5))
    result, other = (
        compare_estimators(*pair, loss, statistic=statistic, bootstrap=few) for pair in ((a, b), (b, a))
    )
    assert result.difference == result.a - result.b == -other.difference
    assert result.low <= result.difference <= result.high
    assert (other.low, other.high) == pytest.approx((-result.high, -result.low), abs=1e-12)
    if statistic == "e_aurc":
        assert result.a == pytest.approx(risk_coverage_curve(a, loss).e_aurc, abs=1e-15)


def test_corrected_ends_are_those_around_the_difference():
    few = Bootstrap(resamples=100, method="bca")
    a, b, loss = cases(n=8, noise=(0.01, 0.5))
    result, other = (compare_estimators(*pair, loss, bootstrap=few) for pair in ((a, b), (b, a)))
    assert result.low < result.difference < result.high
    assert (other.low, other.high) == pytest.approx((-result.high, -result.low), abs=1e-12)


def test_the_better_one_is_detected():
    result = compare_estimators(*cases(noise=(0.01, 0.3)))
    assert result.high < 0
    assert result.p_value < 0.01
    other = compare_estimators(*cases(noise=(0.01, 0.3))[1::-1], cases(noise=(0.01, 0.3))[2])
    assert (other.low, other.high) == pytest.approx((-result.high, -result.low), abs=1e-12)
    assert other.p_value == pytest.approx(result.p_value, abs=1e-3)


def test_scales_do_not_matter():
    a, b, loss = cases()
    result = compare_estimators(a, b, loss)
    stretched = compare_estimators(a, 1e6 * np.exp(b), loss)
    assert stretched.p_value == result.p_value
    assert stretched.difference == pytest.approx(result.difference, abs=1e-15)


def test_an_estimator_does_not_differ_from_itself():
    a, _, loss = cases()
    for statistic in ("aurc", coverage_at_risk(0.2)):
        result = compare_estimators(a, 2 * a, loss, statistic=statistic)
        assert (result.difference, result.low, result.high, result.p_value) == (0, 0, 0, 1)


def test_as_many_signs_are_drawn_as_asked_for():
    a, _, loss = cases(n=8)
    assert compare_estimators(a, 2 * a, loss, bootstrap=Bootstrap(resamples=1500)).p_value == 1.0


def test_coverages():
    a, b, loss = cases(noise=(0.01, 0.5))
    result = compare_estimators(a, b, loss, statistic=coverage_at_risk(0.1))
    assert result.difference > 0
    assert result.p_value < 0.05


def test_sign_flips_of_a_linear_statistic_are_the_paired_test():
    """The pseudo-values of a mean are the cases themselves: SciPy's paired permutation test."""

    class Mean:
        units = 12
        x = np.random.default_rng(3).normal(0.4, 1, 12)

        def left_out(self, groups):
            return np.array([np.mean(self.x[groups != group]) for group in groups])

    options = {"permutation_type": "samples", "n_resamples": np.inf}
    exact = stats.permutation_test((Mean.x, np.zeros(12)), lambda u, v: np.mean(u - v), **options)
    result = sign_flip_p_value(Mean(), Mean.x.mean(), Bootstrap(resamples=40_000))
    assert result == pytest.approx(exact.pvalue, abs=0.01)


def test_the_signs_as_they_are_count_as_one_of_those_drawn():
    """So that a p-value of sign flips is never 0; of 60 equal cases none of 100 draws adds up to as much."""

    class Equal:
        units = 60

        def left_out(self, groups):
            return np.ones(groups.size)

    assert sign_flip_p_value(Equal(), 1.0, Bootstrap(resamples=100)) == 1 / 101


def test_shifted_differences_count_on_both_sides():
    assert shift_p_value(np.linspace(-1, 3, 4001), 1.0) == pytest.approx(0.5, abs=0.01)
    assert shift_p_value(np.array([0.1, 0.2, 0.3, 0.4, 0.6]), 0.3) == (1 + 1) / (1 + 5)


def test_the_larger_p_value_counts():
    a, b, loss = cases()
    sample = Sample.of(loss, loss.size)
    resamples = sample.resamples(get_statistic("aurc"), [(1.0, a), (-1.0, b)])
    result = compare_estimators(a, b, loss)
    values = resamples.drawn(result.bootstrap.states())
    both = (
        shift_p_value(values, result.difference),
        sign_flip_p_value(resamples, result.difference, result.bootstrap),
    )
    assert result.p_value == max(both)
    assert both[0] == pytest.approx(both[1], abs=0.03)


def test_whole_patients():
    a, b, loss = cases(n=40)
    result = compare_estimators(a, b, loss)
    repeated = [np.repeat(values, 4) for values in (a, b, loss)]
    together = compare_estimators(*repeated, patients=np.repeat(np.arange(40), 4))
    assert (together.low, together.high) == pytest.approx((result.low, result.high), abs=1e-12)
    assert together.p_value == pytest.approx(result.p_value, abs=1e-3)
    assert compare_estimators(*repeated).p_value < result.p_value


def test_threads_change_nothing():
    result = compare_estimators(*cases())
    with st.use_threads(2):
        assert compare_estimators(*cases()) == result


def test_rejected_cases():
    with pytest.raises(CaseLengthError, match="confidence_b: expected 2 values"):
        compare_estimators([0.1, 0.2], [0.1], [0.1, 0.2])
    with pytest.raises(CaseValueError, match="nan for case 1"):
        compare_estimators([0.1, 0.2], [0.1, np.nan], [0.1, 0.2])


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 100])
def test_equal_estimators_are_told_apart_as_rarely_as_stated(n):
    plan = Bootstrap(resamples=999, method="percentile")
    results = [compare_estimators(*cases(seed, n), bootstrap=plan) for seed in range(1000)]
    assert 0.025 < np.mean([result.p_value <= 0.05 for result in results]) < 0.075
    assert 0.03 < np.mean([not result.low <= 0 <= result.high for result in results]) < 0.1
