"""Small functions over arrays of any library that speaks the array API: blocks, entropies, windows, sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

from array_api_compat import array_namespace, device as device_of

from segtrust.kernels.statistics import DiceStatistics, UncertaintyStatistics

__all__ = [
    "LEVELS",
    "ArrayDiceStatistics",
    "ArrayUncertainty",
    "block_size",
    "cut_in_blocks",
    "detached",
    "doubts_of",
    "entropies_of",
    "fold",
    "name_of",
    "wide_type",
    "window_sums",
]

LEVELS = {"uint8": 255.0, "uint16": 65535.0, "bool": 1.0}
"""What stands for a probability of 1, by type of integer."""

_BLOCK_ON_HOST = 1 << 16
"""Pixels that stay in a processor's second-level cache as doubles."""
_BLOCK_ELSEWHERE = 1 << 24
"""Pixels enough to keep a graphics processor busy."""
_PIECE = 1 << 13
"""Pixels that go into the products of the integrals at a time."""


def wide_type(values: Any) -> Any:
    """Give the type in which sums are taken where these values lie: doubles, or its widest floats."""
    xp = array_namespace(values)
    types = xp.__array_namespace_info__().dtypes(device=device_of(values), kind="real floating")
    return types.get("float64", xp.float32)


def name_of(dtype: Any) -> str:
    """Name of a type without its library and byte order."""
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def detached(values: Any) -> Any:
    """Leave the graph of derivatives, for what is only looked at or compared."""
    return values.detach() if hasattr(values, "detach") else values


def block_size(values: Any) -> int:
    """Give the number of pixels to be summed at a time where these values lie."""
    return _BLOCK_ON_HOST if "cpu" in str(device_of(values)).lower() else _BLOCK_ELSEWHERE


def cut_in_blocks(values: Any, size: int) -> Iterator[Any]:
    """Cut a flat array, by ``unstack``: its derivative is put together once, that of slices once a slice."""
    xp = array_namespace(values)
    whole = values.shape[0] // size * size
    if whole:
        yield from xp.unstack(xp.reshape(values[:whole], (-1, size)))
    if whole < values.shape[0]:
        yield values[whole:]


def fold(rows: Iterable[Iterable[Any]], *operations: Callable[[Any, Any], Any]) -> list[Any]:
    """Reduce rows of scalars as they come, each column by its operation.

    Kept until the end, the scalars would lie between the blocks on the heap and stop their memory from being
    used again: 130 MB instead of 7 for a map of 34 MB.
    """

    def step(so_far: Iterable[Any], row: Iterable[Any]) -> Iterable[Any]:
        columns = zip(operations, so_far, row, strict=True)
        return [operation(one, other) for operation, one, other in columns]

    return list(reduce(step, rows))


def doubts_of(p: Any) -> Any:
    """Give min(p, 1 - p), exact for floats."""
    return array_namespace(p).minimum(p, 1.0 - p)


def entropies_of(doubt: Any) -> Any:
    """Entropy in bits of pixels with these doubts; its derivative at 0 is finite here, and not NaN.

    Written in the doubt m because 1 - m and ``log1p(-m)`` keep the digits that 1 - p would lose.
    """
    xp = array_namespace(doubt)
    logarithm = xp.log(xp.where(doubt > 0.0, doubt, 1.0))
    return (doubt * logarithm + (1.0 - doubt) * xp.log1p(-doubt)) * (-1.0 / math.log(2.0))


def window_sums(values: Any, axis: int, side: int) -> Any:
    """Sum ``side`` neighbours along one axis, put together from windows of 1, 2, 4 and so on."""
    window, width = values, 1
    sums, covered = None, 0
    count = values.shape[axis] - side + 1
    while True:
        if side & width:
            part = _cut(window, axis, covered, count)
            sums, covered = (part if sums is None else sums + part), covered + width
        if covered == side:
            return sums
        length = window.shape[axis] - width
        window = _cut(window, axis, 0, length) + _cut(window, axis, width, length)
        width *= 2


def _cut(values: Any, axis: int, first: int, length: int) -> Any:
    return values[(slice(None),) * axis + (slice(first, first + length),)]


class ArrayDiceStatistics(DiceStatistics):
    """`DiceStatistics` whose numbers lie on a device."""

    @property
    def namespace(self) -> Any:
        """The array library that the numbers belong to."""
        return array_namespace(self.s)

    @property
    def has_doubles(self) -> bool:
        """Whether the numbers are doubles, which some devices do not have."""
        return name_of(self.s.dtype) == "float64"

    def constants(self, values: Any) -> Any:
        """Put plain numbers on the device."""
        return self.namespace.asarray(values, dtype=self.s.dtype, device=device_of(self.s))

    def generating_sums(self, values: Any, t: Any, u: Any) -> tuple[Any, Any]:
        """Σ log(1 - p + pt) and Σ p/(1 - p + pt) for each ``t``, a piece of the pixels at a time.

        Where a factor is close to 1 its logarithm is that of its distance from 1, which ``u`` = 1 - t keeps.
        """
        xp = self.namespace
        logarithm, slope = xp.zeros_like(t), xp.zeros_like(t)
        for p in cut_in_blocks(values, _PIECE):
            factor = (1.0 - p)[None, :] + p[None, :] * t[:, None]
            lack = xp.where(factor > 0.5, p[None, :] * u[:, None], 0.0)
            rest = xp.where(factor > 0.5, 1.0, factor)
            logarithm = logarithm + xp.sum(xp.log1p(-lack) + xp.log(rest), axis=1)
            slope = slope + xp.sum(p[None, :] / factor, axis=1)
        return logarithm, slope


class ArrayUncertainty(UncertaintyStatistics):
    """`UncertaintyStatistics` whose numbers lie on a device."""

    def entropy_of(self, doubt: Any) -> Any:
        """Entropy in bits of a pixel with this doubt."""
        return entropies_of(doubt)
