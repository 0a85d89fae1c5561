"""Bounds on IDC / SDC, against mpmath, enumeration and the numbers of the paper."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, hyp1f1
from scipy.stats import binom

from segtrust.errors import ParameterError
from segtrust.kernels import (
    dice_bounds_from,
    relative_errors_from,
    worst_relative_error,
)
from segtrust.kernels.bounds import binomial_lower_bound, bound_distances, epsilon1, epsilon2
from tests.references import upper_bound_excess_by_theorem as excess_by_series

SIZES = [1, 2, 37, 10**4, 10**8]
MEANS = [1e-9, 0.3, 0.5, 0.999999, 1.0]
FEW = np.logspace(-12, 2, 15)
MANY = np.logspace(2.5, 8, 6)

# The functions are good to 1e-15; this leaves room for another machine's exp and log.
TIGHT = 1e-13


def close(found, reference, tolerance=TIGHT):
    """Whether two numbers agree in relative terms only: what is tested here may be 1e-29."""
    return math.isclose(found, reference, rel_tol=tolerance, abs_tol=0)


def excess_by_integral(c, lam):
    """b_U - 1 as lam times the integral of t^(c-1) (1 - t) exp(-lam (1 - t)); for large lam."""
    with mpmath.workdps(20):
        c, lam = mpmath.mpf(c), mpmath.mpf(lam)
        rate = c + lam

        def integrand(x):
            t = mpmath.exp(-x / rate)
            return t**c * -mpmath.expm1(-x / rate) * mpmath.exp(-lam * -mpmath.expm1(-x / rate))

        return lam / rate * mpmath.quad(integrand, [0, 3, 10, 25, 60], method="gauss-legendre")


def excess(c, lam):
    return excess_by_series(c, lam) if lam <= FEW[-1] else excess_by_integral(c, lam)


def error(k, s, lam):
    """The paper's epsilon(k, mu, lam), for the given s rather than k mu rounded."""
    with mpmath.workdps(40):
        gap = (1 - mpmath.mpf(s) / k) / (mpmath.mpf(k) + s + lam)
        above = excess(mpmath.mpf(k) + s, lam)
        return max(gap, above / (1 + above))


def enumerated_idc(p, k):
    """Mean Dice of the first k pixels over all truths, weighed by independent pixels."""
    total = 0.0
    for truth in product((0, 1), repeat=len(p)):
        weight = math.prod(q if y else 1 - q for q, y in zip(p, truth, strict=True))
        total += weight * 2 * sum(truth[:k]) / (k + sum(truth))
    return total


sizes = st.integers(1, 12) | st.integers(1, 10**8)
probabilities = st.floats(0, 1)
masses = st.floats(0, 1e8) | st.floats(-12, 8).map(lambda exponent: 10**exponent)


def upper_bound_excess(k, mu, lam):
    return float(bound_distances(k, k * mu, lam)[1])


class TestUpperBoundExcess:
    @pytest.mark.parametrize("k", SIZES)
    @pytest.mark.parametrize("mu", MEANS)
    def test_equals_the_poisson_series(self, k, mu):
        c = k + k * mu
        assert all(close(upper_bound_excess(k, mu, lam), excess_by_series(c, lam)) for lam in FEW)

    @pytest.mark.parametrize("k", SIZES)
    @pytest.mark.parametrize("mu", [1e-9, 0.5, 1.0])
    def test_equals_the_integral_where_the_series_is_long(self, k, mu):
        c = k + k * mu
        assert all(close(upper_bound_excess(k, mu, lam), excess_by_integral(c, lam)) for lam in MANY)

    @pytest.mark.parametrize("lam", [100.0, 160.0])
    @pytest.mark.parametrize("c", [1.0, 30.0, 1000.0])
    def test_series_and_integral_agree(self, c, lam):
        assert close(excess_by_series(c, lam), excess_by_integral(c, lam))

    @given(k=st.integers(1, 40), mu=probabilities, lam=st.floats(1e-12, 80))
    def test_equals_scipy_where_scipy_is_good(self, k, mu, lam):
        c = k + k * mu
        assert close(upper_bound_excess(k, mu, lam), lam / (c * (c + 1)) * hyp1f1(2, c + 2, -lam))

    @given(k=sizes, mu=probabilities)
    def test_is_zero_without_background(self, k, mu):
        assert upper_bound_excess(k, mu, 0.0) == 0

    @given(k=sizes, mu=probabilities, lam=masses)
    def test_falls_as_the_mask_grows(self, k, mu, lam):
        assert upper_bound_excess(k + 1, mu, lam) <= upper_bound_excess(k, mu, lam)

    def test_reports_no_underflow(self):
        with np.errstate(all="raise"):
            assert upper_bound_excess(1, 1.0, 1e8) > 0


