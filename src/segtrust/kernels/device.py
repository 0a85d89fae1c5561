"""Maps on a device (torch, CuPy, JAX): the same statistics by the array API standard, on that device.

Slower than the compiled loops on a CPU; differentiable where the library is; and the way that NumPy arrays
go where Numba is missing. Only single numbers that steer the computation come to the host. Sums are taken in
doubles, a block of pixels at a time, so that no double copy of a whole map is made (on a device that has no
doubles, or in JAX without ``jax_enable_x64``, in its widest floats).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device as device_of, is_array_api_obj, is_dask_array, to_device

from segtrust.kernels.arrays import (
    LEVELS,
    ArrayDiceStatistics,
    ArrayUncertainty,
    block_size,
    cut_in_blocks,
    detached,
    doubts_of,
    entropies_of,
    fold,
    name_of,
    wide_type,
    window_sums,
)
from segtrust.kernels.distinct import DistinctDoubts, distinct_doubts
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.refusals import (
    Nearby,
    check_shapes,
    check_type,
    mask_name,
    refuse_mask_type,
    refuse_mask_values,
    refuse_value,
)
from segtrust.kernels.statistics import APART_ABOVE, MASS_LIMIT, ORDER, Counts, host_number
from segtrust.kernels.view import as_binary

__all__ = ["DeviceMap", "as_binary_on_device", "count_on_device", "is_device_array", "on_host", "put_beside"]

_SAMPLE = 1 << 14
"""Pixels that tell about where the median lies."""
_SHOWN = 10


def is_device_array(values: Any) -> bool:
    """Tell whether an array belongs to another library than NumPy and Dask that speaks the array API."""
    host = isinstance(values, np.ndarray | np.generic) or is_dask_array(values)
    return not host and is_array_api_obj(values)


def as_binary_on_device(mask: Any, source: str = "mask") -> Any:
    """Give a mask as bool, where it is."""
    xp = array_namespace(mask)
    if xp.isdtype(mask.dtype, "bool"):
        return mask
    if not xp.isdtype(mask.dtype, ("integral", "real floating")):
        refuse_mask_type(mask.dtype, source)
    binary = mask != 0
    if not bool(xp.all(mask == xp.astype(binary, mask.dtype))):
        others = xp.unique_values(xp.astype(mask[(mask != 0) & (mask != 1)], wide_type(mask)))
        refuse_mask_values([host_number(value) for value in others[:_SHOWN]], source)
    return binary


def put_beside(mask: Any, p: Any, source: str = "mask") -> Any:
    """Bring a mask that lies elsewhere, or belongs to another library, to where a map is."""
    if isinstance(mask, np.ndarray):  # as bool, for some types, byte orders and strides have no twin there
        mask = np.require(as_binary(mask, source).view(bool), requirements=["C", "W"])
    return array_namespace(p).asarray(mask, device=device_of(p))


def on_host(values: Any) -> Any:
    """Copy an array on a device to NumPy; what is on the host already, or ``None``, stays as it is."""
    if values is None or not is_device_array(values):
        return values
    values = to_device(detached(values), "cpu")
    if name_of(values.dtype).startswith(("bfloat16", "float8_")):  # NumPy has none of its own
        values = array_namespace(values).astype(values, array_namespace(values).float32)
    return np.asarray(values)


def count_on_device(mask: Any) -> Any:
    """Count the true pixels of a bool mask; a scalar that stays on the device."""
    return array_namespace(mask).sum(array_namespace(mask).astype(mask, wide_type(mask)))


def _lies_in_unit_interval(values: Any) -> bool:
    """Look at both ends; they are NaN where any value is."""
    xp = array_namespace(values)
    return host_number(xp.min(values)) >= 0.0 and host_number(xp.max(values)) <= 1.0


@dataclass(frozen=True)
class DeviceMap:
    """A map that its own array library sums.

    Attributes
    ----------
    p, mask, threshold, source
        See `segtrust.kernels.view.view_map`. A mask that lies elsewhere is brought to where the map is.
    """

    p: Any
    mask: Any
    threshold: float
    source: str

    def __post_init__(self) -> None:
        """Check shape and type."""
        check_shapes(
            tuple(self.p.shape), None if self.mask is None else tuple(np.shape(self.mask)), self.source
        )
        check_type(self.p.dtype, self.source)

    @property
    def n(self) -> int:
        """Number of pixels."""
        return math.prod(self.p.shape)

    @property
    def _xp(self) -> Any:
        return array_namespace(self.p)

    @cached_property
    def _is_float(self) -> bool:
        return bool(self._xp.isdtype(self.p.dtype, "real floating"))

    @cached_property
    def _wide(self) -> Any:
        return wide_type(self.p)

    @cached_property
    def _block(self) -> int:
        return block_size(self.p)

    @property
    def _flat(self) -> Any:
        return self._xp.reshape(self.p, (-1,))

    def _as_floats(self, stored: Any) -> Any:
        """Give floats as they are and codes as wide probabilities."""
        if self._is_float:
            return stored
        return self._xp.astype(stored, self._wide) / LEVELS[name_of(self.p.dtype)]

    def _blocks(self) -> Iterator[Any]:
        """Give the probabilities a block at a time, checked.

        Floats keep their type: products with 0 and 1, differences of them and the doubt are exact in it and
        half the size of doubles. What rounds is done in the wide type.
        """
        for number, stored in enumerate(cut_in_blocks(self._flat, self._block)):
            seen = detached(stored)
            if self._is_float and not _lies_in_unit_interval(seen):
                self._refuse(self._xp.astype(seen, self._wide), number * self._block)
            yield self._as_floats(stored)

    def _refuse(self, values: Any, first: int) -> None:
        xp = self._xp
        at = int(xp.argmax(xp.astype(~((values >= 0.0) & (values <= 1.0)), xp.uint8)))
        value, finite = host_number(values[at]), values[xp.isfinite(values)]
        low, high = (host_number(end(finite)) if finite.shape[0] else value for end in (xp.min, xp.max))
        above = finite[finite > 1.0]
        nearby = Nearby(low, high, bool(xp.all(above == xp.floor(above))))
        index = np.unravel_index(first + at, tuple(self.p.shape))
        refuse_value(value, tuple(int(i) for i in index), nearby, self.source)

    def doubts(self) -> Iterator[Any]:
        """Give min(p, 1 - p) a block at a time, in the wide type."""
        return (self._xp.astype(doubts_of(p), self._wide) for p in self._blocks())

    def _masks(self) -> Iterator[Any]:
        """Blocks of the mask that was given; ``None`` again and again where none was."""
        if self.mask is None:
            return repeat(None)
        name = mask_name(self.source)
        mask = as_binary_on_device(put_beside(self.mask, self.p, name), name)
        return cut_in_blocks(self._xp.reshape(mask, (-1,)), self._block)

    def _sides(self) -> Iterator[tuple[Any, Any, Any]]:
        """Give each block's mask as 0.0 and 1.0, and its probabilities outside and inside of it."""
        for p, mask in zip(self._blocks(), self._masks(), strict=False):
            inside = self._xp.astype(self._reaches(detached(p)) if mask is None else mask, p.dtype)
            foreground = p * inside
            yield inside, p - foreground, foreground

    def _reaches(self, p: Any) -> Any:
        """Compare with the threshold rounded to the type of the map, as ``p >= threshold`` does in NumPy."""
        return p >= self._xp.asarray(self.threshold, dtype=p.dtype, device=device_of(p))

    def _sum(self, values: Any) -> Any:
        return self._xp.sum(values, dtype=self._wide)

    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""
        sums = ([self._sum(values) for values in block] for block in self._sides())
        k, lam, s = fold(sums, add, add, add)
        return Counts(self.n, int(k), s, lam)

    def dice_statistics(self) -> ArrayDiceStatistics:
        """All that exact expectations of overlap scores need; a second pass, once the masses are known."""
        counts = self.count()
        light = [host_number(mass) < MASS_LIMIT for mass in (counts.lam, counts.s)]
        nothing = self._xp.empty(0, dtype=self._wide, device=device_of(self.p))
        outside, inside = [nothing], [nothing]
        rows = (
            [
                *self._powers(background, outside if light[0] else None),
                *self._powers(foreground, inside if light[1] else None),
            ]
            for _, background, foreground in self._sides()
        )
        powers = fold(rows, *[add] * (2 * (ORDER - 1)))
        apart = self._xp.concat(outside), self._xp.concat(inside)
        return ArrayDiceStatistics(counts, (powers[: ORDER - 1], powers[ORDER - 1 :]), apart)

    def _powers(self, values: Any, apart: list[Any] | None) -> list[Any]:
        """Sum the powers of a block's values; the larger ones go to ``apart`` instead, if it is given."""
        small = self._xp.astype(values, self._wide)
        if apart is not None:
            small = self._without_large(small, apart)
        power, sums = small, []
        for _ in range(2, ORDER + 1):
            power = power * small
            sums.append(self._xp.sum(power))
        return sums

    def _without_large(self, values: Any, apart: list[Any]) -> Any:
        large = detached(values) > APART_ABOVE
        found = values[large]
        apart += [found] if found.shape[0] else []
        return self._xp.where(large, 0.0, values)

    def measure(self, needs: UncertaintyNeeds) -> ArrayUncertainty:
        """Statistics of the doubts and entropies."""
        xp = self._xp
        kept: list[Any] = []
        rows = (self._measure(p, needs, kept) for p in self._blocks())
        columns = fold(rows, add, xp.minimum, xp.maximum, add, add, add)
        doubt, lowest, highest, entropy, above, above_count = columns
        return ArrayUncertainty(
            n=self.n,
            doubt=doubt,
            entropy=entropy,
            above=above,
            above_count=int(above_count),
            lowest=lowest,
            highest=highest,
            patch=-math.inf if needs.side is None else self._patch(kept, needs.side),
            middle=self._middle() if needs.median else (math.nan, math.nan),
        )

    def _measure(self, p: Any, needs: UncertaintyNeeds, kept: list[Any]) -> list[Any]:
        """Measure one block; put its entropies into ``kept`` where patches need them."""
        xp = self._xp
        doubt = xp.astype(doubts_of(p), self._wide)
        row = [xp.sum(doubt), xp.min(doubt), xp.max(doubt)]
        if not (needs.entropies or needs.side is not None or needs.doubt_limit < math.inf):
            return [*row, *(row[0] * 0.0,) * 3]
        entropy = entropies_of(doubt)
        kept += [] if needs.side is None else [entropy]
        above = xp.astype(detached(doubt) > needs.doubt_limit, self._wide)
        return [*row, xp.sum(entropy), xp.sum(entropy * above), xp.sum(above)]

    def _patch(self, entropies: list[Any], side: int) -> Any:
        """Find the largest sum of entropies over a box; empties the list."""
        sums = self._xp.reshape(self._xp.concat(entropies), tuple(self.p.shape) or (1,))
        entropies.clear()
        for axis, length in enumerate(sums.shape):
            sums = window_sums(sums, axis, min(side, length))
        return self._xp.max(sums)

    def _middle(self) -> tuple[Any, Any]:
        """Find the two middle doubts: among those that a sample brackets, or, if it misled, among all."""
        first, last = (self.n - 1) // 2, self.n // 2
        below, found = self._doubts_between(*self._bracket())
        if not below <= first <= last < below + found.shape[0]:
            below, found = self._doubts_between(0.0, 0.5)
        return found[first - below], found[last - below]

    def _bracket(self) -> tuple[float, float]:
        step = self.n // _SAMPLE
        if step < 2:
            return 0.0, 0.5
        sample = self._xp.sort(doubts_of(self._as_floats(detached(self._flat)[::step])))
        middle, spread = sample.shape[0] // 2, 2 * math.isqrt(sample.shape[0]) + 2
        return host_number(sample[middle - spread]), host_number(sample[middle + spread])

    def _doubts_between(self, low: float, high: float) -> tuple[int, Any]:
        """Count the doubts below ``low`` and give those from ``low`` to ``high`` in order."""
        found = []

        def rows() -> Iterator[list[Any]]:
            for p in self._blocks():
                doubt = doubts_of(p)
                seen = detached(doubt)
                found.append(doubt[(seen >= low) & (seen <= high)])
                yield [count_on_device(seen < low)]

        (below,) = fold(rows(), add)
        between = self._xp.astype(self._xp.concat(found), self._wide)
        return int(below), between if low == high else self._xp.sort(between)

    def entropy_map(self) -> Any:
        """Entropy of each pixel in bits, on the host."""
        blocks = [np.asarray(on_host(entropies_of(detached(doubt))), np.float64) for doubt in self.doubts()]
        return np.concatenate(blocks).reshape(tuple(self.p.shape) or (1,))

    def distinct_doubts(self) -> DistinctDoubts:
        """Give the doubts that occur, sorted, on the host."""
        return distinct_doubts(np.asarray(on_host(detached(doubt)), np.float64) for doubt in self.doubts())

    def to_host(self) -> tuple[Any, Any]:
        """Copy map and mask to NumPy; only estimators that learn ask for it."""
        known = name_of(self.p.dtype) in (*LEVELS, "float16", "float32", "float64")
        p = self.p if known else self._xp.astype(self.p, self._wide)
        return on_host(p), on_host(self.mask)
