"""Runs, zones and dependences against loops over pixels as the definitions read."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.kernels.texture import (
    count_dependences,
    count_runs,
    directions,
    share_a_line,
    steps_in,
    zone_sizes,
)
from tests.masks import masks

NAMED = [pytest.param(mask, id=f"{ndim}-D {name}") for ndim in (2, 3) for name, mask in masks(ndim).items()]
some_masks = arrays(bool, array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.booleans())


def flat(mask):
    cells = np.pad(mask.astype(np.uint8), 1)
    return cells.ravel(), np.flatnonzero(cells), steps_in(cells.shape)


def inside(mask, place):
    return all(0 <= i < n for i, n in zip(place, mask.shape, strict=True)) and bool(mask[place])


def moved(place, offset, times=1):
    return tuple(i + times * d for i, d in zip(place, offset, strict=True))


def brute_runs(mask, direction):
    """Lengths of the maximal runs, each found from its beginning."""
    lengths = Counter()
    for place in zip(*np.nonzero(mask), strict=True):
        if not inside(mask, moved(place, direction, -1)):
            length = 1
            while inside(mask, moved(place, direction, length)):
                length += 1
            lengths[length] += 1
    return lengths


def brute_dependences(mask):
    around = list(product((-1, 0, 1), repeat=mask.ndim))
    places = zip(*np.nonzero(mask), strict=True)
    return Counter(sum(inside(mask, moved(place, offset)) for offset in around) for place in places)


def brute_zones(mask):
    from scipy.ndimage import label

    labels, _ = label(mask, np.ones((3,) * mask.ndim))
    return sorted(np.bincount(labels.ravel())[1:].tolist())


def brute_share(mask, direction):
    """Whether any pixel meets another when it walks to the end of the box."""
    places = zip(*np.nonzero(mask), strict=True)
    return any(
        inside(mask, moved(place, direction, t)) for place in places for t in range(1, max(mask.shape))
    )


def as_counter(counts):
    return Counter({size: int(count) for size, count in enumerate(counts) if count})


def check(mask):
    cells, pixels, steps = flat(mask)
    runs = count_runs(cells, pixels, steps, max(mask.shape))
    for counts, direction in zip(runs, directions(mask.ndim), strict=True):
        assert as_counter(counts) == brute_runs(mask, direction)
    assert as_counter(count_dependences(cells, pixels, steps)) == brute_dependences(mask)
    assert sorted(zone_sizes(cells, pixels, steps).tolist()) == brute_zones(mask)


@pytest.mark.parametrize("mask", NAMED)
def test_counts(mask):
    check(mask)


@given(some_masks)
def test_counts_of_any_mask(mask):
    check(mask)


@given(some_masks.filter(np.any))
def test_shared_lines(mask):
    pixels = np.flatnonzero(mask)
    for direction in directions(mask.ndim):
        assert share_a_line(pixels, mask.shape, direction) == brute_share(mask, direction)


@pytest.mark.parametrize(("ndim", "count"), [(2, 4), (3, 13)])
def test_directions_are_half_of_the_neighbours(ndim, count):
    half = {tuple(each) for each in directions(ndim).tolist()}
    other = {tuple(-i for i in each) for each in half}
    assert len(half) == count
    assert half | other | {(0,) * ndim} == set(product((-1, 0, 1), repeat=ndim))
    assert not half & other
