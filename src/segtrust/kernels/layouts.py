"""In which order the loops visit a map to find its largest box, and what that takes in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

__all__ = ["Layout", "Tile", "layout_of", "long_axes"]

_RING_BYTES = 1 << 20
_WALK_BYTES, _WALK_SHARE = 5 << 20, 0.14
"""Memory that a walk may take, in all and beside the map; the larger of the two counts."""
_FEW, _MANY = 2.0, 12.0
"""How often a walk may visit rows: with a better one at hand, and before going without one is faster."""
_SLICES, _PIXELS = 256, 128
"""A walk of more slices than this, each of fewer pixels than that, is slower than none."""


@dataclass(frozen=True)
class Tile:
    """Rows ``first`` to ``last`` of each slice, of which those from ``fresh`` on are new to the walk."""

    first: int
    fresh: int
    last: int


@dataclass(frozen=True)
class Layout:
    """A map seen as slices of rows, and how a box is gathered from them.

    Attributes
    ----------
    shape, sides
        Of map and box along z, y and x.
    slots
        Slices whose entropies are held for when they leave the box: all ``sides[0]``, or 1 where entropies
        are computed once more instead.
    """

    shape: tuple[int, int, int]
    sides: tuple[int, int, int]
    slots: int

    @property
    def shared(self) -> int:
        """Rows that a tile shares with the next."""
        return self.sides[1] - 1

    @cached_property
    def rows(self) -> int:
        """Rows of boxes in a tile: those whose slots fit the second-level cache, at least one.

        Tiles have as many rows each, and threads as many tiles, so that their shares are equal.
        """
        places = self.shape[1] - self.shared
        most = _RING_BYTES // (8 * self.slots * self.shape[2]) - self.shared
        tiles = -(-places // max(1, min(most, places)))
        return -(-places // tiles)

    @cached_property
    def tiles(self) -> list[Tile]:
        """Neighbouring tiles, from the first row to the last."""
        shared, height = self.shared, self.shape[1]
        starts = range(0, height - shared, self.rows)
        return [
            Tile(start, start + shared if start else 0, min(start + self.rows + shared, height))
            for start in starts
        ]

    @property
    def handed(self) -> int:
        """Rows of each slice whose entropies a tile hands on to the next."""
        several = self.rows + self.shared < self.shape[1]
        return self.shared if several and self.slots == self.sides[0] else 0

    @property
    def visits(self) -> float:
        """How often a row is summed, because tiles share it."""
        places = self.shape[1] - self.shared
        return -(-places // self.rows) * (self.rows + self.shared) / self.shape[1]

    @property
    def is_thin(self) -> bool:
        """Whether there are many slices, each of few pixels."""
        depth, height, width = self.shape
        return depth > _SLICES and height * width < _PIXELS

    @property
    def nbytes(self) -> int:
        """Memory of the larger buffers: slots, three more of their size, rows handed from tile to tile."""
        depth, _, width = self.shape
        return 8 * width * ((self.slots + 3) * (self.rows + self.shared) + depth * self.handed)


def long_axes(shape: tuple[int, ...], sides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out axes of length 1, which make no difference to a box.

    Examples
    --------
    >>> long_axes((1, 30, 1, 40), (1, 9, 1, 9))
    ((30, 40), (9, 9))
    """
    kept = [axis for axis, length in enumerate(shape) if length > 1] or [0]
    return tuple(shape[axis] for axis in kept), tuple(sides[axis] for axis in kept)


def layout_of(shape: tuple[int, ...], sides: tuple[int, ...], nbytes: int) -> Layout | None:
    """Choose how to walk a map of so many bytes; ``None`` where it has not two or three long axes.

    It is ``None``, too, where every walk would take much memory beside the map, visit rows too often, or step
    through many tiny slices.

    Examples
    --------
    >>> layout_of((155, 240, 240), (10, 10, 10), 35_712_000)
    Layout(shape=(155, 240, 240), sides=(10, 10, 10), slots=10)
    >>> layout_of((155, 240, 240), (20, 20, 20), 35_712_000)
    Layout(shape=(155, 240, 240), sides=(20, 20, 20), slots=1)
    >>> layout_of((1024, 1024), (128, 128), 4_194_304)
    Layout(shape=(1024, 1, 1024), sides=(128, 1, 128), slots=128)
    """
    shape, sides = long_axes(shape, sides)
    if len(shape) not in (2, 3):
        return None
    flat, deep = _as_volume(shape, first=0), _as_volume(shape, first=1)
    flat_box, deep_box = _as_volume(sides, first=0), _as_volume(sides, first=1)
    in_tiles = Layout(flat, flat_box, flat_box[0])
    candidates = [
        (in_tiles, _FEW),
        (Layout(deep, deep_box, deep_box[0]), _FEW),
        (Layout(deep, deep_box, 1), _FEW),
        (in_tiles, _MANY),
    ]
    allowed = max(_WALK_BYTES, _WALK_SHARE * nbytes)
    fitting = (walk for walk, visits in candidates if walk.visits <= visits and walk.nbytes <= allowed)
    return next((walk for walk in fitting if not walk.is_thin), None)


def _as_volume(lengths: tuple[int, ...], first: int) -> tuple[int, int, int]:
    """Put an axis of length 1 before so many of two axes; three stay as they are."""
    z, y, x = lengths if len(lengths) == 3 else (*lengths[:first], 1, *lengths[first:])
    return z, y, x