class TestDiceBounds:
    @pytest.mark.parametrize("k", SIZES)
    @pytest.mark.parametrize("mu", MEANS)
    def test_error_keeps_its_digits(self, k, mu):
        s = k * mu
        lams = [0.0, *FEW[::2], *MANY[::3]]
        assert all(close(dice_bounds_from(k, s, lam).relative_error, error(k, s, lam)) for lam in lams)

    def test_error_keeps_its_digits_where_the_mask_is_almost_certain(self):
        k, s = 10**8, 10**8 - 1e-4
        assert close(dice_bounds_from(k, s, 0.0).relative_error, error(k, s, 0.0))

    def test_fields(self):
        bounds = dice_bounds_from(8, 6.0, 2.0)
        gap, above = bound_distances(8, 6.0, 2.0)
        assert (bounds.k, bounds.mu, bounds.lam, bounds.s) == (8, 0.75, 2.0, 6.0)
        assert close(bounds.lower, 16 / 16.25)
        assert bounds.upper == 1 + above
        assert bounds.relative_error == max(gap, above / (1 + above))

    def test_empty_mask_has_no_ratio(self):
        bounds = dice_bounds_from(0, 0.0, 3.5)
        assert (bounds.k, bounds.s, bounds.lam) == (0, 0.0, 3.5)
        assert np.isnan([bounds.mu, bounds.lower, bounds.upper, bounds.relative_error]).all()

    def test_mask_without_probability_gives_the_limit(self):
        none, little = dice_bounds_from(3, 0.0, 2.0), dice_bounds_from(3, 1e-12, 2.0)
        assert (none.mu, none.lower) == (0.0, 5 / 6)
        assert close(none.upper, little.upper, 1e-11)
        assert close(none.relative_error, little.relative_error, 1e-11)

    def test_certain_image_has_no_error(self):
        bounds = dice_bounds_from(5, 5.0, 0.0)
        assert (bounds.lower, bounds.upper, bounds.relative_error) == (1, 1, 0)

    def test_sum_above_the_size_by_rounding(self):
        assert dice_bounds_from(7, math.nextafter(7.0, 8.0), 1.0) == dice_bounds_from(7, 7.0, 1.0)

    def test_numpy_scalars_of_low_precision(self):
        found = dice_bounds_from(np.int32(3), np.float32(1.5), np.float32(0.25))
        assert found == dice_bounds_from(3, 1.5, 0.25)
        assert {type(found.k), type(found.s), type(found.upper)} == {int, float}

    @pytest.mark.parametrize(
        ("k", "s", "lam"),
        [
            (-1, 0.0, 0.0),
            (0, 0.5, 0.0),
            (3, 3.1, 0.0),
            (3, -0.1, 0.0),
            (3, math.nan, 0.0),
            (3, 1.0, -1.0),
            (3, 1.0, math.nan),
            (3, 1.0, math.inf),
        ],
    )
    def test_rejects_impossible_sums(self, k, s, lam):
        with pytest.raises(ParameterError, match="expected 0 <= s <= k and 0 <= lam < inf"):
            dice_bounds_from(k, s, lam)

    @given(k=sizes, mu=probabilities, lam=masses)
    def test_bounds_lie_around_one(self, k, mu, lam):
        bounds = dice_bounds_from(k, k * mu, lam)
        assert 0 < bounds.lower <= 1 <= bounds.upper

    @given(
        inside=st.lists(st.floats(0.01, 1), min_size=1, max_size=4),
        outside=st.lists(probabilities, max_size=4),
    )
    def test_enclose_the_enumerated_ratio(self, inside, outside):
        k, s, lam = len(inside), sum(inside), sum(outside)
        idc, sdc = enumerated_idc(inside + outside, k), 2 * s / (k + s + lam)
        bounds = dice_bounds_from(k, s, lam)
        assert bounds.lower * (1 - TIGHT) <= idc / sdc <= bounds.upper * (1 + TIGHT)
        assert abs(sdc - idc) / idc <= bounds.relative_error + TIGHT
        assert binomial_lower_bound(k, min(s / k, 1.0), lam) <= idc * (1 + TIGHT)

    def test_mean_error_of_the_synthetic_experiment(self):
        """The authors' 5000 images of 10 pixels: their notebook prints this mean."""
        errors = [synthetic_error(seed) for seed in range(5000)]
        assert np.isnan(errors).sum() == 76
        assert close(np.nanmean(errors), 0.045292283752955)
        assert np.nanmedian(errors) == pytest.approx(0.033306, abs=5e-7)
        assert np.nanmax(errors) == pytest.approx(0.241523, abs=5e-7)


