"""Maps on a device (torch, CuPy, JAX): the same statistics by the array API standard, on that device.

Slower than the compiled loops on a CPU; differentiable where the library is; and the way that NumPy arrays
go where Numba is missing. Only single numbers that steer the computation come to the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, to_device
from array_api_compat import device as device_of

from segtrust.errors import (
    EmptyArrayError,
    MaskShapeError,
    NotBinaryError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.statistics import (
    APART_ABOVE,
    MASS_LIMIT,
    ORDER,
    Counts,
    DiceStatistics,
    UncertaintyStatistics,
)

__all__ = ["DeviceMap", "as_binary_on_device", "is_device_array"]

_LEVELS = {"uint8": 255.0, "uint16": 65535.0, "bool": 1.0}
_PIECE = 1 << 13


def is_device_array(values: Any) -> bool:
    """Tell whether an array belongs to another library than NumPy that speaks the array API."""
    return not isinstance(values, np.ndarray | np.generic) and is_array_api_obj(values)


def as_binary_on_device(mask: Any, source: str = "mask") -> Any:
    """Give a mask as bool, where it is."""
    xp = array_namespace(mask)
    if mask.dtype == xp.bool:
        return mask
    if not bool(xp.all((mask == 0) | (mask == 1))):
        raise NotBinaryError(f"{source}: expected only 0 and 1. Threshold or select the label first.")
    return mask != 0


class ArrayDiceStatistics(DiceStatistics):
    """`DiceStatistics` whose numbers lie on a device."""

    @property
    def namespace(self) -> Any:  # type: ignore[override]
        """The array library that the numbers belong to."""
        return array_namespace(self.s)

    def constants(self, values: Any) -> Any:
        """Put plain numbers on the device."""
        return self.namespace.asarray(values, dtype=self.s.dtype, device=device_of(self.s))

    def generating_sums(self, values: Any, t: Any) -> tuple[Any, Any]:
        """Σ log(1 - p + pt) and Σ p/(1 - p + pt) for each ``t``, a piece of the pixels at a time."""
        xp = self.namespace
        logarithm, slope = xp.zeros_like(t), xp.zeros_like(t)
        for first in range(0, values.shape[0], _PIECE):
            p = values[first : first + _PIECE]
            factor = (1.0 - p)[None, :] + p[None, :] * t[:, None]
            logarithm = logarithm + xp.sum(xp.log(factor), axis=1)
            slope = slope + xp.sum(p[None, :] / factor, axis=1)
        return logarithm, slope


class ArrayUncertainty(UncertaintyStatistics):
    """`UncertaintyStatistics` whose numbers lie on a device."""

    def entropy_of(self, doubt: Any) -> Any:
        """Entropy in bits of a pixel with this doubt."""
        return _entropies(doubt)


def _times_log2(values: Any) -> Any:
    xp = array_namespace(values)
    positive = values > 0.0
    return xp.where(positive, values * xp.log2(xp.where(positive, values, 1.0)), 0.0)


def _entropies(p: Any) -> Any:
    return -(_times_log2(p) + _times_log2(1.0 - p))


def _window_sums(values: Any, axis: int, side: int) -> Any:
    """Sums of ``side`` neighbours along one axis, put together from windows of 1, 2, 4, …"""
    window, width = values, 1
    total, covered = None, 0
    count = values.shape[axis] - side + 1
    while True:
        if side & width:
            part = _cut(window, axis, covered, count)
            total, covered = (part if total is None else total + part), covered + width
        if covered == side:
            return total
        length = window.shape[axis] - width
        window = _cut(window, axis, 0, length) + _cut(window, axis, width, length)
        width *= 2


def _cut(values: Any, axis: int, first: int, length: int) -> Any:
    return values[(slice(None),) * axis + (slice(first, first + length),)]


@dataclass(frozen=True)
class DeviceMap:
    """A map that its own array library sums.

    Attributes
    ----------
    p, mask, threshold, source
        See `segtrust.kernels.view.view_map`.
    """

    p: Any
    mask: Any
    threshold: float
    source: str

    def __post_init__(self) -> None:
        """Check shape and type."""
        if math.prod(self.p.shape) == 0:
            raise EmptyArrayError(f"{self.source}: expected at least one pixel, got shape {tuple(self.p.shape)}.")
        if self.mask is not None and tuple(self.mask.shape) != tuple(self.p.shape):
            raise MaskShapeError(
                f"mask: expected the shape of {self.source}, {tuple(self.p.shape)}, got {tuple(self.mask.shape)}."
            )
        if self._scale is None:
            raise ProbabilityTypeError(
                f"{self.source}: expected floats, uint8, uint16 or bool, got {self.p.dtype}. "
                "Convert the map to float32 probabilities first."
            )

    @property
    def n(self) -> int:
        """Number of pixels."""
        return math.prod(self.p.shape)

    @property
    def _xp(self) -> Any:
        return array_namespace(self.p)

    @property
    def _scale(self) -> float | None:
        if self._xp.isdtype(self.p.dtype, "real floating"):
            return 1.0
        return _LEVELS.get(str(self.p.dtype).rpartition(".")[2])

    @cached_property
    def _flat(self) -> Any:
        """Probabilities as doubles, checked."""
        xp = self._xp
        wide = xp.astype(xp.reshape(self.p, (-1,)), xp.float64)
        values = wide / self._scale if self._scale != 1.0 else wide
        if not bool(xp.all((values >= 0.0) & (values <= 1.0))):
            self._refuse(values)
        return values

    def _refuse(self, values: Any) -> None:
        xp = self._xp
        low, high = float(xp.min(values)), float(xp.max(values))
        if math.isnan(low):
            raise ProbabilityRangeError(f"{self.source}: expected probabilities in [0, 1], got NaN.")
        hint = "These look like logits: convert them first, with a sigmoid or softmax." if low < 0 else ""
        raise ProbabilityRangeError(
            f"{self.source}: expected probabilities in [0, 1], got values in [{low:.3g}, {high:.3g}]. {hint}"
        )

    @cached_property
    def _inside(self) -> Any:
        xp = self._xp
        if self.mask is not None:
            return xp.reshape(as_binary_on_device(self.mask), (-1,))
        if xp.isdtype(self.p.dtype, "real floating"):
            return xp.reshape(self.p >= self.threshold, (-1,))
        return self._flat >= self.threshold

    def _side(self, side: int) -> Any:
        hit = self._inside if side else ~self._inside
        return self._xp.where(hit, self._flat, 0.0)

    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""
        xp = self._xp
        k = int(xp.sum(xp.astype(self._inside, xp.int64)))
        return Counts(self.n, k, xp.sum(self._side(1)), xp.sum(self._side(0)))

    def dice_statistics(self) -> ArrayDiceStatistics:
        """All that exact expectations of overlap scores need."""
        counts = self.count()
        outside, inside = (self._powers(side, mass) for side, mass in ((0, counts.lam), (1, counts.s)))
        return ArrayDiceStatistics(counts, (outside[0], inside[0]), (outside[1], inside[1]))

    def _powers(self, side: int, mass: Any) -> tuple[list[Any], Any]:
        xp, values = self._xp, self._side(side)
        apart = values[:0]
        if float(mass) < MASS_LIMIT:
            large = values > APART_ABOVE
            apart, values = values[large], xp.where(large, 0.0, values)
        return [xp.sum(values**order) for order in range(2, ORDER + 1)], apart

    def measure(self, needs: UncertaintyNeeds) -> ArrayUncertainty:
        """Statistics of the doubts and entropies."""
        xp, p = self._xp, self._flat
        doubt = xp.where(p < 1.0 - p, p, 1.0 - p)
        entropy = _entropies(p)
        hit = doubt > needs.doubt_limit
        return ArrayUncertainty(
            self.n,
            xp.sum(doubt),
            xp.sum(entropy),
            xp.sum(xp.where(hit, entropy, 0.0)),
            int(xp.sum(xp.astype(hit, xp.int64))),
            xp.min(doubt),
            xp.max(doubt),
            self._patch(entropy, needs.side),
            self._middle(doubt) if needs.median else (math.nan, math.nan),
        )

    def _patch(self, entropy: Any, side: int | None) -> Any:
        if side is None:
            return -math.inf
        sums = self._xp.reshape(entropy, tuple(self.p.shape) or (1,))
        for axis, length in enumerate(sums.shape):
            sums = _window_sums(sums, axis, min(side, length))
        return self._xp.max(sums)

    def _middle(self, doubt: Any) -> tuple[Any, Any]:
        ordered = self._xp.sort(doubt)
        return ordered[(self.n - 1) // 2], ordered[self.n // 2]

    def to_host(self) -> tuple[Any, Any]:
        """Copy map and mask to NumPy; only estimators that learn ask for it."""
        return _to_numpy(self.p), None if self.mask is None else _to_numpy(self.mask)


def _to_numpy(values: Any) -> Any:
    detached = values.detach() if hasattr(values, "detach") else values
    return np.asarray(to_device(detached, "cpu"))
