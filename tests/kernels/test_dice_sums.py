"""Counts and sums of powers by side, against exact sums."""

import math

import numpy as np
import pytest

from segtrust.errors import ProbabilityRangeError
from segtrust.kernels import open_map
from segtrust.kernels.dice_sums import DICE_BLOCK
from segtrust.kernels.map_view import SMALLEST_SEGMENT
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT, ORDER
from tests.references import Exact, close, logit_normal, mask_of, probabilities


def exact_counts(p, y):
    p = probabilities(p)
    return y.size, np.count_nonzero(y), p[y].sum(), p[~y].sum()


BORDERS = [size + step for size in (DICE_BLOCK, SMALLEST_SEGMENT) for step in (-1, 0, 1)]


@pytest.mark.parametrize("n", [1, 2, 3, *BORDERS])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_counts_around_block_borders(n, dtype):
    p = logit_normal(n, n, mean=-1)
    p = (255 * p).astype(dtype) if dtype == "uint8" else p.astype(dtype)
    for mask in (None, np.random.default_rng(n).random(n) < 0.3):
        counts = open_map(p, mask).count()
        total, k, s, lam = exact_counts(p, mask_of(p, mask))
        assert (counts.n, counts.k) == (total, k)
        assert close(counts.s, s, 1e-14)
        assert close(counts.lam, lam, 1e-14)


@pytest.mark.parametrize("any_weights", [False, True])
@pytest.mark.parametrize("scale", [0.003, 0.1, 1.0])
@pytest.mark.parametrize("n", [10, 16 * DICE_BLOCK + 7, SMALLEST_SEGMENT + 5])
def test_powers_and_values_apart_account_for_every_pixel(scale, n, any_weights):
    p = scale * np.random.default_rng(n).random(n)
    y = np.arange(n) % 3 == 0
    statistics = open_map(p, y).dice_statistics(any_weights=any_weights)
    for side, values in enumerate((p[~y], p[y])):
        rate = values.sum() if any_weights else p.sum()
        large = values > APART_ABOVE
        folded = rate >= MASS_LIMIT
        apart = values[:0] if folded else values[large]
        assert sorted(statistics.apart[side]) == sorted(apart)
        rest = (values if folded else values[~large]).astype(Exact)
        for order, found in zip(range(2, ORDER + 1), statistics.powers[side], strict=True):
            power = (rest**order).sum()
            matters = power * math.factorial(order - 1) / max(rate, 1.0) ** order > 1e-14
            assert math.isclose(found, power, rel_tol=1e-12, abs_tol=1e-15) or (found == 0.0 and not matters)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [77, 3 * DICE_BLOCK + 5, SMALLEST_SEGMENT + 100])
def test_counts_beside_the_powers_are_those_without_to_the_last_bit(n, dtype):
    p = logit_normal(n, mean=-1)
    p = p.astype(dtype)
    for mask in (None, np.random.default_rng(n).random(n) < 0.3):
        source = open_map(p, mask)
        assert source.count() == source.dice_statistics().counts


@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("n", [1000, SMALLEST_SEGMENT, 3 * SMALLEST_SEGMENT])
def test_negative_values_do_not_make_room_for_too_many_apart(powers, n):
    p = np.where(np.random.default_rng(0).random(n) < 0.8, 0.45, -9.0)  # no mass, but all could be set apart
    source = open_map(p)
    with pytest.raises(ProbabilityRangeError, match="look like logits"):
        source.dice_statistics() if powers else source.count()


@pytest.mark.slow
def test_a_hundred_million_floats_are_summed_exactly():
    n, piece = 10**8, 10**6
    levels = 2**20  # probabilities are multiples of 2**-24, so that their sum is that of integers
    codes = np.random.default_rng(0).integers(0, 2**24 + 1, piece)
    codes[: piece // 2] %= levels
    p = np.tile((codes / 2**24).astype(np.float32), n // piece)
    counts = open_map(p).count()
    inside = codes >= 2**23
    assert counts.k == int(inside.sum()) * (n // piece)
    assert close(counts.s, int(codes[inside].sum()) * (n // piece) / Exact(2**24), 1e-15)
    assert close(counts.lam, int(codes[~inside].sum()) * (n // piece) / Exact(2**24), 1e-15)