def synthetic_error(seed):
    q = expit(np.random.RandomState(seed).normal(-3.698, 5, 10))
    p = q / -np.expm1(np.log1p(-q).sum())  # given that some pixel is foreground
    mask = p >= 0.5
    return dice_bounds_from(mask.sum(), p[mask].sum(), p[~mask].sum()).relative_error


class TestLowerBoundGap:
    @given(k=sizes, mu=probabilities, lam=masses)
    def test_is_the_distance_of_the_papers_bound(self, k, mu, lam):
        s = k * mu
        with mpmath.workdps(40):
            exact = mpmath.mpf(s) / k
            reference = (k + 1 + (k - 1) * exact + mpmath.mpf(lam)) / (k + k * exact + mpmath.mpf(lam)) - 1
        assert close(bound_distances(k, s, lam)[0], reference)


class TestWorstRelativeError:
    def test_is_one_percent_at_a_mass_of_17_16(self):
        assert close(worst_relative_error(17.16), 0.01, 3e-4)
        assert worst_relative_error(17.15) > 0.01 > worst_relative_error(17.16)

    @pytest.mark.parametrize("s", np.logspace(-8, 8, 33))
    def test_comes_from_the_lower_bound(self, s):
        assert worst_relative_error(s) == epsilon1(s) > epsilon2(s)

    @given(k=sizes, mu=probabilities, lam=masses)
    def test_is_never_exceeded(self, k, mu, lam):
        bounds = dice_bounds_from(k, k * mu, lam)
        assert bounds.relative_error <= worst_relative_error(bounds.s) * (1 + TIGHT)

    def test_without_mass_there_is_no_guarantee(self):
        assert worst_relative_error(0.0) == epsilon1(0.0) == math.inf
        assert epsilon2(0.0) == 1

    @pytest.mark.parametrize("s", [-1.0, math.nan, math.inf])
    @pytest.mark.parametrize("function", [worst_relative_error, epsilon1, epsilon2])
    def test_rejects_what_is_not_a_mass(self, function, s):
        with pytest.raises(ParameterError, match="expected 0 <= s < inf"):
            function(s)


class TestEpsilon1:
    def test_is_attained_where_the_best_size_is_an_integer(self):
        mu = math.sqrt(2) - 1
        assert close(bound_distances(50, 50 * mu, 0.0)[0], epsilon1(50 * mu))

    @pytest.mark.parametrize("s", [0.05, 0.4, 0.5, 3.3, 17.16, 200.0])
    def test_bounds_every_image(self, s):
        k = np.arange(math.ceil(s), 40 * math.ceil(s) + 1)
        best = bound_distances(k, s, 0.0)[0].max()
        assert best <= epsilon1(s)
        assert close(best, epsilon1(s), 0.05) if s > math.sqrt(2) - 1 else close(best, (1 - s) / (1 + s))


class TestEpsilon2:
    @pytest.mark.parametrize("s", [1, 3, 17, 150])
    def test_is_the_largest_on_a_grid_of_images(self, s):
        lams = np.linspace(0.2, 3, 600) * (2 * s + 1)
        errors = [dice_bounds_from(s, s, lam).relative_error for lam in lams]
        wider = [dice_bounds_from(k, s, lam).upper for k in range(s + 1, s + 6) for lam in lams[::20]]
        assert close(max(errors), epsilon2(s), 1e-5)
        assert max(errors) <= epsilon2(s) * (1 + TIGHT)
        assert 1 - 1 / max(wider) < epsilon2(s)

    @pytest.mark.parametrize("s", [1e-12, 1e-3, 0.1, 0.414, 0.7, 2.5, 40.0])
    def test_equals_the_root_of_the_derivative(self, s):
        with mpmath.workdps(40):
            peak = mpmath.findroot(
                lambda lam: slope(2 * mpmath.mpf(s), lam), (s + 0.7, 2 * s + 1), solver="secant"
            )
            above = excess_by_series(2 * mpmath.mpf(s), peak)
            assert close(epsilon2(s), above / (1 + above))

    @pytest.mark.parametrize("s", [1e5, 1e8])
    def test_tends_to_one_eighth_of_the_inverse(self, s):
        assert close(epsilon2(s) * s, 1 / 8, 1 / s)

    def test_survives_the_smallest_mass(self):
        assert epsilon2(5e-324) == 1


