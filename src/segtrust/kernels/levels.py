"""How many pixels of a map have which probability, from the largest down; piece by piece for maps in chunks.

Maps of integers and half floats have few values, each of which is a level. Other floats are counted in bins
of like values, by the leading bits of their pattern, which is ordered as they are and fine where they are
small; the bins that matter are then opened and their values told apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from segtrust.kernels.tiles import over_tiles, read_tile
from segtrust.kernels.view import is_packed, view_map

__all__ = ["Levels", "binned_levels", "levels_in_bins"]

_DROPPED_BITS = 12
"""Of the pattern of a single float; 11 bits of its mantissa are left."""
_BINS = (int(np.float32(1.0).view(np.uint32)) >> _DROPPED_BITS) + 1
_PIECE = 1 << 20
"""Pixels that are looked at in one go; there are a quarter of a million bins to be gone through for each."""
_FEW = 1 << 18
"""Pixels up to which a map of floats is sorted instead."""


@dataclass(frozen=True)
class Levels:
    """Pixels by probability, from the largest down; what no pixel has is left out.

    Attributes
    ----------
    counts, sums
        Pixels of each level, and the sum of their probabilities.
    values
        Probability of each level; ``None`` where levels are bins of several.
    bins
        Number of each bin.
    """

    counts: Any
    sums: Any
    values: Any = None
    bins: Any = None

    def from_to(self, first: int, last: int) -> Levels:
        """Give some of the levels."""
        fields = (self.counts, self.sums, self.values, self.bins)
        return Levels(*(None if each is None else each[first:last] for each in fields))


def binned_levels(p: Any, source: str = "p") -> Levels:
    """Count the pixels of a map of checked values by probability, in bins where it is one of floats.

    Examples
    --------
    >>> levels = binned_levels(np.array([[255, 0], [51, 255]], np.uint8))
    >>> levels.values.tolist(), levels.counts.tolist()
    ([1.0, 0.2, 0.0], [2, 1, 1])
    """
    has_codes = p.dtype.kind != "f" or p.dtype.itemsize == 2
    if not has_codes and math.prod(p.shape) <= _FEW:
        return levels_in_bins(p, (_BINS, 0), source)
    counts, codes = reduce(_both, _over_pieces(partial(_counted, source), p))
    if codes.size:
        used = np.flatnonzero(counts[0])
        return _levels_of(codes[used], counts[0][used].astype(np.int64))
    filled = np.flatnonzero(counts[0])[::-1]
    return Levels(counts[0][filled].astype(np.int64), counts[1][filled], bins=filled)


def levels_in_bins(p: Any, bins: Sequence[int], source: str = "p") -> Levels:
    """Tell apart the values of a map of floats that lie between the first and the last of these bins."""
    values, counts = zip(*_over_pieces(partial(_values_in_bins, source, (bins[-1], bins[0])), p), strict=True)
    return _levels_of(np.concatenate(values), np.concatenate(counts))


def _over_pieces(function: Callable[[Any], Any], p: Any) -> Iterable[Any]:
    """Apply a function to a map that can be read where it lies, or to one chunk of it after the other."""
    if isinstance(p, np.ndarray) and is_packed(p, None):
        return [function(p)]
    return over_tiles(partial(_of_tile, function, p), p)


def _of_tile(function: Callable[[Any], Any], p: Any, tile: tuple[slice, ...]) -> Any:
    return function(read_tile(p, tile))


def _both(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    return one[0] + other[0], one[1]


def _counted(source: str, p: Any) -> tuple[Any, Any]:
    """Give counts and sums of codes or bins in one piece, and the probabilities of codes."""
    view = view_map(p, source=source)
    flat = view.values.reshape(-1)
    if view.codes.size:
        counts = (np.bincount(piece, minlength=view.codes.size) for piece in _pieces(flat))
        return reduce(add, counts)[None], view.codes
    found = np.zeros((2, _BINS))
    for piece in _pieces(flat):
        bins = _bins_of(piece)
        found[0] += np.bincount(bins, minlength=_BINS)
        found[1] += np.bincount(bins, weights=piece, minlength=_BINS)
    return found, view.codes


def _pieces(flat: Any) -> Iterable[Any]:
    return (flat[first : first + _PIECE] for first in range(0, flat.size, _PIECE))


def _bins_of(values: Any) -> Any:
    """Give the bin of each value; adding 0 takes the sign from a negative zero."""
    singles = values.astype(np.float32) + np.float32(0.0)
    return singles.view(np.uint32) >> np.uint32(_DROPPED_BITS)


def _values_in_bins(source: str, ends: tuple[int, int], p: Any) -> tuple[Any, Any]:
    flat = view_map(p, source=source).values.reshape(-1)
    kept = flat if ends == (0, _BINS) else np.concatenate([_between(piece, ends) for piece in _pieces(flat)])
    values = np.sort(kept)
    firsts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: values.size])
    return values[firsts].astype(np.float64), np.diff(np.append(firsts, values.size))


def _between(values: Any, ends: tuple[int, int]) -> Any:
    bins = _bins_of(values)
    return values[(bins >= ends[0]) & (bins <= ends[1])]


def _levels_of(values: Any, counts: Any) -> Levels:
    """Sort values, and put equal ones together: of several pieces, zeros with a sign, all that is true."""
    values = values + 0.0
    if not np.all(values[1:] > values[:-1]):
        values, of = np.unique(values, return_inverse=True)
        counts = np.bincount(of, weights=counts, minlength=values.size).astype(np.int64)
    return Levels(counts[::-1], (values * counts)[::-1], values[::-1])
