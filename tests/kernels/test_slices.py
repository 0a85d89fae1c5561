"""Largest box of maps that are not walked, against sums of all boxes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.confidence import patch_level_confidence
from segtrust.kernels import slices, sweep
from segtrust.kernels.slices import largest_by_slices
from segtrust.kernels.uncertainty import entropy_map
from segtrust.kernels.view import view_map
from tests.references import close, entropies, logit_normal, pla

SHAPES = {
    "line": (500,),
    "image": (40, 37),
    "thin": (3, 200),
    "tall": (200, 2),
    "volume": (19, 23, 21),
    "thin volume": (2, 90, 3),
    "film": (6, 5, 17, 7),
    "five axes": (3, 2, 8, 2, 3),
}
SIDES = [1, 2, 3, 10, 16, 60, 199, 200, 499, 500, 900]


def largest(p, side):
    return largest_by_slices(view_map(p), tuple(min(side, length) for length in p.shape))


@pytest.mark.parametrize("stretch", [1, 60, 700, 1 << 15])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_side_and_stretch(shape, side, stretch, monkeypatch):
    monkeypatch.setattr(slices, "_STRETCH", stretch)
    p = logit_normal(SHAPES[shape], side, mean=-1)
    assert close(largest(p, side), -pla(p, side), 1e-13)


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    side=st.integers(1, 12),
    stretch=st.integers(1, 99),
)
def test_any_shape(shape, side, stretch):
    p = logit_normal(shape, side, mean=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_STRETCH", stretch)
        assert close(largest(p, side), -pla(p, side), 1e-13)


@pytest.mark.parametrize("side", [2, 7, 150])
@pytest.mark.parametrize("shape", SHAPES)
def test_ties(shape, side, monkeypatch):
    monkeypatch.setattr(slices, "_STRETCH", 60)
    p = np.full(SHAPES[shape], 0.5)
    assert close(largest(p, side), np.prod([min(side, length) for length in p.shape]), 1e-13)


@pytest.mark.parametrize("at", [0, 59, 60, 61, 439, -1])
@pytest.mark.parametrize("side", [1, 40, 61, 400])
def test_one_bright_pixel_at_the_border_of_a_stretch(at, side, monkeypatch):
    monkeypatch.setattr(slices, "_STRETCH", 60)
    p = np.zeros(500)
    p[at] = 0.5
    assert close(largest(p, side), 1, 1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "uint16", "bool"])
@pytest.mark.parametrize("side", [3, 90])
def test_types(dtype, side, monkeypatch):
    monkeypatch.setattr(slices, "_STRETCH", 60)
    p = logit_normal((4, 100), mean=0)
    p = (p * np.iinfo(dtype).max if dtype.startswith("uint") else p).astype(dtype)
    assert close(largest(p, side), -pla(p, side), 1e-13) or (pla(p, side) == largest(p, side) == 0)


# Boxes of more slices than are held at once: none may take a step a slice.
LONG = [((10**6,), 10**5), ((10**6,), 900_000), ((300_000, 2), 200_000), ((5, 100_000), 30_000)]


@pytest.mark.parametrize(("shape", "side"), LONG)
def test_long_thin_maps_with_huge_boxes(shape, side, monkeypatch):
    calls = []
    monkeypatch.setattr(slices, "entropy_map", lambda *args: calls.append(1) or entropy_map(*args))
    monkeypatch.setattr(sweep, "layout_of", lambda *_: None)
    p = logit_normal(shape, mean=-1).astype(np.float32)
    assert close(patch_level_confidence(p, size=side), by_running_sums(p, side), 1e-13)
    assert len(calls) < 100


def by_running_sums(p, side):
    """PLA in long doubles, for boxes too large to add up one by one."""
    sums = entropies(p)
    for axis, length in enumerate(p.shape):
        sums = np.moveaxis(sums, axis, 0)
        ends = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        box = min(side, length)
        sums = np.moveaxis(ends[box:] - ends[:-box], 0, axis)
    return -sums.max()
