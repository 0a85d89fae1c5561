"""Maps on a device (torch, CuPy, JAX): the same statistics by the array API standard, on that device.

This is slower than the compiled loops on a CPU, and differentiable if the library is. Only single numbers
that control the computation are copied to the host. Sums are computed in doubles, one block of pixels at a
time, so that no double copy of a whole map is made (on a device without doubles, or in JAX without
``jax_enable_x64``, in its widest floats).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import repeat
from operator import add
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device as device_of,
    is_array_api_obj,
    is_dask_array,
    is_jax_array,
    is_torch_array,
    to_device,
)

from segtrust.kernels.array_checks import (
    NearbyValues,
    as_binary,
    dtype_name,
    mask_name,
    raise_bad_value,
    raise_mask_type,
    raise_mask_values,
)
from segtrust.kernels.quantiles import DistinctDoubts, distinct_doubts
from segtrust.kernels.statistics import (
    APART_ABOVE,
    MASS_LIMIT,
    ORDER,
    Counts,
    DiceStatistics,
    UncertaintyNeeds,
    UncertaintyStatistics,
    host_number,
)

FULL_SCALE = {"uint8": 255.0, "uint16": 65535.0, "bool": 1.0}
"""The value that stands for a probability of 1, by integer type."""

_BLOCK_ON_HOST = 1 << 16
"""Pixels that stay in a processor's second-level cache as doubles."""
_BLOCK_ELSEWHERE = 1 << 24
"""Enough pixels to keep a graphics processor busy."""
_INTEGRAL_BLOCK = 1 << 13
"""Pixels that go into the products of the integrals at a time."""
_SAMPLE = 1 << 14
"""Pixels that show roughly where the median lies."""
_VALUES_SHOWN = 10


def is_device_array(values: Any) -> bool:
    """Return whether an array belongs to a library with the array API other than NumPy and Dask.

    A torch tensor on the CPU counts as one.
    """
    host = isinstance(values, np.ndarray | np.generic) or is_dask_array(values)
    return not host and is_array_api_obj(values)


