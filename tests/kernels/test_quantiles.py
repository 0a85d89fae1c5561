"""Exact order statistics and counts of doubts, against sorting."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import ProbabilityRangeError
from segtrust.kernels import (
    DeviceMap,
    Ranks,
    Selector,
    UncertaintyNeeds,
    bracket_from_sample,
    open_map,
    pair_of_ranks,
    quantiles,
)
from segtrust.kernels.quantiles import distinct_doubts, order_statistic
from segtrust.kernels.statistics import COLLECT, Bracket
from segtrust.kernels.uncertainty import ENTROPY_BLOCK
from tests.references import entropies, logit_normal, probabilities

ROOM = 6


def doubts_of(p):
    p = probabilities(p).astype(float).ravel()
    return np.minimum(p, 1 - p)


def middle_of(p):
    return open_map(p).measure(UncertaintyNeeds(median=True)).middle


def sorted_middle(p):
    ordered = np.sort(doubts_of(p))
    return ordered[(ordered.size - 1) // 2], ordered[ordered.size // 2]


rng = np.random.default_rng(5)
MANY = 3 * COLLECT
MAPS = {
    "one pixel": np.array([0.3]),
    "two pixels": np.array([0.3, 0.9]),
    "three pixels": np.array([0.3, 0.9, 0.5]),
    "zeros": np.zeros(1000),
    "ones": np.ones(1001),
    "halves": np.full(999, 0.5),
    "two values, even": np.repeat([0.1, 0.2], 500),
    "two values, odd": np.repeat([0.1, 0.8], [500, 501]),
    "many of two values": rng.choice([0.1, 0.2], MANY),
    "many ties": rng.integers(0, 5, MANY) / 8,
    "mostly zero": np.where(rng.random(MANY) < 0.6, 0, rng.random(MANY)),
    "hardly more than half zero": np.repeat([0.0, 0.25], [MANY // 2 + 1, MANY // 2]),
    "narrow": 0.3 + 1e-12 * rng.random(MANY),
    "neighbours": 0.3 + 2.0**-54 * rng.integers(0, 4, MANY),
    "wide": 10 ** rng.uniform(-300, -0.4, MANY),
    "smooth": rng.random(2_500_000).astype(np.float32),
    "sorted": np.sort(rng.random(MANY)),
    "8 bits": rng.integers(0, 256, MANY, np.uint8),
    "16 bits": rng.integers(0, 65536, MANY).astype(np.uint16),
    "negative zeros": np.where(rng.random(MANY) < 0.6, -0.0, 0.25),
}


@pytest.mark.parametrize("name", MAPS)
def test_middle_is_exact(name):
    assert middle_of(MAPS[name]) == sorted_middle(MAPS[name])


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=40))
def test_middle_of_any_map(p):
    assert middle_of(np.array(p)) == sorted_middle(p)


def sees(doubts, room=ROOM):
    """A pass over all pixels, as a kernel with little room makes it."""

    def count(bracket):
        inside = doubts[(doubts > bracket.low) & (doubts < bracket.high)]
        return Ranks(
            int((doubts < bracket.low).sum()),
            int((doubts <= bracket.low).sum()),
            int((doubts < bracket.high).sum()),
            int((doubts <= bracket.high).sum()),
            inside if inside.size <= room else inside[:0],
        )

    return count


few_values = st.sampled_from([0.0, 5e-324, 0.1, 0.1 + 1e-16, 0.25, 0.4999, 0.5])
doubts_lists = st.lists(few_values | st.floats(0, 0.5), min_size=1, max_size=60).map(np.array)


@given(doubts=doubts_lists, sample=st.lists(few_values, min_size=1), ends=st.tuples(few_values, few_values))
def test_every_rank_is_found_however_bad_the_first_guess(doubts, sample, ends):
    count, bracket = sees(doubts), Bracket(*sorted(ends))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "COLLECT", ROOM)
        selector = Selector(count, doubts.size, np.array(sample), bracket, count(bracket))
        assert [selector.one(rank) for rank in range(doubts.size)] == sorted(doubts)


@given(doubts_lists)
def test_pairs_are_neighbours_and_the_last_is_its_own(doubts):
    count, bracket = sees(doubts, room=1000), Bracket(0.0, 0.5)
    selector = Selector(count, doubts.size, doubts, bracket, count(bracket))
    ordered = [*sorted(doubts), max(doubts)]
    assert [selector.pair(rank) for rank in range(doubts.size)] == list(pairwise(ordered))


READ_TWICE = {
    "smooth": np.random.default_rng(0).random(10**6),
    "8 bits": np.random.default_rng(0).integers(0, 256, 10**6, np.uint8),
    "8 bits, as floats": (logit_normal(10**6) * 255).round().astype(np.float32) / 255,
    "mostly zero": np.where(np.random.default_rng(0).random(10**6) < 0.6, 0, 0.3),
}


@pytest.mark.parametrize("name", READ_TWICE)
def test_a_large_map_is_read_twice_for_its_median(name, monkeypatch):
    p = READ_TWICE[name]
    source, passes = open_map(p), []
    measure_once = type(source).measure_once
    monkeypatch.setattr(
        type(source), "measure_once", lambda *request: passes.append(1) or measure_once(*request)
    )
    assert source.measure(UncertaintyNeeds(median=True)).middle == sorted_middle(p)
    assert len(passes) == 1  # and once for the sample


def test_a_block_that_found_no_room_is_noticed():
    """The room is not quite full at the end, but a block before had too many pixels to be sure of it."""
    inside = [ENTROPY_BLOCK] * (COLLECT // ENTROPY_BLOCK - 1) + [1000, 500]
    p = np.concatenate([np.where(np.arange(ENTROPY_BLOCK) < count, 0.3, 0.0) for count in inside])
    p[p > 0] -= np.linspace(0, 0.1, np.count_nonzero(p))
    ranks = open_map(p).ranks(Bracket(0.1, 0.4))
    assert ranks.below_high - ranks.upto_low == sum(inside) < COLLECT
    assert not ranks.complete


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_bracket_encloses_the_quantile(fraction):
    sample = np.random.default_rng(0).uniform(0.1, 0.4, 10_000)
    bracket = bracket_from_sample(sample, fraction)
    assert bracket.low < np.quantile(sample, fraction) < bracket.high
    share = np.mean((sample > bracket.low) & (sample < bracket.high))
    assert share < 0.06


def test_ranks_of_tiles_add_up():
    parts = [
        Ranks(0, 1, 3, 4, np.array([0.1, 0.2])),
        Ranks(1, 2, 2, 2, np.array([])),
        Ranks(0, 0, 1, 3, np.array([0.3])),
    ]
    whole = Ranks.together(parts)
    assert (whole.below_low, whole.upto_low, whole.below_high, whole.upto_high) == (1, 3, 6, 9)
    assert whole.inside.tolist() == [0.1, 0.2, 0.3]
    assert whole.complete


TIED = {
    "hardly any": lambda rng, n: rng.uniform(0, 0.5, n),
    "all over": lambda rng, n: rng.integers(0, 9, n) / 16,
    "mostly zeros": lambda rng, n: np.where(rng.uniform(size=n) < 0.8, 0.0, rng.uniform(0, 0.5, n)),
    "neighbours of an end": lambda rng, n: 0.25 + 2.0**-55 * rng.choice([-2, -1, 0, 2, 4], n),
    "mostly one value": lambda rng, n: np.where(rng.uniform(size=n) < 0.9, 0.25, rng.uniform(0, 0.5, n)),
}
BRACKETS = [(0.0, 0.0), (0.0, 0.5), (0.0, 0.01), (0.25, 0.25), (0.24, 0.25), (0.25, 0.26), (0.125, 0.4375)]


@pytest.mark.parametrize("n", [1, 7, ENTROPY_BLOCK, 3 * ENTROPY_BLOCK + 2, COLLECT + 5])
@pytest.mark.parametrize("bracket", BRACKETS)
@pytest.mark.parametrize("ties", TIED)
def test_pixels_around_a_bracket_are_counted(ties, bracket, n):
    doubts = TIED[ties](np.random.default_rng(n), n)
    low, high = bracket
    inside = doubts[(doubts > low) & (doubts < high)]
    ranks = open_map(doubts).ranks(Bracket(low, high))
    found = ranks.below_low, ranks.upto_low, ranks.below_high, ranks.upto_high
    counted = doubts < low, doubts <= low, doubts < high, doubts <= high
    assert found == tuple(int(each.sum()) for each in counted)
    if inside.size <= COLLECT - ENTROPY_BLOCK and low < high:
        assert ranks.complete
        assert np.array_equal(np.sort(ranks.inside), np.sort(inside))


ARRAYS = {
    "random": lambda rng, n: rng.random(n),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "falling": lambda rng, n: -np.sort(rng.random(n)),
    "two levels": lambda rng, n: rng.integers(0, 2, n) * 0.5,
    "all equal": lambda rng, n: np.full(n, 0.25),
    "guides above all others": lambda rng, n: np.where(
        np.arange(n) % (n // 1024 or 1) == 0, 1.0, rng.random(n)
    ),
    "skewed": lambda rng, n: rng.random(n) ** 30,
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("n", [1, 2, 4097, 107_054])
def test_order_statistics_of_an_array(name, n):
    values = ARRAYS[name](np.random.default_rng(n), n)
    ordered = np.sort(values)
    for rank in {0, n // 3, (n - 1) // 2, n // 2, n - 2, n - 1} & set(range(n)):
        assert order_statistic(values, rank) == ordered[rank]


def test_a_large_smooth_map_is_read_twice():
    """The doubts around its median all lie in one chunk."""
    rng, depth = np.random.default_rng(0), 80
    p = np.linspace(0.02, 0.45, depth)[:, None] + 1e-3 * rng.random((depth, 200_001))

    class Counted:
        chunks, shape, dtype, reads = (8, 200_001), p.shape, p.dtype, 0

        def __getitem__(self, index):
            Counted.reads += p[index].size
            return p[index]

    found = open_map(Counted()).measure(UncertaintyNeeds(median=True)).middle
    ordered = np.sort(p, axis=None)
    assert found == (ordered[(p.size - 1) // 2], ordered[p.size // 2])
    assert Counted.reads == 2 * p.size


tables = arrays.arrays(
    float, st.integers(1, 40), elements=st.floats(0, 0.5) | st.sampled_from([0.0, 0.1, 0.5, 1e-300])
)


class TestDistinctDoubts:
    @given(st.lists(tables, min_size=1, max_size=4))
    def test_counts_equal_those_of_all_pixels(self, blocks):
        doubts = distinct_doubts(blocks)
        values, counts = np.unique(np.concatenate(blocks), return_counts=True)
        np.testing.assert_array_equal(doubts.values, values)
        np.testing.assert_array_equal(doubts.counts, counts)

    @given(st.lists(tables, min_size=1, max_size=5), st.data(), st.sampled_from([0, ROOM, COLLECT]))
    def test_ranks_equal_those_of_sorting_all_pixels(self, maps, data, room):
        pooled = np.sort(np.concatenate(maps))
        rank = data.draw(st.integers(0, pooled.size - 1))
        counted = [distinct_doubts([doubts]) for doubts in maps]
        values, upto = [table.values for table in counted], [np.cumsum(table.counts) for table in counted]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quantiles, "COLLECT", room)
            patch.setattr(quantiles, "_SAMPLE_OF_TABLES", 4)
            pair = pair_of_ranks(values, upto, rank)
        assert pair == (pooled[rank], pooled[min(rank + 1, pooled.size - 1)])

    @pytest.mark.parametrize("levels", [2, 256, 10**9])
    def test_ranks_of_many_maps(self, levels):
        rng = np.random.default_rng(0)
        maps = [rng.integers(0, levels, rng.integers(1, 20_000)) / (2 * levels) for _ in range(30)]
        pooled = np.sort(np.concatenate(maps))
        counted = [distinct_doubts([doubts]) for doubts in maps]
        values, upto = [table.values for table in counted], [np.cumsum(table.counts) for table in counted]
        for rank in (0, pooled.size // 3, pooled.size // 2, pooled.size - 2):
            assert pair_of_ranks(values, upto, rank) == (pooled[rank], pooled[rank + 1])


P = logit_normal((37, 41), mean=-1)
STORED = {
    "float64": P,
    "float32": P.astype(np.float32),
    "float16": P.astype(np.float16),
    "fortran": np.asfortranarray(P),
    "gaps": np.repeat(P, 2, axis=1)[:, ::2],
    "uint8": (255 * P).astype(np.uint8),
    "uint16": (65535 * P).astype(">u2"),
    "bool": P > 0.5,
    "signed zero": np.where(P > 0.2, P, -0.0),
    "four dimensions": P[:36, :40].reshape(6, 6, 8, 5),
}


@pytest.mark.parametrize("name", STORED)
def test_distinct_doubts_and_entropies_of_a_map(name):
    stored = STORED[name]
    p = stored.astype(float) / {"u1": 255, "u2": 65535}.get(stored.dtype.str[1:], 1)
    values, counts = np.unique(np.minimum(p, 1 - p) + 0.0, return_counts=True)
    for source in (open_map(stored), DeviceMap(stored, None, 0.5, "p")):
        doubts, u = source.distinct_doubts(), source.entropy_map()
        np.testing.assert_array_equal(doubts.values, values)
        np.testing.assert_array_equal(doubts.counts, counts)
        assert not np.signbit(doubts.values).any()
        assert u.shape == stored.shape
        np.testing.assert_allclose(u, entropies(stored).astype(float), rtol=1e-12, atol=1e-300)


@pytest.mark.needs("dask")
def test_chunks_give_the_numbers_of_the_whole_map():
    import dask.array

    chunked = open_map(dask.array.from_array(P, chunks=(10, 17)))
    np.testing.assert_array_equal(chunked.entropy_map(), open_map(P).entropy_map())
    for in_chunks, whole in zip(chunked.distinct_doubts(), open_map(P).distinct_doubts(), strict=True):
        np.testing.assert_array_equal(in_chunks, whole)


@pytest.mark.parametrize("value", [np.nan, -0.1, np.inf])
@pytest.mark.parametrize("method", ["entropy_map", "distinct_doubts"])
def test_bad_values_are_rejected_with_their_index(method, value):
    p = P.copy()
    p[30, 7] = value
    with pytest.raises(ProbabilityRangeError, match=r"case 7: .*\(30, 7\)"):
        getattr(open_map(p, source="case 7"), method)()
