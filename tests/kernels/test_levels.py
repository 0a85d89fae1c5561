"""Pixels by probability: counted exactly for few values, in bins for many."""

import numpy as np
import pytest

from segtrust.kernels.levels import binned_levels, levels_in_bins

TYPES = (bool, np.uint8, np.uint16, np.float16, np.float32, np.float64, np.longdouble)


def told_apart(p):
    """All levels of a map, of its bins where it has some."""
    levels = binned_levels(p)
    return levels if levels.values is not None else levels_in_bins(p, levels.bins)


@pytest.mark.parametrize("dtype", TYPES)
def test_levels_are_the_values_and_their_numbers(dtype):
    drawn = np.random.default_rng(0).integers(0, 9, (40, 50))
    p = drawn.astype(dtype) if np.dtype(dtype).kind in "bu" else (drawn / 8).astype(dtype)
    scale = {"u": np.iinfo(dtype).max} if np.dtype(dtype).kind == "u" else {}
    values, counts = np.unique(p.astype(np.float64) / scale.get(p.dtype.kind, 1), return_counts=True)
    levels = told_apart(p)
    np.testing.assert_array_equal(levels.values, values[::-1])
    np.testing.assert_array_equal(levels.counts, counts[::-1])
    np.testing.assert_allclose(levels.sums, (values * counts)[::-1], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_ordered_as_values_are(dtype):
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(200_000), 10.0 ** -rng.uniform(0, 50, 99_990), np.arange(10) / 9])
    p = p.astype(dtype)
    levels = binned_levels(p)
    order = np.sort(p)[::-1].astype(np.float64)
    ends = np.cumsum(levels.counts)
    assert ends[-1] == p.size
    np.testing.assert_allclose(np.cumsum(levels.sums), np.cumsum(order)[ends - 1], rtol=1e-12)
    np.testing.assert_array_equal(levels_in_bins(p, levels.bins).values, np.unique(p + 0.0)[::-1])


def test_a_zero_with_a_sign_is_a_zero():
    for dtype in (np.float16, np.float32, np.float64):
        assert told_apart(np.array([-0.0, 0.0, 0.5], dtype)).counts.tolist() == [1, 2]


@pytest.mark.needs("zarr")
def test_maps_in_chunks_are_counted_like_those_in_memory():
    import zarr

    p = np.random.default_rng(1).random((600, 500), dtype=np.float32)
    for whole in (p, (p * 255).astype(np.uint8)):
        chunked = zarr.array(whole, chunks=(320, 330))
        for ours, theirs in ((binned_levels(chunked), binned_levels(whole)),):
            np.testing.assert_array_equal(ours.counts, theirs.counts)
            np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-13)
