"""Doubts counted value by value, and order statistics of many maps from them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import ProbabilityRangeError
from segtrust.kernels.device import DeviceMap
from segtrust.kernels.distinct import distinct_doubts, pair_of_ranks
from segtrust.kernels.opening import open_map
from tests.references import entropies, logit_normal

doubts = arrays.arrays(
    float, st.integers(1, 40), elements=st.floats(0, 0.5) | st.sampled_from([0.0, 0.1, 0.5, 1e-300])
)


@given(st.lists(doubts, min_size=1, max_size=4))
def test_counts_equal_those_of_all_pixels(blocks):
    found = distinct_doubts(blocks)
    values, counts = np.unique(np.concatenate(blocks), return_counts=True)
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.counts, counts)


@given(st.lists(doubts, min_size=1, max_size=5), st.data())
def test_ranks_equal_those_of_sorting_all_pixels(maps, data):
    pooled = np.sort(np.concatenate(maps))
    rank = data.draw(st.integers(0, pooled.size - 1))
    counted = [distinct_doubts([each]) for each in maps]
    found = pair_of_ranks(
        [each.values for each in counted], [np.cumsum(each.counts) for each in counted], rank
    )
    assert found == (pooled[rank], pooled[min(rank + 1, pooled.size - 1)])


P = logit_normal((37, 41), mean=-1)
MAPS = {
    "float64": P,
    "float32": P.astype(np.float32),
    "float16": P.astype(np.float16),
    "fortran": np.asfortranarray(P),
    "gaps": np.repeat(P, 2, axis=1)[:, ::2],
    "uint8": (255 * P).astype(np.uint8),
    "uint16": (65535 * P).astype(">u2"),
    "bool": P > 0.5,
    "signed zero": np.where(P > 0.2, P, -0.0),
    "one dimension": P.reshape(-1),
    "four dimensions": P[:36, :40].reshape(6, 6, 8, 5),
}


@pytest.mark.parametrize("name", MAPS)
class TestMaps:
    def test_doubts_of_a_map(self, name):
        stored = MAPS[name]
        p = stored.astype(float) / {"u1": 255, "u2": 65535}.get(stored.dtype.str[1:], 1)
        values, counts = np.unique(np.minimum(p, 1 - p) + 0.0, return_counts=True)
        for source in (open_map(stored), DeviceMap(stored, None, 0.5, "p")):
            found = source.distinct_doubts()
            np.testing.assert_array_equal(found.values, values)
            np.testing.assert_array_equal(found.counts, counts)
            assert not np.signbit(found.values).any()

    def test_entropies_of_a_map(self, name):
        stored = MAPS[name]
        for source in (open_map(stored), DeviceMap(stored, None, 0.5, "p")):
            found = source.entropy_map()
            assert found.shape == stored.shape
            np.testing.assert_allclose(found, entropies(stored).astype(float), rtol=1e-12, atol=1e-300)


@pytest.mark.needs("dask")
def test_chunks_give_the_numbers_of_the_whole_map():
    import dask.array

    chunked = open_map(dask.array.from_array(P, chunks=(10, 17)))
    np.testing.assert_array_equal(chunked.entropy_map(), open_map(P).entropy_map())
    for one, other in zip(chunked.distinct_doubts(), open_map(P).distinct_doubts(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.1, np.inf])
@pytest.mark.parametrize("method", ["entropy_map", "distinct_doubts"])
def test_bad_values_are_refused_by_their_place(method, value):
    p = P.copy()
    p[30, 7] = value
    with pytest.raises(ProbabilityRangeError, match=r"case 7: .*\(30, 7\)"):
        getattr(open_map(p, source="case 7"), method)()