def in_host_memory(p: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return a torch tensor on the CPU without gradient as a NumPy array on the same memory; others as is.

    The second value turns a result into what the caller expects: a tensor for such a tensor, a Python float
    for numbers on the host, and for all others whatever their library returned.
    """
    torch = sys.modules.get("torch")
    if type(p) is np.ndarray or torch is None or not (type(p) is torch.Tensor or is_torch_array(p)):
        return p, as_float
    if _is_followed(p, torch):
        return p, as_float
    try:
        return (p.detach() if p.requires_grad else p).numpy(), as_tensor
    except (RuntimeError, TypeError):  # on another device, sparse, or of a type that NumPy lacks
        return p, as_float


def _is_followed(p: Any, torch: Any) -> bool:
    """Return whether torch follows what is computed from a tensor: a derivative, or operations in a graph.

    Inside ``torch.func`` a tensor is a wrapper, whose memory may not hold its values. Two private names of
    torch keep this below half a microsecond, which every call pays.
    """
    forward_ad = torch.autograd.forward_ad
    return (
        (p.requires_grad and torch.is_grad_enabled())
        or (forward_ad._current_level >= 0 and forward_ad.unpack_dual(p).tangent is not None)
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()
    )


def as_float(value: Any) -> Any:
    """Return a Python float instead of a NumPy scalar; leave scalars on a device as they are."""
    return float(value) if isinstance(value, float) else value


def as_tensor(value: Any) -> Any:
    """Return a NumPy array as a torch tensor on the same memory, and a number as a scalar of doubles."""
    is_float = isinstance(value, float)  # the most common case, as fast as it can be
    array = np.array(value) if is_float else np.asarray(value, getattr(value, "dtype", np.float64))
    return sys.modules["torch"].from_numpy(array)


def as_binary_on_device(mask: Any, source: str = "mask") -> Any:
    """Return a mask as bool, on its device."""
    xp = array_namespace(mask)
    if xp.isdtype(mask.dtype, "bool"):
        return mask
    if not xp.isdtype(mask.dtype, ("integral", "real floating")):
        raise_mask_type(mask.dtype, source)
    binary = mask != 0
    if not bool(xp.all(mask == xp.astype(binary, mask.dtype))):
        others = xp.unique_values(xp.astype(mask[(mask != 0) & (mask != 1)], wide_type(mask)))
        raise_mask_values([host_number(value) for value in others[:_VALUES_SHOWN]], source)
    return binary


def to_device_of(mask: Any, p: Any, source: str = "mask") -> Any:
    """Copy a mask of any library or device to the library and device of a map."""
    if isinstance(mask, np.ndarray):  # as bool: some types, byte orders and strides do not exist there
        mask = np.require(as_binary(mask, source).view(bool), requirements=["C", "W"])
    return array_namespace(p).asarray(mask, device=device_of(p))


def on_host(values: Any) -> Any:
    """Copy an array on a device to NumPy; return an array on the host, or ``None``, as it is."""
    if values is None or not is_device_array(values):
        return values
    values = detached(values)
    if dtype_name(values.dtype).startswith(("bfloat16", "float8_")):  # NumPy has no such types
        values = array_namespace(values).astype(values, array_namespace(values).float32)
    return np.asarray(values if is_jax_array(values) else to_device(values, "cpu"))  # "cpu" is no JAX device


def count_on_device(mask: Any) -> Any:
    """Count the true pixels of a bool mask; return a scalar on its device."""
    return array_namespace(mask).sum(array_namespace(mask).astype(mask, wide_type(mask)))


def wide_type(values: Any) -> Any:
    """Return the type for sums on the device of ``values``: doubles, or its widest floats."""
    xp = array_namespace(values)
    types = xp.__array_namespace_info__().dtypes(device=device_of(values), kind="real floating")
    return types.get("float64", xp.float32)


def detached(values: Any) -> Any:
    """Return an array outside the graph of derivatives, for comparisons and checks."""
    return values.detach() if hasattr(values, "detach") else values


def block_size(values: Any) -> int:
    """Return the number of pixels to be summed at a time on the device of ``values``."""
    return _BLOCK_ON_HOST if "cpu" in str(device_of(values)).lower() else _BLOCK_ELSEWHERE


def split_in_blocks(values: Any, size: int) -> Iterator[Any]:
    """Split a flat array by ``unstack``: its derivative is assembled once, that of slices once per slice."""
    xp = array_namespace(values)
    whole = values.shape[0] // size * size
    if whole:
        yield from xp.unstack(xp.reshape(values[:whole], (-1, size)))
    if whole < values.shape[0]:
        yield values[whole:]


def fold(rows: Iterable[Iterable[Any]], *operations: Callable[[Any, Any], Any]) -> list[Any]:
    """Reduce rows of scalars as they arrive, each column by its operation.

    Kept until the end, the scalars would lie between the blocks on the heap and keep their memory from being
    reused: 130 MB instead of 7 for a map of 34 MB.
    """

    def step(so_far: Iterable[Any], row: Iterable[Any]) -> Iterable[Any]:
        columns = zip(operations, so_far, row, strict=True)
        return [operation(one, other) for operation, one, other in columns]

    return list(reduce(step, rows))


def doubts_of(p: Any) -> Any:
    """Return min(p, 1 - p), exact for floats."""
    return array_namespace(p).minimum(p, 1.0 - p)


def entropies_of(doubt: Any) -> Any:
    """Return the entropy in bits of pixels with these doubts; its derivative at 0 is finite, not NaN.

    Written in the doubt m, because 1 - m and ``log1p(-m)`` keep the digits that 1 - p would lose.
    """
    xp = array_namespace(doubt)
    logarithm = xp.log(xp.where(doubt > 0.0, doubt, 1.0))
    return (doubt * logarithm + (1.0 - doubt) * xp.log1p(-doubt)) * (-1.0 / math.log(2.0))


def window_sums_along(values: Any, axis: int, side: int) -> Any:
    """Sum ``side`` neighbours along an axis of an array of any library, by windows of 1, 2, 4, … pixels."""
    window, width = values, 1
    sums, covered = None, 0
    count = values.shape[axis] - side + 1
    while True:
        if side & width:
            part = _slice_along(window, axis, covered, count)
            sums, covered = (part if sums is None else sums + part), covered + width
        if covered == side:
            return sums
        length = window.shape[axis] - width
        window = _slice_along(window, axis, 0, length) + _slice_along(window, axis, width, length)
        width *= 2


def _slice_along(values: Any, axis: int, first: int, length: int) -> Any:
    return values[(slice(None),) * axis + (slice(first, first + length),)]


class DeviceDiceStatistics(DiceStatistics):
    """`DiceStatistics` whose numbers are on a device."""

    @property
    def namespace(self) -> Any:
        """The array library that the numbers belong to."""
        return array_namespace(self.s)

    @property
    def has_doubles(self) -> bool:
        """Whether the numbers are doubles, which some devices do not have."""
        return dtype_name(self.s.dtype) == "float64"

    def __add__(self, other: DiceStatistics) -> DiceStatistics:
        """Return NotImplemented: a map on a device is never split into tiles."""
        return NotImplemented

    def constants(self, values: Any) -> Any:
        """Return plain numbers on the device."""
        return self.namespace.asarray(values, dtype=self.s.dtype, device=device_of(self.s))

    def generating_sums(self, values: Any, t: Any, u: Any) -> tuple[Any, Any]:
        """Return Σ log(1 - p + pt) and Σ p/(1 - p + pt) for each ``t``, one block of pixels at a time.

        The logarithm of a factor close to 1 is computed from its distance to 1, which ``u`` = 1 - t keeps.
        """
        xp = self.namespace
        logarithm, slope = xp.zeros_like(t), xp.zeros_like(t)
        for p in split_in_blocks(values, _INTEGRAL_BLOCK):
            factor = (1.0 - p)[None, :] + p[None, :] * t[:, None]
            lack = xp.where(factor > 0.5, p[None, :] * u[:, None], 0.0)
            rest = xp.where(factor > 0.5, 1.0, factor)
            logarithm = logarithm + xp.sum(xp.log1p(-lack) + xp.log(rest), axis=1)
            slope = slope + xp.sum(p[None, :] / factor, axis=1)
        return logarithm, slope


class DeviceUncertaintyStatistics(UncertaintyStatistics):
    """`UncertaintyStatistics` whose numbers are on a device."""

    def entropy_of(self, doubt: Any) -> Any:
        """Return the entropy in bits of a pixel with this doubt."""
        return entropies_of(doubt)


@dataclass(frozen=True)
class DeviceMap:
    """A map that its own array library sums.

    Attributes
    ----------
    p
        Map of foreground probabilities.
    mask
        Binary mask of the same shape, or ``None`` for ``p >= threshold``; copied to the device of the map.
    threshold
        Decision threshold of the mask if there is none.
    source
        Name of the map in errors.
    """

    p: Any
    mask: Any
    threshold: float
    source: str

    @property
    def n(self) -> int:
        """Number of pixels."""
        return math.prod(self.p.shape)

    def number(self, value: Any) -> Any:
        """Return a result as a scalar on the device; a plain number, which has no gradient, becomes one."""
        if is_device_array(value):
            return value
        return self._xp.asarray(value, dtype=self._wide, device=device_of(self.p))

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
        """Return floats as they are and codes as wide probabilities."""
        if self._is_float:
            return stored
        return self._xp.astype(stored, self._wide) / FULL_SCALE[dtype_name(self.p.dtype)]

    def _blocks(self) -> Iterator[Any]:
        """Return the probabilities one block at a time, checked.

        Floats keep their type: products with 0 and 1, differences of them and the doubt are exact in it and
        half the size of doubles. Operations that round are done in the wide type.
        """
        for number, stored in enumerate(split_in_blocks(self._flat, self._block)):
            if self._is_float:
                values = detached(stored)
                low, high = self._xp.min(values), self._xp.max(values)  # NaN if any value is
                if not (host_number(low) >= 0.0 and host_number(high) <= 1.0):
                    self._raise_bad_value(self._xp.astype(values, self._wide), number * self._block)
            yield self._as_floats(stored)

    def _raise_bad_value(self, values: Any, first: int) -> None:
        xp = self._xp
        at = int(xp.argmax(xp.astype(~((values >= 0.0) & (values <= 1.0)), xp.uint8)))
        value, finite = host_number(values[at]), values[xp.isfinite(values)]
        low, high = (host_number(end(finite)) if finite.shape[0] else value for end in (xp.min, xp.max))
        above = finite[finite > 1.0]
        nearby = NearbyValues(low, high, bool(xp.all(above == xp.floor(above))))
        index = np.unravel_index(first + at, tuple(self.p.shape))
        raise_bad_value(value, tuple(int(i) for i in index), nearby, self.source)

    def doubts(self) -> Iterator[Any]:
        """Return min(p, 1 - p) one block at a time, in the wide type."""
        return (self._xp.astype(doubts_of(p), self._wide) for p in self._blocks())

    def _masks(self) -> Iterator[Any]:
        """Return the blocks of the mask; ``None`` for each block if there is no mask."""
        if self.mask is None:
            return repeat(None)
        name = mask_name(self.source)
        mask = as_binary_on_device(to_device_of(self.mask, self.p, name), name)
        return split_in_blocks(self._xp.reshape(mask, (-1,)), self._block)

    def _sides(self) -> Iterator[tuple[Any, Any, Any]]:
        """Return each block's mask as 0.0 and 1.0, and its probabilities outside and inside the mask.

        The threshold is rounded to the type of the map, as ``p >= threshold`` does in NumPy.
        """
        for p, mask in zip(self._blocks(), self._masks(), strict=False):
            threshold = self._xp.asarray(self.threshold, dtype=p.dtype, device=device_of(p))
            inside = self._xp.astype(detached(p) >= threshold if mask is None else mask, p.dtype)
            foreground = p * inside
            yield inside, p - foreground, foreground

    def count(self) -> Counts:
        """Return pixels and probability on both sides of the mask."""
        sums = ([self._xp.sum(values, dtype=self._wide) for values in block] for block in self._sides())
        k, lam, s = fold(sums, add, add, add)
        return Counts(self.n, int(k), s, lam)

    def dice_statistics(self, *, any_weights: bool = False) -> DeviceDiceStatistics:
        """Return the sums from which exact expectations of overlap scores are computed, in a second pass.

        They serve any weights in either case.
        """
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
        return DeviceDiceStatistics(counts, (powers[: ORDER - 1], powers[ORDER - 1 :]), apart)

    def _powers(self, values: Any, apart: list[Any] | None) -> list[Any]:
        """Sum the powers of a block's values; append the larger ones to ``apart`` if it is a list."""
        small = self._xp.astype(values, self._wide)
        if apart is not None:
            large = detached(small) > APART_ABOVE
            if bool(self._xp.any(large)):
                apart.append(small[large])
            small = self._xp.where(large, 0.0, small)
        power, sums = small, []
        for _ in range(2, ORDER + 1):
            power = power * small
            sums.append(self._xp.sum(power))
        return sums

    def measure(self, needs: UncertaintyNeeds) -> DeviceUncertaintyStatistics:
        """Return statistics of the doubts and entropies."""
        xp = self._xp
        entropies: list[Any] = []
        rows = (self._measure(p, needs, entropies) for p in self._blocks())
        columns = fold(rows, add, xp.minimum, xp.maximum, add, add, add)
        doubt, lowest, highest, entropy, above, above_count = columns
        return DeviceUncertaintyStatistics(
            n=self.n,
            doubt=doubt,
            entropy=entropy,
            above=above,
            above_count=int(above_count),
            lowest=lowest,
            highest=highest,
            patch=-math.inf if needs.side is None else self._patch(entropies, needs.side),
            middle=self._middle() if needs.median else (math.nan, math.nan),
        )

    def _measure(self, p: Any, needs: UncertaintyNeeds, entropies: list[Any]) -> list[Any]:
        """Measure one block; append its entropies to ``entropies`` if patches need them."""
        xp = self._xp
        doubt = xp.astype(doubts_of(p), self._wide)
        row = [xp.sum(doubt), xp.min(doubt), xp.max(doubt)]
        if not needs.any_entropies:
            return [*row, *(row[0] * 0.0,) * 3]
        entropy = entropies_of(doubt)
        if needs.side is not None:
            entropies.append(entropy)
        above = xp.astype(detached(doubt) > needs.doubt_limit, self._wide)
        return [*row, xp.sum(entropy), xp.sum(entropy * above), xp.sum(above)]

    def _patch(self, entropies: list[Any], side: int) -> Any:
        """Return the largest sum of entropies over a box; empty the list."""
        sums = self._xp.reshape(self._xp.concat(entropies), tuple(self.p.shape) or (1,))
        entropies.clear()
        for axis, length in enumerate(sums.shape):
            sums = window_sums_along(sums, axis, min(side, length))
        return self._xp.max(sums)

    def _middle(self) -> tuple[Any, Any]:
        """Return the two middle doubts: among those that a sample brackets or, if it misled, among all."""
        first, last = (self.n - 1) // 2, self.n // 2
        below, doubts = self._doubts_between(*self._bracket())
        if not below <= first <= last < below + doubts.shape[0]:
            below, doubts = self._doubts_between(0.0, 0.5)
        return doubts[first - below], doubts[last - below]

    def _bracket(self) -> tuple[float, float]:
        step = self.n // _SAMPLE
        if step < 2:
            return 0.0, 0.5
        sample = self._xp.sort(doubts_of(self._as_floats(detached(self._flat)[::step])))
        middle, spread = sample.shape[0] // 2, 2 * math.isqrt(sample.shape[0]) + 2
        return host_number(sample[middle - spread]), host_number(sample[middle + spread])

    def _doubts_between(self, low: float, high: float) -> tuple[int, Any]:
        """Count the doubts below ``low`` and return those from ``low`` to ``high`` in order."""
        blocks = []

        def rows() -> Iterator[list[Any]]:
            for p in self._blocks():
                doubt = doubts_of(p)
                compared = detached(doubt)
                blocks.append(doubt[(compared >= low) & (compared <= high)])
                yield [count_on_device(compared < low)]

        (below,) = fold(rows(), add)
        between = self._xp.astype(self._xp.concat(blocks), self._wide)
        return int(below), between if low == high else self._xp.sort(between)

    def entropy_map(self) -> Any:
        """Return the entropy of each pixel in bits, on the host."""
        blocks = [np.asarray(on_host(entropies_of(detached(doubt))), np.float64) for doubt in self.doubts()]
        return np.concatenate(blocks).reshape(tuple(self.p.shape) or (1,))

    def distinct_doubts(self) -> DistinctDoubts:
        """Return the doubts that occur, sorted, with the number of pixels of each, on the host."""
        return distinct_doubts(np.asarray(on_host(detached(doubt)), np.float64) for doubt in self.doubts())

    def to_host(self) -> tuple[Any, Any]:
        """Copy map and mask to NumPy, for estimators that learn."""
        known = dtype_name(self.p.dtype) in (*FULL_SCALE, "float16", "float32", "float64")
        p = self.p if known else self._xp.astype(self.p, self._wide)
        return on_host(p), on_host(self.mask)
