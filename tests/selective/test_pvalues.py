"""P-values are valid: below a level no more often than the level says, and equal to slow twins."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from segtrust.errors import CaseValueError
from segtrust.selective.pvalues import P_VALUES, betting_p_value, binomial_p_value, hoeffding_bentkus_p_value


def slow_betting(losses, target, delta):
    """Three gamblers, one case after the other."""
    bold = 1 / (1 - target)
    careful = min(bold, math.sqrt(2 * math.log(1 / delta) / (len(losses) * target * (1 - target))))
    fortunes = []
    for stake in (careful, math.sqrt(careful * bold), bold):
        fortune = 1 / 3
        for loss in losses:
            fortune *= max(0.0, 1 - stake * (loss - target))
        fortunes.append(fortune)
    return 1 / max(1.0, sum(fortunes))


unit_losses = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), max_size=40).map(np.array)
inner = st.floats(0.01, 0.99)


@given(unit_losses, inner, inner)
def test_betting_equals_the_game_played_out(losses, target, delta):
    expected = slow_betting(losses, target, delta) if losses.size else 1
    assert betting_p_value(losses, target, delta) == pytest.approx(expected, rel=1e-9)


@given(unit_losses, st.randoms(use_true_random=False))
def test_betting_knows_no_order(losses, random):
    turned = np.array(random.sample(losses.tolist(), losses.size))
    assert betting_p_value(turned, 0.1, 0.05) == pytest.approx(betting_p_value(losses, 0.1, 0.05), rel=1e-9)


@given(unit_losses, inner)
def test_hoeffding_bentkus_equals_its_two_bounds(losses, target):
    found = hoeffding_bentkus_p_value(losses, target, 0.05)
    if losses.size == 0:
        assert found == 1
        return
    n, low = losses.size, min(losses.mean(), target)
    terms = [x * math.log(x / y) if x else 0 for x, y in ((low, target), (1 - low, 1 - target))]
    bentkus = math.e * binom.cdf(math.ceil(round(n * losses.mean(), 9)), n, target)
    assert found == pytest.approx(min(1, math.exp(-n * sum(terms)), bentkus))


@given(st.integers(0, 30), st.integers(0, 30), inner)
def test_binomial_is_the_distribution_function(hits, misses, target):
    losses = np.repeat([1.0, 0.0], [hits, misses])
    expected = binom.cdf(hits, hits + misses, target) if hits + misses else 1
    assert binomial_p_value(losses, target, 0.05) == pytest.approx(expected)


ANY = [name for name in P_VALUES if name != "binomial"]
LAWS = {
    "coins": lambda rng, n: (rng.random(n) < 0.1) * 1.0,
    "spread out": lambda rng, n: rng.beta(0.3, 2.7, n),
    "narrow": lambda rng, n: rng.beta(20, 180, n),
    "constant": lambda rng, n: np.full(n, 0.1),
    "rare disasters": lambda rng, n: np.where(rng.random(n) < 0.05, 1.0, 1 / 19),
}


@pytest.mark.parametrize(("name", "law"), [*product(ANY, LAWS), ("binomial", "coins")])
def test_valid_where_the_mean_is_the_target(law, name):
    """Every law has mean 0.1, which is not below the target."""
    draws, level = 2000, 0.05
    for n in (20, 200):
        rng = np.random.default_rng(n)
        found = np.array([P_VALUES[name](LAWS[law](rng, n), 0.1, level) for _ in range(draws)])
        assert binom.sf((found <= level).sum() - 1, draws, level) > 1e-4


@pytest.mark.parametrize("name", [name for name in P_VALUES if name != "adaptive-betting"])  # see test_ranks
def test_valid_for_coins_to_the_last_digit(name):
    """Every number of failures with its probability, no simulation; a coin of the target is the worst."""
    for target, n, level in product((0.01, 0.1, 0.3, 0.7), (1, 5, 30, 100, 400), (0.01, 0.05, 0.2)):
        hits = np.arange(n + 1)
        found = [P_VALUES[name](np.repeat([1.0, 0.0], [k, n - k]), target, level) for k in hits]
        assert binom.pmf(hits, n, target)[np.array(found) <= level].sum() <= level + 1e-12


def test_a_certain_disaster():
    assert betting_p_value(np.ones(50), 0.1, 0.05) == 1


def test_huge_numbers_of_cases():
    assert betting_p_value(np.full(10**6, 0.05), 0.1, 0.05) == 0


@pytest.mark.parametrize("name", P_VALUES)
def test_no_case_proves_nothing(name):
    assert P_VALUES[name](np.array([]), 0.1, 0.05) == 1


def test_small_losses_are_noticed():
    losses = np.full(200, 0.01)
    assert betting_p_value(losses, 0.1, 0.05) < 1e-6
    assert hoeffding_bentkus_p_value(losses, 0.1, 0.05) < 1e-4


def test_binomial_rejects_other_losses():
    with pytest.raises(CaseValueError, match="choose 'betting'"):
        binomial_p_value(np.array([0.5]), 0.1, 0.05)
