"""Largest sum of entropies over a box, against sums of all boxes."""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.confidence import patch_level_confidence
from segtrust.errors import ProbabilityRangeError
from segtrust.kernels import slices, sweep
from segtrust.kernels.patches import window_sums
from segtrust.kernels.uncertainty import entropy_map
from tests.references import close, logit_normal, pla

SHAPES = {
    "no axis": (),
    "line": (50,),
    "image": (23, 31),
    "smaller than the box": (5, 7),
    "thin": (3, 40),
    "tall": (40, 2),
    "volume": (14, 15, 16),
    "thin volume": (2, 30, 5),
    "film": (4, 5, 6, 7),
    "five axes": (3, 2, 3, 2, 3),
}


@pytest.mark.parametrize("side", range(1, 14))
@pytest.mark.parametrize("shape", SHAPES)
def test_every_side(shape, side):
    p = logit_normal(SHAPES[shape], side, mean=-1)
    assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-13)


# Maps that are cut into tiles of rows, a ring of slices that turns often, rows longer than a line buffer.
LARGE = {
    "many tiles of rows": ((1000, 1000), 10),
    "tiles of a volume": ((12, 60, 400), 10),
    "one row a tile": ((3, 30, 20_000), 13),
    "deep": ((800, 6, 6), 2),
    "long rows": ((5, 40_000), 10),
    "narrow rows": ((100_000, 1), 10),
    "a few columns": ((60_000, 3), 3),
    "a line of several segments": ((2_200_000,), 7),
    "a large box": ((150, 160), 100),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_maps(name):
    shape, side = LARGE[name]
    p = logit_normal(shape, mean=-1).astype(np.float32)
    assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-12)


@pytest.mark.parametrize("at", [(0, 0), (0, -1), (-1, 0), (-1, -1), (117, 60), (500, 1)])
@pytest.mark.parametrize("shape", [(640, 700), (2, 640, 300)])
def test_finds_the_one_bright_corner(at, shape):
    p = np.zeros(shape)
    middle = (1,) if len(shape) == 3 else ()
    p[middle + at] = 0.5
    assert close(patch_level_confidence(p, size=10), -1, 1e-13)


def test_boxes_do_not_run_over_the_end_of_a_row():
    p = np.zeros((4, 20))
    p[1, -2:] = p[2, :2] = 0.5
    assert close(patch_level_confidence(p, size=4), -2, 1e-13)


def test_boxes_run_over_the_border_of_tiles():
    p = np.zeros((1000, 1000))
    for row in range(50, 950, 7):
        p[:] = 0
        p[row : row + 10, 500:510] = 0.5
        assert close(patch_level_confidence(p), -100, 1e-13)


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    side=st.integers(1, 12),
    order=st.sampled_from("CF"),
)
def test_any_shape(shape, side, order):
    p = np.asarray(logit_normal(shape, side, mean=0), order=order)
    assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-13)


@given(st.permutations(range(3)), st.sets(st.integers(0, 2)))
def test_does_not_depend_on_the_order_of_axes_nor_on_flips(axes, flips):
    p = logit_normal((9, 12, 14))
    turned = np.flip(p.transpose(axes), tuple(flips))
    assert close(patch_level_confidence(turned, size=4), patch_level_confidence(p, size=4), 1e-14)


def test_rounding_does_not_pile_up_along_a_deep_map():
    p = np.random.default_rng(0).random((300_000, 1, 1))
    assert close(patch_level_confidence(p, size=3), pla(p, 3), 3e-15)


LARGE_BOXES = [((60, 61, 62), 45), ((200, 90, 80), 70), ((6, 50, 7, 40), 30), ((3000, 400), 390)]


@pytest.mark.parametrize(("shape", "side"), LARGE_BOXES)
def test_boxes_too_large_to_walk_with(shape, side, monkeypatch):
    monkeypatch.setattr(sweep, "layout_of", lambda *_: None)
    p = logit_normal(shape, mean=-1).astype(np.float32)
    assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-12)


def test_window_sums():
    values = np.arange(24.0).reshape(2, 3, 4)
    assert window_sums(values, (2, 1, 3)).shape == (1, 3, 2)
    assert window_sums(values, (2, 3, 4)).tolist() == [[[values.sum()]]]
    assert window_sums(values, (1, 1, 1)).tolist() == values.tolist()


# Shapes whose slices are tiny, and axes that make no difference: none may take a step a slice.
THIN = [(2, 30_000), (1, 50_000), (1, 1, 1, 20_000), (20_000, 5, 1, 1), (16, 16, 3000), (2, 2, 40_000)]


@pytest.mark.parametrize("side", [1, 2, 10])
@pytest.mark.parametrize("shape", THIN)
def test_long_thin_maps(shape, side, monkeypatch):
    calls = []
    monkeypatch.setattr(slices, "entropy_map", lambda *args: calls.append(1) or entropy_map(*args))
    monkeypatch.setattr(sweep, "layout_of", lambda *_: None)
    p = logit_normal(shape, mean=-1).astype(np.float32)
    assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-12)
    assert len(calls) < 100


@pytest.mark.parametrize("shape", [(1, 30, 40), (30, 1, 40), (1, 1, 12, 30, 1)])
def test_axes_of_length_one_make_no_difference(shape):
    p = logit_normal(shape, mean=-1)
    assert patch_level_confidence(p) == patch_level_confidence(p.squeeze())
    p[p == p.max()] = np.nan
    index = tuple(int(i) for i in np.argwhere(np.isnan(p))[0])
    with pytest.raises(ProbabilityRangeError, match=re.escape(f"at index {index}")):
        patch_level_confidence(p)


def test_maps_with_an_equally_unsure_pixel_are_tied_at_side_one():
    rng = np.random.default_rng(0)
    maps = [rng.integers(0, 256, (24, 30)).astype(np.uint8) for _ in range(50)]
    for p in maps:
        p[3, 4] = 127
    assert len({patch_level_confidence(p, size=1) for p in maps}) == 1
