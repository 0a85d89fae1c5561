"""The best mask, against every mask and every size; and counts of pixels by probability."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as some
from hypothesis.extra.numpy import arrays

from segtrust.kernels import best_threshold, expected_dice, open_map
from segtrust.kernels.decoding import count_in_bins, count_levels
from segtrust.kernels.integrals import expected_dice_of_growing
from tests.references import expected_by_size, logit_normal


def best_of_all_masks(p):
    """Largest expected Dice over all masks that are not empty, by all truths."""
    truths = np.array(list(product([0, 1], repeat=p.size)))
    chances = np.where(truths, p, 1.0 - p).prod(1)
    sets = (each for k in range(1, p.size + 1) for each in combinations(range(p.size), k))
    return max(float(chances @ (2.0 * truths[:, each].sum(1) / (len(each) + truths.sum(1)))) for each in sets)


def check_against_sizes(p):
    values = expected_by_size(p)
    found = best_threshold(p)
    if found is None:
        assert not np.any(p)
        return
    k = np.count_nonzero(p >= found.threshold)
    assert found.threshold in p
    assert found.expected_dice == pytest.approx(
        values.max(), rel=1e-12, abs=1e-300
    )  # below doubles lose digits
    assert values[k - 1] == pytest.approx(values.max(), rel=1e-12, abs=0.0)


probabilities = some.one_of(
    some.floats(0, 1), some.sampled_from([0.0, 1.0, 0.5, 0.25, 0.3]), some.floats(1e-12, 1e-3)
)


@settings(deadline=None, max_examples=40)
@given(arrays(np.float64, some.integers(1, 7), elements=probabilities))
def test_no_mask_at_all_is_better(p):
    found = best_threshold(p)
    if found is not None:
        assert found.expected_dice == pytest.approx(best_of_all_masks(p), rel=1e-12, abs=0.0)


def test_no_mask_of_ten_pixels_is_better():
    p = logit_normal(10, seed=3, mean=-1.0)
    assert best_threshold(p).expected_dice == pytest.approx(best_of_all_masks(p), rel=1e-12)


@settings(deadline=None, max_examples=100)
@given(arrays(np.float64, some.integers(1, 60), elements=probabilities))
def test_no_other_size_is_better(p):
    check_against_sizes(p)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mean", [-6.0, -2.0, 0.0])
def test_no_other_size_of_hundreds_of_pixels_is_better(seed, mean):
    check_against_sizes(logit_normal(250, seed=seed, mean=mean))


@pytest.mark.parametrize("value", [1e-300, 1e-9, 0.1, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("n", [1, 2, 300])
def test_equal_pixels_are_all_in_the_mask(value, n):
    check_against_sizes(np.full(n, value))
    assert best_threshold(np.full(n, value)).threshold == value


@settings(deadline=None, max_examples=60)
@given(
    arrays(np.float64, some.integers(0, 12), elements=some.floats(0, 1)),
    some.floats(1e-3, 1.0),
    some.integers(2, 25),
)
def test_a_part_of_equal_pixels_is_never_better_than_all_or_none(others, value, n):
    p = np.concatenate([others, np.full(n, value)])
    values = np.concatenate([[0.0], expected_by_size(p)])
    first = np.count_nonzero(p > value)
    block = values[first : first + np.count_nonzero(p == value) + 1]
    assert block.max() <= max(block[0], block[-1]) * (1 + 1e-13)


def test_the_value_can_fall_and_rise_again_with_the_size():
    """So a search that stops where larger masks get worse would miss the best."""
    p = np.concatenate([[1.0], np.linspace(0.30, 0.29, 8)])
    values = expected_by_size(p)
    assert values[1] < values[0] < values[-1]
    assert best_threshold(p).threshold == p[-1]


@settings(deadline=None, max_examples=100)
@given(arrays(np.float64, some.integers(1, 40), elements=probabilities))
def test_the_bounds_that_leave_sizes_out_hold(p):
    values = expected_by_size(p)
    k, s = np.arange(1, p.size + 1), np.cumsum(np.sort(p)[::-1])
    total = s[-1]
    if total > 0.0:
        assert np.all(values <= 2 * s / (k - 1 + total) * (1 + 1e-12))
        assert np.all(values >= 2 * s / (k + 1 + total - s / k) * (1 - 1e-12))


def test_of_equally_good_masks_the_smaller_is_taken():
    p = np.array([1.0, 0.5])
    assert expected_by_size(p)[0] == pytest.approx(expected_by_size(p)[1], rel=1e-14)
    assert best_threshold(p).threshold == 1.0


def test_a_map_of_zeros_has_no_cut():
    assert best_threshold(np.zeros((3, 4))) is None
    assert best_threshold(np.zeros((3, 4), np.uint8)) is None


@pytest.mark.parametrize("n", [3, 60, 3000, 200_000])
def test_growing_masks_are_worth_what_each_of_them_is(n):
    p = logit_normal(n, seed=n).round(3 if n > 1000 else 9)
    values, counts = np.unique(p, return_counts=True)
    values, counts = values[::-1], counts[::-1]
    grown = expected_dice_of_growing(
        open_map(p, threshold=values[0]).dice_statistics(), values[1:], counts[1:]
    )
    for at in np.unique(np.linspace(0, values.size - 1, 9).astype(int)):
        alone = expected_dice(open_map(p, threshold=values[at]).dice_statistics())
        assert grown[at] == pytest.approx(alone, rel=2e-13)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_types_are_cut_at_one_of_their_values(dtype):
    p = logit_normal((30, 40), seed=2)
    p = (p * np.iinfo(dtype).max).astype(dtype) if np.dtype(dtype).kind == "u" else p.astype(dtype)
    values = count_levels(p).values
    levels = np.unique(p.astype(np.float64))[::-1] if values is None else values
    found = best_threshold(p)
    exact = [expected_dice(open_map(p, threshold=each).dice_statistics()) for each in levels]
    assert found.threshold in levels
    assert found.expected_dice == pytest.approx(max(exact), rel=1e-12)


def test_few_of_many_masks_are_compared():
    p = logit_normal(1_000_000, seed=5)
    assert best_threshold(p).candidates < 5000


def test_ten_million_pixels():
    p = logit_normal(10_000_000, seed=6).astype(np.float32)
    found = best_threshold(p)
    near = np.unique(p[np.abs(p - found.threshold) < 2e-5])
    exact = [expected_dice(open_map(p, threshold=float(each)).dice_statistics()) for each in near[::10]]
    assert found.expected_dice >= max(exact) * (1 - 1e-13)


TYPES = (bool, np.uint8, np.uint16, np.float16, np.float32, np.float64, np.longdouble)


def all_levels(p):
    """All levels of a map, also of one that is counted in bins."""
    levels = count_levels(p)
    return levels if levels.values is not None else count_in_bins(p, levels.bins)


@pytest.mark.parametrize("dtype", TYPES)
def test_levels_are_the_values_and_their_numbers(dtype):
    drawn = np.random.default_rng(0).integers(0, 9, (40, 50))
    p = drawn.astype(dtype) if np.dtype(dtype).kind in "bu" else (drawn / 8).astype(dtype)
    scale = {"u": np.iinfo(dtype).max} if np.dtype(dtype).kind == "u" else {}
    values, counts = np.unique(p.astype(np.float64) / scale.get(p.dtype.kind, 1), return_counts=True)
    levels = all_levels(p)
    np.testing.assert_array_equal(levels.values, values[::-1])
    np.testing.assert_array_equal(levels.counts, counts[::-1])
    np.testing.assert_allclose(levels.sums, (values * counts)[::-1], rtol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_ordered_as_values_are(dtype):
    rng = np.random.default_rng(3)
    p = np.concatenate([rng.random(200_000), 10.0 ** -rng.uniform(0, 50, 99_990), np.arange(10) / 9])
    p = p.astype(dtype)
    levels = count_levels(p)
    order = np.sort(p)[::-1].astype(np.float64)
    ends = np.cumsum(levels.counts)
    assert ends[-1] == p.size
    np.testing.assert_allclose(np.cumsum(levels.sums), np.cumsum(order)[ends - 1], rtol=1e-12)
    np.testing.assert_array_equal(count_in_bins(p, levels.bins).values, np.unique(p + 0.0)[::-1])


def test_a_zero_with_a_sign_is_a_zero():
    for dtype in (np.float16, np.float32, np.float64):
        assert all_levels(np.array([-0.0, 0.0, 0.5], dtype)).counts.tolist() == [1, 2]


@pytest.mark.needs("zarr")
def test_maps_in_chunks_are_counted_like_those_in_memory():
    import zarr

    p = np.random.default_rng(1).random((600, 500), dtype=np.float32)
    for whole in (p, (p * 255).astype(np.uint8)):
        chunked = zarr.array(whole, chunks=(320, 330))
        in_chunks, at_once = count_levels(chunked), count_levels(whole)
        np.testing.assert_array_equal(in_chunks.counts, at_once.counts)
        np.testing.assert_allclose(in_chunks.sums, at_once.sums, rtol=1e-13)
