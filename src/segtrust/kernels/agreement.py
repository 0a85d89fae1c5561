"""How far several masks agree: the pixels that each two of them share, counted once, a bit a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from segtrust.kernels.masks import thresholded
from segtrust.kernels.tiles import over_tiles, read_tile

__all__ = ["Agreement", "PackedMasks", "agreement_of_chunks"]


@dataclass(frozen=True)
class Agreement:
    """Pixels that the masks of the members of an ensemble have in common.

    Attributes
    ----------
    shared
        For each two members the pixels that are in both masks; on the diagonal those of a mask itself.

    Examples
    --------
    >>> Agreement(((4, 2), (2, 2))).pairwise_dice(of_empty=0.0)
    0.6666666666666666
    """

    shared: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self.shared)

    def pairwise_dice(self, *, of_empty: float) -> float:
        """Mean of the Dice of each two masks, at least one pair; ``of_empty`` is that of two empty ones."""
        pairs = list(combinations(range(self.members), 2))
        return sum(self._dice(one, other, of_empty) for one, other in pairs) / len(pairs)

    def _dice(self, one: int, other: int, of_empty: float) -> float:
        pixels = self.shared[one][one] + self.shared[other][other]
        return 2.0 * self.shared[one][other] / pixels if pixels else of_empty


class PackedMasks:
    """Masks that are added one after the other and kept as bits, an eighth of a byte a pixel each."""

    def __init__(self) -> None:
        self._bits: list[Any] = []

    def add(self, mask: Any) -> None:
        """Take one more; all are of one shape."""
        self._bits.append(np.packbits(np.asarray(mask, bool)))

    def agreement(self) -> Agreement:
        """Count what each two share."""
        return _as_agreement(_shared(self._bits))


def _shared(bits: Sequence[Any]) -> Any:
    count = len(bits)
    found = np.zeros((count, count), np.int64)
    for one in range(count):
        for other in range(one, count):
            number = int(np.bitwise_count(bits[one] & bits[other]).sum(dtype=np.int64))
            found[one, other] = found[other, one] = number
    return found


def _as_agreement(shared: Any) -> Agreement:
    return Agreement(tuple(tuple(map(int, row)) for row in shared))


def agreement_of_chunks(maps: Sequence[Any], threshold: float, sources: Sequence[str]) -> Agreement:
    """Count what the masks ``p >= threshold`` of maps share that are read piece by piece."""
    return _as_agreement(sum(over_tiles(partial(_shared_in_tile, maps, threshold, sources), maps[0])))


def _shared_in_tile(maps: Sequence[Any], threshold: float, sources: Sequence[str], tile: Any) -> Any:
    masks = PackedMasks()
    for p, source in zip(maps, sources, strict=True):
        masks.add(thresholded(read_tile(p, tile), threshold=threshold, source=source))
    return np.array(masks.agreement().shared, np.int64)
