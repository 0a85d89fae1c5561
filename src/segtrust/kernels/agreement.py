"""Agreement of the masks of an ensemble: the pixels that each pair shares, counted on packed bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from segtrust.kernels.map_source import threshold_map
from segtrust.kernels.tiles import over_tiles, read_tile


@dataclass(frozen=True)
class Agreement:
    """Pixels that the masks of the members of an ensemble have in common.

    Attributes
    ----------
    shared
        Number of pixels in the masks of both members, for each pair of members; on the diagonal the size of
        each mask.

    Examples
    --------
    >>> Agreement(((4, 2), (2, 2))).pairwise_dice(of_empty=0.0)
    0.6666666666666666
    """

    shared: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> int:
        """Number of members."""
        return len(self.shared)

    def pairwise_dice(self, *, of_empty: float) -> float:
        """Return the mean Dice of each pair of masks; ``of_empty`` is the Dice of two empty masks."""
        dice = []
        for first, second in combinations(range(self.members), 2):
            pixels = self.shared[first][first] + self.shared[second][second]
            dice.append(2.0 * self.shared[first][second] / pixels if pixels else of_empty)
        return sum(dice) / len(dice)


class PackedMasks:
    """Masks of one shape that are added one after the other and kept as one bit per pixel."""

    def __init__(self) -> None:
        self._bits: list[Any] = []

    def add(self, mask: Any) -> None:
        """Add a mask."""
        self._bits.append(np.packbits(np.asarray(mask, bool)))

    def agreement(self) -> Agreement:
        """Count the pixels that each pair of masks shares."""
        return _as_agreement(self.shared_pixels())

    def shared_pixels(self) -> Any:
        """Return the counts as a symmetric array of integers."""
        count = len(self._bits)
        shared = np.zeros((count, count), np.int64)
        for i in range(count):
            for j in range(i, count):
                common = np.bitwise_count(self._bits[i] & self._bits[j])
                shared[i, j] = shared[j, i] = common.sum(dtype=np.int64)
        return shared


def agreement_of_chunks(maps: Sequence[Any], threshold: float, sources: Sequence[str]) -> Agreement:
    """Return the agreement of the masks ``p >= threshold`` of maps that are read tile by tile."""
    return _as_agreement(sum(over_tiles(partial(_shared_in_tile, maps, threshold, sources), maps[0])))


def _shared_in_tile(maps: Sequence[Any], threshold: float, sources: Sequence[str], tile: Any) -> Any:
    masks = PackedMasks()
    for p, source in zip(maps, sources, strict=True):
        masks.add(threshold_map(read_tile(p, tile), threshold=threshold, source=source))
    return masks.shared_pixels()


def _as_agreement(shared: Any) -> Agreement:
    return Agreement(tuple(tuple(map(int, row)) for row in shared))
