"""Compiled sums over probability maps, and the mathematics on top of them.

Everything that other packages use is imported here. These modules do not load Numba; `open_map` loads the
compiled loops when it opens the first map on the host; `HostMap` and `largest_box_sums` are imported on first
use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from segtrust.kernels.agreement import Agreement, PackedMasks, agreement_of_chunks
from segtrust.kernels.array_checks import (
    as_array,
    as_binary,
    check_array,
    check_map_type,
    check_shapes,
    mask_name,
    raise_empty,
    raise_shape_mismatch,
)
from segtrust.kernels.bounds import (
    DiceBounds,
    binomial_lower_bound,
    dice_bounds_from,
    relative_errors_from,
    worst_relative_error,
)
from segtrust.kernels.classes import (
    channel_of,
    check_labels,
    check_normalised,
    is_normalised,
    labels_beside,
    likeliest_labels,
    mask_of_label,
)
from segtrust.kernels.decoding import EMPTY_CUT, best_cut, is_at_least
from segtrust.kernels.device import (
    LEVELS,
    DeviceMap,
    as_binary_on_device,
    block_size,
    count_on_device,
    detached,
    entropies_of,
    fold,
    is_device_array,
    name_of,
    on_host,
    put_beside,
    window_sums,
)
from segtrust.kernels.integrals import (
    expected_dice,
    expected_tversky,
    probability_of_empty,
    probability_of_foreground,
)
from segtrust.kernels.map_source import MapSource, count_mask_changes, open_map, threshold_map
from segtrust.kernels.map_view import contiguous, raise_first_bad_value, view_map
from segtrust.kernels.quantiles import DistinctDoubts, Selector, bracket_from_sample, pair_of_ranks
from segtrust.kernels.statistics import (
    Bracket,
    Counts,
    DiceStatistics,
    Ranks,
    UncertaintyNeeds,
    UncertaintyStatistics,
    binary_entropy,
    doubt_at_entropy,
    host_number,
)
from segtrust.kernels.tiles import Spread, is_chunked, read_tile, spreading, tiles_of

if TYPE_CHECKING:
    from segtrust.kernels.host_maps import HostMap
    from segtrust.kernels.patches import largest_box_sums

__all__ = [
    "EMPTY_CUT",
    "LEVELS",
    "Agreement",
    "Bracket",
    "Counts",
    "DeviceMap",
    "DiceBounds",
    "DiceStatistics",
    "DistinctDoubts",
    "HostMap",
    "MapSource",
    "PackedMasks",
    "Ranks",
    "Selector",
    "Spread",
    "UncertaintyNeeds",
    "UncertaintyStatistics",
    "agreement_of_chunks",
    "as_array",
    "as_binary",
    "as_binary_on_device",
    "best_cut",
    "binary_entropy",
    "binomial_lower_bound",
    "block_size",
    "bracket_from_sample",
    "channel_of",
    "check_array",
    "check_labels",
    "check_map_type",
    "check_normalised",
    "check_shapes",
    "contiguous",
    "count_mask_changes",
    "count_on_device",
    "detached",
    "dice_bounds_from",
    "doubt_at_entropy",
    "entropies_of",
    "expected_dice",
    "expected_tversky",
    "fold",
    "host_number",
    "is_at_least",
    "is_chunked",
    "is_device_array",
    "is_normalised",
    "labels_beside",
    "largest_box_sums",
    "likeliest_labels",
    "mask_name",
    "mask_of_label",
    "name_of",
    "on_host",
    "open_map",
    "pair_of_ranks",
    "probability_of_empty",
    "probability_of_foreground",
    "put_beside",
    "raise_empty",
    "raise_first_bad_value",
    "raise_shape_mismatch",
    "read_tile",
    "relative_errors_from",
    "spreading",
    "threshold_map",
    "tiles_of",
    "view_map",
    "window_sums",
    "worst_relative_error",
]


_LOADS_NUMBA = {"HostMap": "host_maps", "largest_box_sums": "patches"}


def __getattr__(name: str) -> Any:
    if name in _LOADS_NUMBA:
        return getattr(import_module(f"segtrust.kernels.{_LOADS_NUMBA[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
