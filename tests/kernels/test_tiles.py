"""Maps are split into the tiles that are read one at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from segtrust.kernels import is_chunked, read_tile, tiles, tiles_of
from segtrust.kernels.tiles import extend_tile


@dataclass
class Chunked:
    shape: tuple
    chunks: Any
    dtype: Any = float


GRIDS = {
    "even": Chunked((6, 4), (3, 2)),
    "uneven": Chunked((7, 5), (3, 2)),
    "larger than the map": Chunked((3, 3), (10, 10)),
    "a length each": Chunked((7, 4), ((1, 4, 2), (3, 1))),
    "with an empty chunk": Chunked((5,), ((2, 0, 3),)),
    "no axis": Chunked((), ()),
    "contiguous": Chunked((9, 4), None),
    "contiguous, a short axis first": Chunked((1, 2, 30), None),
}


@pytest.mark.parametrize("name", GRIDS)
def test_tiles_cover_every_pixel_once(name, monkeypatch):
    monkeypatch.setattr(tiles, "_LARGEST_TILE", 8)
    seen = np.zeros(GRIDS[name].shape)
    for tile in tiles_of(GRIDS[name]):
        seen[tile] += 1
    assert (seen == 1).all()


def test_empty_chunks_are_passed_over():
    assert list(tiles_of(GRIDS["with an empty chunk"])) == [(slice(0, 2),), (slice(2, 5),)]


def test_a_contiguous_array_is_read_in_slabs(monkeypatch):
    monkeypatch.setattr(tiles, "_LARGEST_TILE", 8)
    assert [tile[0] for tile in tiles_of(GRIDS["contiguous"])] == [
        slice(i, min(i + 2, 9)) for i in range(0, 9, 2)
    ]


def test_a_short_leading_axis_is_no_reason_to_read_all_at_once(monkeypatch):
    monkeypatch.setattr(tiles, "_LARGEST_TILE", 8)
    sizes = [
        np.prod([part.stop - part.start for part in tile]) for tile in tiles_of(Chunked((3, 2, 30), None))
    ]
    assert max(sizes) == 8


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_memory_are_cut_where_their_neighbours_lie_farthest_apart(order):
    p = np.zeros((32, 3, 48), order=order)
    shapes = {p[tile].shape for tile in tiles_of(p)}
    assert shapes == ({(2, 3, 48)} if order == "C" else {(32, 3, 3)})


def test_extended_tiles_hold_every_box_that_begins_in_them():
    tile = (slice(2, 4), slice(6, 8))
    assert extend_tile(tile, (10, 8), (3, 5)) == (slice(2, 6), slice(6, 8))


def test_what_is_chunked():
    assert is_chunked(Chunked((1,), (1,)))
    assert not is_chunked(np.zeros(3))
    assert not is_chunked([0.5])


def test_no_mask_has_no_tile():
    assert read_tile(None, (slice(0, 1),)) is None
