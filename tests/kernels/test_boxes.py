"""The largest sum over a box of each side, from one table and by adding up every box."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib.stride_tricks import sliding_window_view

from segtrust.confidence import PatchLevel
from segtrust.confidence.tuned_patch_level import SIDES
from segtrust.kernels.boxes import largest_box_sums
from segtrust.maps import Prediction
from tests.references import close, entropies, logit_normal


def by_adding_up(values, side):
    """Sum every box that fits in long doubles, and take the largest."""
    box = tuple(min(side, length) for length in values.shape)
    windows = sliding_window_view(values.astype(np.longdouble), box)
    return windows.sum(tuple(range(values.ndim, 2 * values.ndim))).max()


shapes = st.integers(1, 4).flatmap(
    lambda ndim: st.tuples(*[st.integers(1, {1: 90, 2: 25, 3: 9, 4: 5}[ndim])] * ndim)
)
values = st.floats(0, 1) | st.sampled_from([0.0, 0.0, 0.25, 1.0])


@given(shapes.flatmap(lambda shape: arrays.arrays(float, shape, elements=values)), st.data())
def test_equals_adding_up_every_box(u, data):
    sides = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=5))  # in any order, and again
    for side, found in zip(sides, largest_box_sums(u, sides), strict=True):
        assert np.abs(found - by_adding_up(u, side)) <= 1e-12


MAPS = {
    "noise": np.random.default_rng(0).random((90, 101)),
    "few pixels": np.where(np.random.default_rng(1).random((80, 70)) > 0.99, 0.7, 0.0),
    "one pixel at the end": np.pad([[0.3]], ((69, 0), (80, 0))),
    "two patches": np.pad(np.full((3, 3), 0.9), ((5, 60), (50, 4)))
    + np.pad(np.full((9, 9), 0.2), ((50, 9), (3, 45))),
    "gradient": np.linspace(0, 1, 60 * 66).reshape(60, 66),
    "constant": np.full((50, 61), 0.5),
    "nothing": np.zeros((40, 41)),
    "line": np.random.default_rng(2).random(700),
    "column": np.random.default_rng(3).random((300, 1)),
    "volume": np.random.default_rng(4).random((12, 40, 33)),
    "volume, few": np.random.default_rng(5).random((22, 30, 33)) ** 30,
}


@pytest.mark.parametrize("name", MAPS)
def test_equals_adding_up_on_maps_of_many_cells(name):
    u = MAPS[name]
    sides = [1, 2, 3, 7, 12, 25, 40, 64, 200]
    for side, found in zip(sides, largest_box_sums(u, sides), strict=True):
        assert close(found, by_adding_up(u, side), 1e-13), side


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_equals_the_estimator_of_one_side(kind):
    p = logit_normal((150, 160), mean=-1)
    p = (255 * p).astype(np.uint8) if kind is np.uint8 else p.astype(kind)
    found = largest_box_sums(np.float64(entropies(p)), SIDES)
    for side, value in zip(SIDES, found, strict=True):
        assert close(-PatchLevel(side).score(Prediction(p)), value)


def test_equal_pixels_give_equal_sums_wherever_they_lie():
    """Ties between maps must stay ties: differences of large entries of the table would break them."""
    background = 0.05 * np.random.default_rng(0).random((200, 200))
    found = set()
    for corner in ((0, 0), (37, 150), (196, 3), (197, 197)):
        u = background.copy()
        u[corner[0] : corner[0] + 3, corner[1] : corner[1] + 3] = 0.9
        found.add(tuple(largest_box_sums(u, [1, 2, 3])))
    assert len(found) == 1


def test_axes_in_any_order_and_with_gaps():
    u = np.random.default_rng(0).random((31, 40))
    expected = largest_box_sums(u, [1, 5, 50])
    np.testing.assert_allclose(largest_box_sums(u.T, [1, 5, 50]), expected, rtol=1e-14)
    np.testing.assert_allclose(largest_box_sums(u[::-1], [1, 5, 50]), expected, rtol=1e-14)
    wide = np.repeat(u, 2, axis=1)
    np.testing.assert_allclose(largest_box_sums(wide[:, ::2], [1, 5, 50]), expected, rtol=1e-14)