def slope(c, lam):
    """Derivative of b_U by lam: E[1 / (c + W)] - (c + lam) E[1 / ((c + W)(c + W + 1))], both by b_U."""
    above = excess_by_series(c, lam)
    return (1 + above) / (c + lam) - (c + lam) * above / lam


class TestBinomialLowerBound:
    @pytest.mark.parametrize("k", [1, 2, 5, 8])
    @pytest.mark.parametrize("mu", [0.0, 0.01, 0.4, 1.0])
    @pytest.mark.parametrize("background", [[], [0.0, 1.0], [1.0, 1.0, 1.0]])
    def test_is_attained(self, k, mu, background):
        idc = enumerated_idc([mu] * k + background, k)
        assert close(binomial_lower_bound(k, mu, sum(background)), idc)

    @pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.3, 0.5, 0.999999, math.nextafter(1, 0)])
    @pytest.mark.parametrize("lam", [0.0, 0.01, 12.3, 1e4, 1e8])
    def test_equals_the_sum(self, mu, lam):
        k = 300
        with mpmath.workdps(40):
            m = mpmath.mpf(mu)
            terms = (
                mpmath.binomial(k - 1, i) * m**i * (1 - m) ** (k - 1 - i) / (k + 1 + lam + i)
                for i in range(k)
            )
            reference = 2 * k * m * sum(terms)
        assert close(binomial_lower_bound(k, mu, lam), reference)

    @pytest.mark.parametrize("k", [10**5, 10**7])
    def test_equals_the_sum_over_the_likely_counts_of_a_large_mask(self, k):
        mu, lam = 0.3, 77.0
        spread = 12 * math.sqrt(k * mu * (1 - mu))
        i = np.arange(int(k * mu - spread), int(k * mu + spread))
        weights = binom.pmf(i, k - 1, mu)
        reference = 2 * k * mu * np.average(1 / (k + 1 + lam + i), weights=weights)
        assert close(binomial_lower_bound(k, mu, lam), reference, 1e-12)

    @given(k=sizes, mu=st.floats(1e-12, 1), lam=masses)
    def test_is_tighter_than_the_lower_bound(self, k, mu, lam):
        sdc = 2 * k * mu / (k + k * mu + lam)
        weaker = sdc * dice_bounds_from(k, k * mu, lam).lower
        assert weaker * (1 - TIGHT) <= binomial_lower_bound(k, mu, lam) <= sdc * (1 + TIGHT)

    def test_of_an_empty_mask_is_zero(self):
        assert binomial_lower_bound(0, math.nan, 4.0) == 0


class TestManyImages:
    def test_each_is_that_of_its_own_sums(self):
        rng = np.random.default_rng(0)
        k = rng.integers(0, 50, 700)
        s, lam = k * rng.random(700), 10.0 ** rng.uniform(-12, 6, 700)
        found = relative_errors_from(k, s, lam)
        wanted = [dice_bounds_from(int(a), b, c).relative_error for a, b, c in zip(k, s, lam, strict=True)]
        np.testing.assert_allclose(found, wanted, rtol=1e-15)
        assert np.isnan(found).tolist() == (k == 0).tolist()

    def test_a_sum_above_the_mask_by_rounding_is_the_mask(self):
        (found,) = relative_errors_from([3], [np.nextafter(3.0, 4.0)], [0.5])
        assert found == dice_bounds_from(3, 3.0, 0.5).relative_error

    @pytest.mark.parametrize(
        ("s", "lam"), [(3.5, 0.0), (-0.1, 0.0), (1.0, -1.0), (1.0, math.inf), (math.nan, 0.0)]
    )
    def test_impossible_sums_are_rejected(self, s, lam):
        with pytest.raises(ParameterError, match="expected 0 <= s <= k"):
            relative_errors_from([3, 3], [1.0, s], [0.0, lam])
