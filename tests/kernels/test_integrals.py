"""Exact expectations against sums over all truths, the Poisson-binomial recursion, and finer integrals."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.confidence import dice_bounds, expected_tversky, ideal_dice_confidence
from segtrust.kernels import open_map, probability_of_empty, probability_of_foreground
from segtrust.kernels.dice_sums import QUARTIC_MASS, QUARTIC_TOP, generating_sums
from segtrust.kernels.integrals import integrate_tversky
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT
from tests.references import (
    Exact,
    close,
    counted_tversky,
    enumerated_tversky,
    integrated_dice,
    integrated_dice_of,
    logit_normal,
    probabilities,
)


def saturated(rng, n):
    return rng.choice([0.0, 1.0, 0.3, 0.9], n)


FAMILIES = {
    "random": lambda rng, n: rng.random(n),
    "confident": lambda rng, n: logit_normal(n, rng.integers(99), 0, 8),
    "tiny": lambda rng, n: 10 ** rng.uniform(-290, -3, n),
    "huge": lambda rng, n: 1 - 10 ** rng.uniform(-15, -3, n),
    "saturated": saturated,
    "near empty": lambda rng, n: np.where(np.arange(n) == 0, 0.6, 1e-7 * rng.random(n)),
    "near full": lambda rng, n: np.where(np.arange(n) == 0, 0.4, 1 - 1e-7 * rng.random(n)),
    "around the value set apart": lambda rng, n: APART_ABOVE * rng.uniform(0.999, 1.001, n),
    "one bit": lambda rng, n: np.full(n, 0.5),
}
MASKS = {
    "threshold": lambda rng, p: p >= 0.5,
    "one pixel": lambda rng, p: np.arange(p.size) == 0,
    "full": lambda rng, p: p >= 0,
    "any": lambda rng, p: rng.random(p.size) < 0.4,
}


def example(family, mask, n):
    rng = np.random.default_rng(n)
    p = FAMILIES[family](rng, n)
    return p, MASKS[mask](rng, p)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("family", FAMILIES)
class TestIdealDice:
    @pytest.mark.parametrize("n", [1, 3, 12])
    def test_equals_the_sum_over_all_truths(self, family, mask, n):
        p, y = example(family, mask, n)
        assert close(ideal_dice_confidence(p, y), enumerated_tversky(p, y))

    def test_equals_the_recursion(self, family, mask):
        p, y = example(family, mask, 700)
        assert close(ideal_dice_confidence(p, y), counted_tversky(p, y))


@pytest.mark.parametrize("mean", [-8, -3, 0, 3, 8])
def test_ideal_dice_of_5000_pixels(mean):
    p = logit_normal(5000, mean=mean)
    assert close(ideal_dice_confidence(p), counted_tversky(p, p >= 0.5))


probability_maps = st.lists(st.floats(0, 1).map(lambda p: p if p > 1e-290 else 0.0), min_size=1, max_size=10)


@given(p=probability_maps, data=st.data())
def test_ideal_dice_of_any_map(p, data):
    p = np.array(p)
    y = np.array(data.draw(st.lists(st.booleans(), min_size=p.size, max_size=p.size)))
    assert close(ideal_dice_confidence(p, y), enumerated_tversky(p, y))


# Where one way of summing hands over to the next: (count, probability) of the background and of the mask.
JUST = 1e-9
HAND_OVERS = {
    "little mass inside": ([(5000, 0.1)], [(int(MASS_LIMIT / 0.999), 0.999)]),
    "enough mass inside": ([(5000, 0.1)], [(int(MASS_LIMIT / 0.999) + 1, 0.999)]),
    "little mass outside": ([(1399, 0.5 - JUST)], [(80, 0.9)]),
    "enough mass outside": ([(1401, 0.5 - JUST)], [(80, 0.9)]),
    "less mass outside": ([(150, 0.97)], [(2, 0.9)]),
    "less mass inside": ([(5, 0.3)], [(120, 0.97)]),
    "all apart": ([(179_100, APART_ABOVE * (1 + JUST))], [(3, 0.8)]),
    "none apart": ([(179_100, APART_ABOVE * (1 - JUST))], [(3, 0.8)]),
    "too many to be apart": ([(179_300, APART_ABOVE * (1 + JUST))], [(3, 0.8)]),
    "apart and not": ([(90_000, 0.0040), (90_000, 0.0038)], [(1, 0.6), (1, 1.0)]),
    "8-bit level 1": ([(170_000, 1 / 255)], [(100, 250 / 255)]),
    "around a middling value": ([(5000, 1 / 16 + JUST), (5000, 1 / 16 - JUST)], [(50, 0.7)]),
    "four powers outside": ([(80_000, 0.1)], [(100, 0.9)]),
    "six powers outside": ([(69_000, 0.1)], [(100, 0.9)]),
    "four powers on both sides": ([(80_000, 0.1)], [(8000, 0.9)]),
    "four powers of tiny values": ([(2_000_000, QUARTIC_TOP * (1 - JUST))], [(1, 0.9)]),
    "six powers of tiny values": ([(2_000_000, QUARTIC_TOP * (1 + JUST))], [(1, 0.9)]),
    "a late start": ([(300_000, 0.0), (int(QUARTIC_MASS * 3), 0.4)], [(10, 0.9)]),
    "four powers inside, nothing outside": ([(1000, 0.0)], [(9000, 0.97)]),
}


@pytest.mark.parametrize("order", ["background first", "shuffled"])
@pytest.mark.parametrize("case", HAND_OVERS)
def test_hand_overs_do_not_show(case, order):
    background, mask = (np.concatenate([np.full(*each) for each in side]) for side in HAND_OVERS[case])
    p = np.concatenate([background, mask])
    y = np.arange(p.size) >= background.size
    places = {
        "background first": np.arange(p.size),
        "shuffled": np.random.default_rng(0).permutation(p.size),
    }[order]
    assert close(ideal_dice_confidence(p[places], y[places]), integrated_dice(p, y))


@pytest.mark.parametrize("mean", [-12, 0])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_ideal_dice_of_a_large_map(mean, dtype):
    p = logit_normal((600, 500), mean=mean)
    p = (p * 255).round().astype(dtype) if dtype == "uint8" else (p * 4095).round().astype(dtype) / 4095
    y = probabilities(p) >= 0.5
    assert close(ideal_dice_confidence(p, y), integrated_dice(p, y))


def disc(side, radius, edge, centre=0.5):
    """One round object whose edge is ``edge`` pixels wide, rounded to a few thousand levels."""
    y, x = np.mgrid[:side, :side]
    distance = np.hypot(y - centre * side, x - centre * side) - radius
    return (1 / (1 + np.exp(np.clip(distance / edge, -700, 700).round(2)))).astype(np.float32)


@pytest.mark.parametrize("edge", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize(("side", "radius"), [(64, 16), (100, 3), (300, 75), (512, 128), (740, 180)])
def test_ideal_dice_of_a_sharp_object(side, radius, edge):
    p = disc(side, radius, edge)
    for y in (p >= 0.5, disc(side, radius, edge, centre=0.55) >= 0.5):
        assert close(ideal_dice_confidence(p, y), integrated_dice(p, y))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
def test_ideal_dice_of_a_sharp_object_of_another_type(dtype):
    p = disc(200, 50, 1.0)
    p = (255 * p).round().astype(dtype) if dtype == "uint8" else p.astype(dtype)
    y = probabilities(p) >= 0.5
    assert close(ideal_dice_confidence(p), integrated_dice(p, y))


@pytest.mark.parametrize("top", [1e-12, 1e-8, 1e-6, 1e-4, 1e-3, 0.02, 0.3])
@pytest.mark.parametrize("inside", [0.9, 80.0, 690.0, 720.0, 6900.0, 7100.0, 40_000.0])
def test_blocks_that_are_skipped_do_not_show(top, inside):
    levels = np.linspace(0.1, 1.0, 50)
    mask = 0.5 + 0.5 * levels[np.arange(round(inside / 0.775) + 1) % levels.size]
    background = top * levels[np.arange(100_000) % levels.size]
    p = np.concatenate([background, mask])
    y = np.arange(p.size) >= background.size
    # The reference is for k + Σp of 100 and more.
    expected = integrated_dice(p, y) if inside + background.sum() > 100 else None
    found = ideal_dice_confidence(p, y)
    if expected is not None:
        assert close(found, expected)
    strict = open_map(p, y).dice_statistics(any_weights=True)
    assert close(found, integrate_tversky(strict, 0.5, 0.5))


WEIGHTS = [
    (1, 1),
    (0.5, 0.5),
    (0, 1),
    (1, 0),
    (0, 0),
    (0.2, 0.8),
    (1e-4, 0.9999),
    (0.5, 30),
    (0.3, 1e4),
    (1, 1e9),
]


class TestExpectedTversky:
    @pytest.mark.parametrize("family", ["random", "saturated", "tiny", "near empty", "near full"])
    @pytest.mark.parametrize("mask", ["one pixel", "full", "any"])
    def test_equals_the_sum_over_all_truths(self, family, mask):
        p, y = example(family, mask, 9)
        for alpha, beta in WEIGHTS:
            expected = enumerated_tversky(p, y, alpha, beta)
            assert close(expected_tversky(p, y, alpha=alpha, beta=beta), expected), (alpha, beta)

    @pytest.mark.parametrize("mean", [-9, -2, 4])
    def test_equals_the_recursion(self, mean):
        p = logit_normal(1500, mean=mean)
        for alpha, beta in WEIGHTS:
            expected = counted_tversky(p, p >= 0.5, alpha, beta)
            assert close(expected_tversky(p, alpha=alpha, beta=beta), expected), (alpha, beta)

    @pytest.mark.parametrize("beta", [3, 30, 1e4])
    def test_certain_pixels_outside_have_no_chance_of_being_hits(self, beta):
        p, y = np.array([1.0, 1.0, 0.9, 0.2]), np.array([False, True, True, False])
        assert close(expected_tversky(p, y, alpha=0.5, beta=beta), counted_tversky(p, y, 0.5, beta))

    @pytest.mark.parametrize(("alpha", "beta"), [(0, 1), (1, 1), (0, 30)])
    @pytest.mark.parametrize("mass", [0.99 * MASS_LIMIT, 1.01 * MASS_LIMIT, 3 * MASS_LIMIT])
    def test_likely_pixels_on_both_sides_need_six_powers(self, mass, alpha, beta):
        inside, outside = np.full(round(mass / 0.5), 0.5), np.full(round(mass / 0.99), 0.99)
        p, y = np.concatenate([inside, outside]), np.arange(inside.size + outside.size) < inside.size
        assert close(expected_tversky(p, y, alpha=alpha, beta=beta), counted_tversky(p, y, alpha, beta))

    @pytest.mark.parametrize(
        ("inside", "outside"),
        [
            ([(1700, 0.9)], [(30, 0.4)]),  # little outside, which weighs much if beta is large
            ([(5, 0.6)], [(2500, 0.45)]),  # little inside, beside much that hardly weighs if beta is small
            ([(1500, 1e-3)], [(1700, 0.7)]),  # a mask in the wrong place
            ([(1500, 0.9)], [(1500, 1e-3)]),
        ],
    )
    def test_unequal_sides_at_any_weights(self, inside, outside):
        parts = [np.full(*each) for each in inside], [np.full(*each) for each in outside]
        p = np.concatenate([*parts[0], *parts[1]])
        y = np.arange(p.size) < sum(part.size for part in parts[0])
        for alpha, beta in [*WEIGHTS, (0, 1e-3), (0.1, 0.01), (0.5, 0.49), (0, 1.01), (0.9, 0.1), (1, 0.5)]:
            expected = counted_tversky(p, y, alpha, beta)
            assert close(expected_tversky(p, y, alpha=alpha, beta=beta), expected), (alpha, beta)


class TestProbabilityOfEmpty:
    @pytest.mark.parametrize("mean", [-60, -20, -9, -6])
    @pytest.mark.parametrize("n", [1, 10, 3000])
    def test_equals_the_product(self, mean, n):
        p = logit_normal(n, mean=mean)
        statistics = open_map(p).dice_statistics()
        product = (1 - probabilities(p)).prod()
        assert close(probability_of_empty(statistics), product)
        foreground = -np.expm1(np.log1p(-probabilities(p)).sum())
        assert close(probability_of_foreground(statistics), foreground)

    def test_is_zero_where_a_pixel_is_certain(self):
        statistics = open_map(np.array([0.1, 1.0])).dice_statistics()
        assert (probability_of_empty(statistics), probability_of_foreground(statistics)) == (0, 1)

    def test_is_zero_where_there_is_much_mass(self):
        statistics = open_map(np.full(10_000, 0.3)).dice_statistics()
        assert (probability_of_empty(statistics), probability_of_foreground(statistics)) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("mean", [-14, -2])
def test_a_hundred_million_pixels(dtype, mean):
    levels = (logit_normal(10**6, mean=mean) * 255).round()
    p = np.tile(levels.astype(dtype) if dtype == "uint8" else (levels / 255).astype(dtype), 100)
    values, counts = np.unique(p[: 10**6], return_counts=True)
    exact, counts = probabilities(values), 100 * counts
    y = exact >= 0.5
    bounds, ideal = dice_bounds(p), ideal_dice_confidence(p)
    assert bounds.k == counts[y].sum()
    assert close(bounds.s, (exact[y] * counts[y]).sum(), 1e-14)
    assert close(ideal, integrated_dice_of((exact[y], counts[y]), (exact[~y], counts[~y])))
    ratio = ideal / (2 * bounds.s / (bounds.k + bounds.s + bounds.lam))
    assert bounds.lower * (1 - 1e-14) <= ratio <= bounds.upper * (1 + 1e-14)


@pytest.mark.parametrize(("k", "p"), [(10_024, 0.06973070808036569), (5_000, 0.13), (2_500, 0.27)])
def test_many_equal_pixels_are_not_rounded_alike(k, p):
    """Each side holds just less than power sums take over; with rounded factors it was off by 1.6e-12."""
    mpmath.mp.dps = 40
    q = mpmath.mpf(float(p))

    def integrand(x):
        t = mpmath.exp(-x / (k + k * q))
        return t**k * (1 - q + q * t) ** (2 * k - 1) * t

    expected = 2 * k * q * mpmath.quad(integrand, [0, 1, 3, 8, 20, 50, 120]) / (k + k * q)
    found = ideal_dice_confidence(np.full(2 * k, p), np.arange(2 * k) < k)
    assert abs(found / expected - 1) < 2e-13


Y = np.array([0.0, 1e-9, 1e-3, 0.5, 3.0, 40.0, 300.0])
T, U = np.exp(-Y), -np.expm1(-Y)


def exact_generating_sums(values, y):
    values, y = values.astype(Exact), y.astype(Exact)[:, None]
    factors = (1 - values) + values * np.exp(-y)
    with np.errstate(divide="ignore"):
        logarithms = np.where(factors > 0.5, np.log1p(values * np.expm1(-y)), np.log(factors))
        return logarithms.sum(1), (values / factors).sum(1)


class TestGeneratingSums:
    @pytest.mark.parametrize("size", [1, 15, 16, 17, 1000])
    @pytest.mark.parametrize("low", [0.004, 0.9, 1 - 1e-12])
    def test_equal_the_formula(self, size, low):
        values = np.random.default_rng(size).uniform(low, 1, size)
        logarithms, slopes = generating_sums(values, T, U)
        expected_logarithms, expected_slopes = exact_generating_sums(values, Y)
        finite = np.isfinite(logarithms)  # a product that underflows has a logarithm of minus infinity
        assert (expected_logarithms[~finite] < -700).all()
        error = logarithms[finite] - expected_logarithms[finite]
        assert (np.abs(error) <= -4e-15 * expected_logarithms[finite]).all()
        assert np.allclose(slopes, expected_slopes.astype(float), rtol=1e-12)

    def test_certain_pixels_count_fully(self):
        logarithms, slopes = generating_sums(np.ones(3), T[:-1], U[:-1])
        assert np.allclose(logarithms, 3 * np.log(T[:-1]))
        assert np.allclose(slopes, 3 / T[:-1])

    def test_are_zero_without_pixels(self):
        assert [sums.tolist() for sums in generating_sums(np.empty(0), T, U)] == [[0] * T.size] * 2


@given(
    n=st.integers(1, 400),
    family=st.sampled_from(sorted(FAMILIES)),
    mask=st.sampled_from(sorted(MASKS)),
    alpha=st.floats(0, 1),
    beta=st.one_of(st.just(0.0), st.floats(1e-3, 5)),
)
def test_compiled_integral_equals_the_rule_with_all_nodes(n, family, mask, alpha, beta):
    p, y = example(family, mask, n)
    statistics = open_map(p, y).dice_statistics()
    if statistics.k:
        expected = min(integrate_tversky(statistics, alpha, beta), 1.0)
        assert close(expected_tversky(p, y, alpha=alpha, beta=beta), expected)


@pytest.mark.parametrize("mass", [1, 20, 63, 64, 65, 200, 650, 705, 8000])
def test_compiled_integral_around_the_masses_at_which_it_changes(mass):
    rng = np.random.default_rng(mass)
    for n in (2 * mass, 20 * mass):
        p = np.minimum(1.0, 2.0 * mass / n * rng.random(n))
        y = rng.random(n) < 0.5
        statistics = open_map(p, y).dice_statistics()
        assert close(ideal_dice_confidence(p, y), integrate_tversky(statistics, 0.5, 0.5))
