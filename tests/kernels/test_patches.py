"""The largest sum of entropies over a box, in each of the ways of finding it, against sums of all boxes."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.lib.stride_tricks import sliding_window_view

from segtrust._compile import use_threads
from segtrust.confidence import SIDES, patch_level_confidence, score
from segtrust.errors import ProbabilityRangeError
from segtrust.kernels import largest_box_sums, patches, view_map
from segtrust.kernels.patches import Layout, choose_layout, largest_box_by_slices, new_walk, window_sums
from segtrust.kernels.uncertainty import entropy_map
from tests.references import close, entropies, logit_normal, pla

# Maps that are split into tiles, a ring of slices that turns often, rows longer than a line buffer.
LARGE = {
    "many tiles of rows": ((1000, 1000), 10),
    "tiles of a volume": ((12, 60, 400), 10),
    "one row per tile": ((3, 30, 20_000), 13),
    "deep": ((800, 6, 6), 2),
    "long rows": ((5, 40_000), 10),
    "narrow rows": ((100_000, 1), 10),
    "a few columns": ((60_000, 3), 3),
    "a line of several segments": ((2_200_000,), 7),
    "a large box": ((150, 160), 100),
}


class TestEveryShape:
    @given(
        shape=st.lists(st.integers(1, 9), min_size=0, max_size=5).map(tuple),
        side=st.integers(1, 12),
        order=st.sampled_from("CF"),
    )
    def test_small(self, shape, side, order):
        p = np.asarray(logit_normal(shape, side, mean=0), order=order)
        assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-13)

    # Windows along x are made of fifths and a remainder, and fifths of 10 and more of fifths again.
    @pytest.mark.parametrize("side", [*range(1, 14), 50, 53, 57, 64])
    @pytest.mark.parametrize("shape", [(23, 31), (14, 15, 16), (70, 90)])
    def test_every_side(self, shape, side):
        p = logit_normal(shape, side, mean=-1)
        assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-13)

    @pytest.mark.parametrize("name", LARGE)
    def test_large_maps(self, name):
        shape, side = LARGE[name]
        p = logit_normal(shape, mean=-1).astype(np.float32)
        assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-12)

    @given(st.permutations(range(3)), st.sets(st.integers(0, 2)))
    def test_order_of_axes_and_flips_do_not_matter(self, axes, flips):
        p = logit_normal((9, 12, 14))
        turned = np.flip(p.transpose(axes), tuple(flips))
        assert close(patch_level_confidence(turned, size=4), patch_level_confidence(p, size=4), 1e-14)

    @pytest.mark.parametrize("shape", [(1, 30, 40), (30, 1, 40), (1, 1, 12, 30, 1)])
    def test_axes_of_length_one_make_no_difference(self, shape):
        p = logit_normal(shape, mean=-1)
        assert patch_level_confidence(p) == patch_level_confidence(p.squeeze())
        p[p == p.max()] = np.nan
        index = tuple(int(i) for i in np.argwhere(np.isnan(p))[0])
        with pytest.raises(ProbabilityRangeError, match=re.escape(f"at index {index}")):
            patch_level_confidence(p)


class TestBorders:
    @pytest.mark.parametrize("at", [(0, 0), (0, -1), (-1, 0), (-1, -1), (117, 60), (500, 1)])
    @pytest.mark.parametrize("shape", [(640, 700), (2, 640, 300)])
    def test_finds_the_only_uncertain_pixel(self, at, shape):
        p = np.zeros(shape)
        middle = (1,) if len(shape) == 3 else ()
        p[middle + at] = 0.5
        assert close(patch_level_confidence(p, size=10), -1, 1e-13)

    def test_boxes_do_not_run_over_the_end_of_a_row(self):
        p = np.zeros((4, 20))
        p[1, -2:] = p[2, :2] = 0.5
        assert close(patch_level_confidence(p, size=4), -2, 1e-13)

    def test_boxes_run_over_the_border_of_tiles(self):
        p = np.zeros((1000, 1000))
        for row in range(50, 950, 7):
            p[:] = 0
            p[row : row + 10, 500:510] = 0.5
            assert close(patch_level_confidence(p), -100, 1e-13)


def test_rounding_does_not_pile_up_along_a_deep_map():
    p = np.random.default_rng(0).random((300_000, 1, 1))
    assert close(patch_level_confidence(p, size=3), pla(p, 3), 3e-15)


def test_maps_with_an_equally_uncertain_pixel_are_tied_at_side_one():
    rng = np.random.default_rng(0)
    maps = [rng.integers(0, 256, (24, 30)).astype(np.uint8) for _ in range(50)]
    for p in maps:
        p[3, 4] = 127
    assert len({patch_level_confidence(p, size=1) for p in maps}) == 1


def force_layout(monkeypatch, *layouts):
    """Walk every map with this layout, or walk none."""
    monkeypatch.setattr(patches, "_candidates", lambda *_: [(layout, math.inf) for layout in layouts])
    monkeypatch.setattr(patches, "_WALK_BYTES", math.inf)
    monkeypatch.setattr(patches, "_MANY_SLICES", math.inf)


def layouts_of(shape, side):
    """All layouts of a map: as one slice or as many, with all slots or with one."""
    sides = tuple(min(side, length) for length in shape)
    volumes = [shape] if len(shape) == 3 else [(1, *shape), (shape[0], 1, shape[1])]
    boxes = [sides] if len(shape) == 3 else [(1, *sides), (sides[0], 1, sides[1])]
    both = zip(volumes, boxes, strict=True)
    return [Layout(volume, box, slots) for volume, box in both for slots in sorted({1, box[0]})]


LAYOUT_SHAPES = {
    "image": (40, 37),
    "tall": (300, 6),
    "wide": (6, 300),
    "volume": (19, 23, 21),
    "flat volume": (3, 40, 30),
    "deep volume": (120, 9, 8),
}


class TestLayouts:
    @pytest.mark.parametrize("ring_bytes", [1, 12_000, 1 << 20], ids=["one row", "small tiles", "one tile"])
    @pytest.mark.parametrize("side", [2, 7, 20, 58])
    @pytest.mark.parametrize("shape", LAYOUT_SHAPES)
    def test_every_layout_finds_the_box(self, shape, side, ring_bytes, monkeypatch):
        monkeypatch.setattr(patches, "_RING_BYTES", ring_bytes)
        p = logit_normal(LAYOUT_SHAPES[shape], side, mean=-1)
        expected = pla(p, side)
        for layout in layouts_of(p.shape, side):
            force_layout(monkeypatch, layout)
            assert close(patch_level_confidence(p, size=side), expected, 1e-13), layout

    @pytest.mark.parametrize("shape", LAYOUT_SHAPES)
    def test_every_layout_finds_the_last_corner_and_ties(self, shape, monkeypatch):
        monkeypatch.setattr(patches, "_RING_BYTES", 12_000)
        corner, equal = np.zeros(LAYOUT_SHAPES[shape]), np.full(LAYOUT_SHAPES[shape], 0.5)
        corner[(-1,) * corner.ndim] = 0.5
        for layout in layouts_of(corner.shape, 4):
            force_layout(monkeypatch, layout)
            assert close(patch_level_confidence(corner, size=4), -1, 1e-13), layout
            expected = -np.prod([min(4, length) for length in equal.shape])
            assert close(patch_level_confidence(equal, size=4), expected, 1e-13), layout

    def test_every_layout_measures_every_pixel_once(self, monkeypatch):
        p = logit_normal((19, 23, 21), mean=-1)
        monkeypatch.setattr(patches, "_RING_BYTES", 12_000)
        expected = score(p, estimators=["amsp", "ane", "mmmc"])
        for layout in layouts_of(p.shape, 7):
            force_layout(monkeypatch, layout)
            scores = score(p, estimators=["amsp", "ane", "mmmc", "pla"])
            assert all(close(scores[name], expected[name], 1e-14) for name in expected)

    @pytest.mark.parametrize("side", [4, 16])
    def test_rounding_does_not_pile_up_if_entropies_are_not_held(self, side, monkeypatch):
        p = np.random.default_rng(0).random((40_000, 2, 2))
        force_layout(monkeypatch, Layout(p.shape, (side, 2, 2), 1))
        assert close(patch_level_confidence(p, size=side), pla(p, side), 3e-15)

    @pytest.mark.parametrize(
        ("shape", "side"), [((30, 512, 512), 16), ((700, 800), 20), ((155, 240, 24), 30)]
    )
    def test_threads_do_not_change_a_bit(self, shape, side):
        p = logit_normal(shape).astype(np.float32)
        alone = patch_level_confidence(p, size=side)
        for threads in (2, 3):
            with use_threads(threads):
                assert patch_level_confidence(p, size=side) == alone

    @given(st.tuples(*[st.integers(1, 3000)] * 3), st.integers(1, 4000), st.booleans())
    def test_tiles_cover_all_rows_once(self, shape, side, hold):
        sides = tuple(min(side, length) for length in shape)
        layout = Layout(shape, sides, sides[0] if hold else 1)
        tiles = layout.row_ranges
        assert [tile.fresh for tile in tiles] == [0, *(tile.last for tile in tiles[:-1])]
        assert tiles[-1].last == shape[1]
        assert all(tile.last - tile.first >= sides[1] for tile in tiles)
        assert {tile.last - tile.first for tile in tiles[:-1]} <= {layout.rows + layout.shared}
        assert layout.visits == len(tiles) * (layout.rows + layout.shared) / shape[1]

    @pytest.mark.parametrize("layout", [*layouts_of((60, 70, 80), 9), *layouts_of((300, 400), 30)])
    def test_memory_of_the_buffers(self, layout):
        walk = new_walk(layout)
        large = (walk.ring, walk.entropy, walk.column, walk.lines, walk.handed)
        assert sum(buffer.nbytes for buffer in large) == layout.nbytes


def layout_for(shape, side):
    return choose_layout(shape, tuple(min(side, length) for length in shape), 4 * math.prod(shape))


CHOICES = {
    "usual": ((155, 240, 240), 10, (155, 240, 240), 10),
    "handing over would take much memory": ((155, 240, 240), 20, (155, 240, 240), 1),
    "tiles would share nearly all rows": ((1024, 1024), 128, (1024, 1, 1024), 128),
    "image in tiles": ((1024, 1024), 10, (1, 1024, 1024), 1),
    "ring larger than the map": ((1024, 1024), 900, (1024, 1, 1024), 1),
    "axes of length 1": ((1, 155, 1, 240, 240), 10, (155, 240, 240), 10),
}


NOT_WALKED = {
    "a line": ((10**6,), 10),
    "four axes": ((20, 30, 40, 50), 10),
    "many tiny slices": ((10**5, 3, 3), 10),
    "rows longer than memory allows": ((3, 10**7), 10),
}


class TestChoiceOfLayout:
    @pytest.mark.parametrize("name", CHOICES)
    def test_walked(self, name):
        shape, side, seen_as, slots = CHOICES[name]
        layout = layout_for(shape, side)
        assert (layout.shape, layout.slots) == (seen_as, slots)

    @pytest.mark.parametrize("name", NOT_WALKED)
    def test_not_walked(self, name):
        assert layout_for(*NOT_WALKED[name]) is None

    @given(st.lists(st.integers(1, 3000), min_size=2, max_size=3).map(tuple), st.integers(1, 4000))
    def test_walks_take_little_memory_and_visit_rows_a_few_times(self, shape, side):
        layout = layout_for(shape, side)
        assert layout is None or layout.nbytes <= max(5 << 20, 0.14 * 4 * math.prod(shape))
        assert layout is None or layout.visits <= 12


def largest_by_slices(p, side):
    return largest_box_by_slices(view_map(p), tuple(min(side, length) for length in p.shape))


SLICE_SHAPES = {
    "line": (500,),
    "image": (40, 37),
    "thin": (3, 200),
    "thin volume": (2, 90, 3),
    "film": (6, 5, 17, 7),
    "five axes": (3, 2, 8, 2, 3),
}


# Tiny slices, axes that make no difference, and boxes of more slices than are held at once: no map may
# take one step per slice.
LONG = [
    *(((2, 30_000), side) for side in (1, 10)),
    ((1, 1, 1, 20_000), 2),
    ((20_000, 5, 1, 1), 10),
    ((16, 16, 3000), 10),
    ((2, 2, 40_000), 2),
    ((10**6,), 10**5),
    ((10**6,), 900_000),
    ((300_000, 2), 200_000),
    ((5, 100_000), 30_000),
]


class TestBySlices:
    @pytest.mark.parametrize("slab", [1, 60, 1 << 15])
    @pytest.mark.parametrize("side", [1, 2, 10, 60, 199, 500])
    @pytest.mark.parametrize("shape", SLICE_SHAPES)
    def test_every_side_and_slab(self, shape, side, slab, monkeypatch):
        monkeypatch.setattr(patches, "_SLAB", slab)
        p = logit_normal(SLICE_SHAPES[shape], side, mean=-1)
        assert close(largest_by_slices(p, side), -pla(p, side), 1e-13)

    @given(
        shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
        side=st.integers(1, 12),
        slab=st.integers(1, 99),
    )
    def test_any_shape(self, shape, side, slab):
        p = logit_normal(shape, side, mean=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(patches, "_SLAB", slab)
            assert close(largest_by_slices(p, side), -pla(p, side), 1e-13)

    @pytest.mark.parametrize("side", [2, 7, 150])
    def test_ties(self, side, monkeypatch):
        monkeypatch.setattr(patches, "_SLAB", 60)
        for shape in SLICE_SHAPES.values():
            p = np.full(shape, 0.5)
            assert close(largest_by_slices(p, side), np.prod([min(side, length) for length in shape]), 1e-13)

    @pytest.mark.parametrize("at", [0, 59, 60, 61, 439, -1])
    @pytest.mark.parametrize("side", [1, 40, 61, 400])
    def test_one_uncertain_pixel_at_the_border_of_a_slab(self, at, side, monkeypatch):
        monkeypatch.setattr(patches, "_SLAB", 60)
        p = np.zeros(500)
        p[at] = 0.5
        assert close(largest_by_slices(p, side), 1, 1e-13)

    @pytest.mark.parametrize("dtype", ["float16", "uint8"])
    @pytest.mark.parametrize("side", [3, 90])
    def test_types(self, dtype, side, monkeypatch):
        monkeypatch.setattr(patches, "_SLAB", 60)
        p = logit_normal((4, 100), mean=0)
        p = (p * 255 if dtype == "uint8" else p).astype(dtype)
        assert close(largest_by_slices(p, side), -pla(p, side), 1e-13)

    @pytest.mark.parametrize(("shape", "side"), LONG)
    def test_long_thin_maps_take_few_steps(self, shape, side, monkeypatch):
        calls = []
        monkeypatch.setattr(patches, "entropy_map", lambda *args: calls.append(1) or entropy_map(*args))
        p = logit_normal(shape, mean=-1).astype(np.float32)
        assert close(largest_by_slices(p, side), largest_by_running_sums(p, side), 1e-12)
        assert len(calls) < 100

    @pytest.mark.parametrize(("shape", "side"), [((200, 90, 80), 70), ((6, 50, 7, 40), 30)])
    def test_boxes_too_large_to_walk_with(self, shape, side, monkeypatch):
        force_layout(monkeypatch)
        p = logit_normal(shape, mean=-1).astype(np.float32)
        assert close(patch_level_confidence(p, size=side), pla(p, side), 1e-12)


def largest_by_running_sums(p, side):
    """The largest sum in long doubles, for boxes too large to be summed one by one."""
    sums = entropies(p)
    for axis, length in enumerate(p.shape):
        sums = np.moveaxis(sums, axis, 0)
        ends = np.concatenate([np.zeros_like(sums[:1]), np.cumsum(sums, axis=0)])
        box = min(side, length)
        sums = np.moveaxis(ends[box:] - ends[:-box], 0, axis)
    return sums.max()


def test_window_sums():
    values = np.arange(24.0).reshape(2, 3, 4)
    assert window_sums(values, (2, 1, 3)).shape == (1, 3, 2)
    assert window_sums(values, (2, 3, 4)).tolist() == [[[values.sum()]]]
    assert window_sums(values, (1, 1, 1)).tolist() == values.tolist()


def largest_of_all_boxes(values, side):
    """Sum every box that fits, in long doubles, and return the largest."""
    box = tuple(min(side, length) for length in values.shape)
    windows = sliding_window_view(values.astype(np.longdouble), box)
    return windows.sum(tuple(range(values.ndim, 2 * values.ndim))).max()


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


shapes = st.integers(1, 4).flatmap(
    lambda ndim: st.tuples(*[st.integers(1, {1: 90, 2: 25, 3: 9, 4: 5}[ndim])] * ndim)
)
values = st.floats(0, 1) | st.sampled_from([0.0, 0.0, 0.25, 1.0])
maps = shapes.flatmap(lambda shape: arrays.arrays(float, shape, elements=values))


class TestManySides:
    @given(maps, st.lists(st.integers(1, 30), min_size=1, max_size=5))  # in any order, and repeated
    def test_equals_summing_every_box(self, u, sides):
        for side, value in zip(sides, largest_box_sums(u, sides), strict=True):
            assert np.abs(value - largest_of_all_boxes(u, side)) <= 1e-12

    @pytest.mark.parametrize("name", MAPS)
    def test_equals_summing_every_box_on_maps_of_many_tiles(self, name):
        u = MAPS[name]
        sides = [1, 2, 3, 7, 12, 25, 40, 64, 200]
        for side, value in zip(sides, largest_box_sums(u, sides), strict=True):
            assert close(value, largest_of_all_boxes(u, side), 1e-13), side

    def test_equals_the_estimator_of_one_side(self):
        p = logit_normal((150, 160), mean=-1)
        sums = largest_box_sums(np.float64(entropies(p)), SIDES)
        for side, value in list(zip(SIDES, sums, strict=True))[::4]:
            assert close(-patch_level_confidence(p, size=side), value)

    def test_equal_pixels_give_equal_sums_wherever_they_lie(self):
        """Ties between maps must stay ties: differences of large entries of the table would break them."""
        background = 0.05 * np.random.default_rng(0).random((200, 200))
        sums = set()
        for corner in ((0, 0), (37, 150), (196, 3), (197, 197)):
            u = background.copy()
            u[corner[0] : corner[0] + 3, corner[1] : corner[1] + 3] = 0.9
            sums.add(tuple(largest_box_sums(u, [1, 2, 3])))
        assert len(sums) == 1

    def test_axes_in_any_order_and_with_gaps(self):
        u = np.random.default_rng(0).random((31, 40))
        expected = largest_box_sums(u, [1, 5, 50])
        for same in (u.T, u[::-1], np.repeat(u, 2, axis=1)[:, ::2]):
            np.testing.assert_allclose(largest_box_sums(same, [1, 5, 50]), expected, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 0.3])
@pytest.mark.parametrize("order", ["small first", "large first"])
def test_boxes_that_are_left_out_are_smaller(order, scale):
    p = scale * np.random.default_rng(0).random((70, 60, 40)) ** 4
    first, second = (0.3, 0.4) if order == "small first" else (0.4, 0.3)
    p[5:20, 3:20, 5:30], p[50:58, 40:60, 5:30] = first, second
    assert close(patch_level_confidence(p, size=10), pla(p, 10), 1e-13)
