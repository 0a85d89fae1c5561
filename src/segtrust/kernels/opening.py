"""From an array of any kind to something that can be summed."""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np

from segtrust.kernels.device import DeviceMap, is_device_array, on_host
from segtrust.kernels.distinct import DistinctDoubts
from segtrust.kernels.inputs import as_array, check_fraction
from segtrust.kernels.needs import UncertaintyNeeds
from segtrust.kernels.refusals import check_shapes, mask_name
from segtrust.kernels.statistics import Counts, DiceStatistics, UncertaintyStatistics

__all__ = ["MapSource", "numba_is_there", "open_map"]


class MapSource(Protocol):
    """A map that can be summed: in memory, in chunks, or on a device."""

    @property
    def n(self) -> int:
        """Number of pixels."""

    def count(self) -> Counts:
        """Pixels and probability on both sides of the mask."""

    def dice_statistics(self) -> DiceStatistics:
        """All that exact expectations of overlap scores need."""

    def measure(self, needs: UncertaintyNeeds) -> UncertaintyStatistics:
        """Statistics of the doubts and entropies."""

    def entropy_map(self) -> Any:
        """Entropy of each pixel in bits, a NumPy array of the map's shape."""

    def distinct_doubts(self) -> DistinctDoubts:
        """Give the doubts that occur, sorted, and how many pixels have each."""


@cache
def numba_is_there() -> bool:
    """Tell whether the compiled loops can be used; without Numba NumPy does the work, slower."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def open_map(p: Any, mask: Any = None, *, threshold: float = 0.5, source: str = "p") -> MapSource:
    """Find out where a map lies; shape and type are checked now, values while they are summed."""
    check_fraction(threshold, "threshold")
    p = as_array(p, source)
    if mask is not None:
        mask = as_array(mask, mask_name(source))
        check_shapes(tuple(p.shape), tuple(mask.shape), source)
    if is_device_array(p):
        return DeviceMap(p, _read(mask), threshold, source)
    mask = on_host(mask)
    if not numba_is_there():
        return DeviceMap(np.asarray(p), _read(mask), threshold, source)
    from segtrust.kernels.sources import open_host_map

    return open_host_map(p if p.shape else np.asarray(p), mask, threshold=threshold, source=source)


def _read(mask: Any) -> Any:
    """Read a mask that lies on a disk or was not computed yet; leave one in memory or on a device."""
    return mask if mask is None or is_device_array(mask) else np.asarray(mask)
