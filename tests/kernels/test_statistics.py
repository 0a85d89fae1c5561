"""Statistics of tiles add up to those of the whole map; entropies and bit patterns of single doubts."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.kernels import (
    Counts,
    UncertaintyNeeds,
    UncertaintyStatistics,
    binary_entropy,
    doubt_at_entropy,
    expected_dice,
    expected_tversky,
    open_map,
)
from segtrust.kernels.statistics import bits_of_float, float_of_bits
from tests.references import close, entropies, logit_normal

NEEDS = UncertaintyNeeds(entropies=True, doubt_limit=0.2)


def tiles(p, y, cuts):
    """Cut rows, and every second strip of rows in the middle of its columns too."""
    for i, (rows, mask) in enumerate(zip(np.split(p, cuts), np.split(y, cuts), strict=True)):
        pieces = zip(
            np.array_split(rows, 1 + i % 2, axis=1), np.array_split(mask, 1 + i % 2, axis=1), strict=True
        )
        yield from (open_map(values, part) for values, part in pieces if values.size)


def assert_same_uncertainty(found, whole):
    assert (found.n, found.above_count, found.lowest, found.highest) == (
        whole.n,
        whole.above_count,
        whole.lowest,
        whole.highest,
    )
    for name in ("doubt", "entropy", "above"):
        assert close(getattr(found, name), getattr(whole, name))


@given(
    cuts=st.lists(st.integers(0, 97), max_size=6).map(sorted),
    mean=st.sampled_from([-25.0, -7.0, -2.0, 0.0, 4.0]),
    height=st.sampled_from([97, 400]),
)
def test_tiles_add_up(cuts, mean, height):
    p = logit_normal((height, 60), mean=mean)
    y = np.random.default_rng(0).random(p.shape) < 0.2
    parts, whole = list(tiles(p, y, cuts)), open_map(p, y)
    counts = reduce(add, [part.count() for part in parts])
    assert (counts.n, counts.k) == (whole.count().n, whole.count().k)
    assert close(counts.s, whole.count().s)
    assert close(counts.lam, whole.count().lam)
    dice = reduce(add, [part.dice_statistics() for part in parts])
    assert close(expected_dice(dice), expected_dice(whole.dice_statistics()))
    assert close(expected_tversky(dice, 1, 1), expected_tversky(whole.dice_statistics(), 1, 1))
    uncertainty = reduce(add, [part.measure(NEEDS) for part in parts])
    assert_same_uncertainty(uncertainty, whole.measure(NEEDS))


@pytest.mark.parametrize("parts", [2, 7, 50])
def test_a_side_that_gains_mass_enough_is_folded(parts):
    p = np.full(3000, 0.4)
    statistics = [open_map(piece).dice_statistics() for piece in np.array_split(p, parts)]
    total = reduce(add, statistics)
    assert total.apart[0].size == 0
    assert all(each.apart[0].size for each in statistics)  # adding changes none of its parts
    assert np.allclose(total.powers[0], 3000 * 0.4 ** np.arange(2, 7))


def test_counts_add_up():
    assert Counts(4, 1, 0.5, 0.25) + Counts(2, 2, 1.5, 0.5) == Counts(6, 3, 2.0, 0.75)


def test_extremes_and_patches_of_tiles():
    one = UncertaintyStatistics(1, 0.1, lowest=0.1, highest=0.1, patch=3.0)
    other = UncertaintyStatistics(2, 0.5, lowest=0.2, highest=0.3)
    both = one + other
    assert (both.n, both.lowest, both.highest, both.patch) == (3, 0.1, 0.3, 3.0)
    assert np.isnan(both.middle).all()


doubts = st.just(0.0) | st.floats(1e-290, 0.5)


@given(doubts)
def test_entropy_equals_the_formula(doubt):
    assert close(binary_entropy(doubt), entropies(doubt), 1e-15)


@given(doubts, doubts)
def test_patterns_are_ordered_like_floats(one, other):
    assert (bits_of_float(one) < bits_of_float(other)) == (one < other)
    assert float_of_bits(bits_of_float(one)) == one


@given(doubts)
def test_doubt_at_entropy_includes_the_pixel_whose_entropy_it_is(doubt):
    found = doubt_at_entropy(binary_entropy(doubt))
    assert doubt <= found <= doubt * (1 + 2e-9)
    assert binary_entropy(found) <= binary_entropy(doubt) * (1 + 1e-15) + 60 * 2**-53


@given(st.floats(0, 1))
def test_doubt_at_entropy_is_the_largest_that_does_not_exceed_it(tau):
    doubt = doubt_at_entropy(tau)
    more, less = doubt * (1 + 3e-9) + 5e-324, doubt * (1 - 3e-9)
    assert doubt == 0.5 or binary_entropy(more) > tau
    assert binary_entropy(less) <= tau * (1 + 1e-15)


@pytest.mark.parametrize("levels", [255, 65535])
def test_both_codes_of_one_doubt_are_on_the_same_side(levels):
    codes = np.arange(1, levels // 2 + 1, max(1, levels // 1000))
    low, high = codes / levels, 1 - (levels - codes) / levels
    assert (low != high).any()
    for side in (low, high):
        limits = np.array([doubt_at_entropy(binary_entropy(doubt)) for doubt in side])
        assert (np.maximum(low, high) <= limits).all()
        assert (limits < low + 0.5 / levels).all()


@pytest.mark.parametrize(("tau", "doubt"), [(0.0, 0.0), (1.0, 0.5)])
def test_doubt_at_the_ends(tau, doubt):
    assert doubt_at_entropy(tau) == doubt
