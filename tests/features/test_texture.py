"""Counts against loops over pixels, and the texture features against their definitions."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.features.region import crop_region
from segtrust.features.texture import (
    count_dependences,
    count_runs,
    directions,
    share_a_line,
    steps_in,
    texture_features,
    zone_sizes,
)
from tests.features import references
from tests.features.references import brute_dependences, brute_runs, brute_share, brute_zones
from tests.masks import masks

NAMED = [
    pytest.param(mask, id=f"{ndim}-D {name}")
    for ndim in (2, 3)
    for name, mask in masks(ndim).items()
    if mask.any()
]
some_masks = arrays(bool, array_shapes(min_dims=2, max_dims=3, max_side=5), elements=st.booleans())


@pytest.mark.parametrize("mask", NAMED)
def test_features_are_as_defined(mask):
    features = texture_features(crop_region(np.zeros(mask.shape), mask.astype(np.uint8)))
    definitions = {
        "glcm": references.co_occurrence(mask),
        "glrlm": references.run_features(mask),
        "glszm": references.zone_features(mask),
        "gldm": references.dependence_features(mask),
    }
    for group, expected in definitions.items():
        assert features[group].keys() <= expected.keys()
        values = {name: features[group].get(name, 0.0) for name in expected}
        assert values == pytest.approx(expected, rel=1e-12, abs=1e-12)


def as_counter(counts):
    return Counter({size: int(count) for size, count in enumerate(counts) if count})


@given(some_masks)
def test_counts_of_any_mask(mask):
    padded = np.pad(mask.astype(np.uint8), 1)
    flat, pixels, steps = padded.ravel(), np.flatnonzero(padded), steps_in(padded.shape)
    runs = count_runs(flat, pixels, steps, max(mask.shape))
    for counts, direction in zip(runs, directions(mask.ndim), strict=True):
        assert as_counter(counts) == brute_runs(mask, direction)
    assert as_counter(count_dependences(flat, pixels, steps)) == brute_dependences(mask)
    assert sorted(zone_sizes(flat, pixels, steps).tolist()) == brute_zones(mask)


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
