"""How maps are walked: every row is visited, memory stays bounded, and every way gives the same patch."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from segtrust.confidence import patch_level_confidence, score
from segtrust.kernels import layouts, sweep
from segtrust.kernels.layouts import Layout, layout_of
from segtrust.kernels.patches import new_walk
from segtrust.settings import use_threads
from tests.references import close, logit_normal, pla

SHAPES = {
    "image": (40, 37),
    "tall": (300, 6),
    "wide": (6, 300),
    "volume": (19, 23, 21),
    "flat volume": (3, 40, 30),
    "deep volume": (120, 9, 8),
}
SIDES = [1, 2, 5, 7, 11, 20, 58, 60, 300]


def ways_of(shape, side):
    """All layouts of a map: lying or standing, with all slots or with one."""
    sides = tuple(min(side, length) for length in shape)
    volumes = [shape] if len(shape) == 3 else [(1, *shape), (shape[0], 1, shape[1])]
    boxes = [sides] if len(shape) == 3 else [(1, *sides), (sides[0], 1, sides[1])]
    both = zip(volumes, boxes, strict=True)
    return [Layout(volume, box, slots) for volume, box in both for slots in {1, box[0]}]


def test_there_are_ways_to_choose_from():
    assert len(ways_of((9, 9), 3)) == 3
    assert len(ways_of((9, 9, 9), 3)) == 2


@pytest.mark.parametrize(
    "ring_bytes", [1, 12_000, 1 << 20], ids=["one row a tile", "small tiles", "one tile"]
)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_finds_the_patch(shape, side, ring_bytes, monkeypatch):
    monkeypatch.setattr(layouts, "_RING_BYTES", ring_bytes)
    p = logit_normal(SHAPES[shape], side, mean=-1)
    expected = pla(p, side)
    for way in ways_of(SHAPES[shape], side):
        monkeypatch.setattr(sweep, "layout_of", lambda *_, way=way: way)
        assert close(patch_level_confidence(p, size=side), expected, 1e-13), way


@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_finds_the_last_corner(shape, monkeypatch):
    p = np.zeros(SHAPES[shape])
    p[(-1,) * p.ndim] = 0.5
    monkeypatch.setattr(layouts, "_RING_BYTES", 12_000)
    for way in ways_of(p.shape, 4):
        monkeypatch.setattr(sweep, "layout_of", lambda *_, way=way: way)
        assert close(patch_level_confidence(p, size=4), -1, 1e-13), way


@pytest.mark.parametrize("side", [3, 19])
@pytest.mark.parametrize("shape", SHAPES)
def test_ties(shape, side, monkeypatch):
    p = np.full(SHAPES[shape], 0.5, np.float32)
    expected = -np.prod([min(side, length) for length in p.shape])
    for way in ways_of(p.shape, side):
        monkeypatch.setattr(sweep, "layout_of", lambda *_, way=way: way)
        assert close(patch_level_confidence(p, size=side), expected, 1e-13)


def test_every_way_measures_every_pixel_once(monkeypatch):
    p = logit_normal((19, 23, 21), mean=-1)
    monkeypatch.setattr(layouts, "_RING_BYTES", 12_000)
    expected = score(p, estimators=["amsp", "ane", "mmmc"])
    for way in ways_of(p.shape, 7):
        monkeypatch.setattr(sweep, "layout_of", lambda *_, way=way: way)
        found = score(p, estimators=["amsp", "ane", "mmmc", "pla"])
        assert all(close(found[name], expected[name], 1e-14) for name in expected)


@pytest.mark.parametrize("side", [4, 16])
def test_rounding_does_not_pile_up_where_entropies_are_not_held(side, monkeypatch):
    p = np.random.default_rng(0).random((40_000, 2, 2))
    monkeypatch.setattr(sweep, "layout_of", lambda *_: Layout(p.shape, (side, 2, 2), 1))
    assert close(patch_level_confidence(p, size=side), pla(p, side), 3e-15)


@pytest.mark.parametrize(("shape", "side"), [((30, 512, 512), 16), ((700, 800), 20), ((155, 240, 24), 30)])
def test_threads_do_not_change_a_bit(shape, side):
    p = logit_normal(shape).astype(np.float32)
    one = patch_level_confidence(p, size=side)
    for threads in (2, 3):
        with use_threads(threads):
            assert patch_level_confidence(p, size=side) == one


lengths = st.integers(1, 3000)


@given(st.tuples(lengths, lengths, lengths), st.integers(1, 4000), st.booleans())
def test_tiles_cover_all_rows_once(shape, side, hold):
    sides = tuple(min(side, length) for length in shape)
    layout = Layout(shape, sides, sides[0] if hold else 1)
    tiles = layout.tiles
    assert [tile.fresh for tile in tiles] == [0, *(tile.last for tile in tiles[:-1])]
    assert tiles[-1].last == shape[1]
    assert all(tile.last - tile.first >= sides[1] for tile in tiles)
    assert {tile.last - tile.first for tile in tiles[:-1]} <= {layout.rows + layout.shared}
    assert layout.visits == len(tiles) * (layout.rows + layout.shared) / shape[1]


@pytest.mark.parametrize("way", [*ways_of((60, 70, 80), 9), *ways_of((300, 400), 30)])
def test_memory_is_what_it_says(way):
    walk = new_walk(way)
    large = (walk.ring, walk.entropy, walk.column, walk.lines, walk.handed)
    assert sum(buffer.nbytes for buffer in large) == way.nbytes


CHOICES = {
    "usual": ((155, 240, 240), 10, (155, 240, 240), 10),
    "handing on would take much memory": ((155, 240, 240), 20, (155, 240, 240), 1),
    "tiles would share nearly all rows": ((1024, 1024), 128, (1024, 1, 1024), 128),
    "image in tiles": ((1024, 1024), 10, (1, 1024, 1024), 1),
    "ring larger than the map": ((1024, 1024), 900, (1024, 1, 1024), 1),
    "axes of length 1": ((1, 155, 1, 240, 240), 10, (155, 240, 240), 10),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name):
    shape, side, seen_as, slots = CHOICES[name]
    layout = layout_of(shape, tuple(min(side, length) for length in shape), 4 * int(np.prod(shape)))
    assert (layout.shape, layout.slots) == (seen_as, slots)


NO_WALK = {
    "a line": ((10**6,), 10),
    "four axes": ((20, 30, 40, 50), 10),
    "many tiny slices": ((10**5, 3, 3), 10),
    "rows longer than memory allows": ((3, 10**7), 10),
}


@pytest.mark.parametrize("name", NO_WALK)
def test_no_walk(name):
    shape, side = NO_WALK[name]
    assert layout_of(shape, tuple(min(side, length) for length in shape), 4 * int(np.prod(shape))) is None


@given(st.lists(lengths, min_size=2, max_size=3).map(tuple), st.integers(1, 4000))
def test_walks_take_little_memory_and_visit_rows_a_few_times(shape, side):
    size = 4 * int(np.prod(shape))
    layout = layout_of(shape, tuple(min(side, length) for length in shape), size)
    assert layout is None or (layout.nbytes <= max(5 << 20, 0.14 * size) and layout.visits <= 12)
