"""Compiled sums over probability maps, and the mathematics on top of them.

Everything that other packages use is imported here. These modules do not load Numba; `open_map` loads the
compiled loops when it opens the first map on the host; `HostMap` and `largest_box_sums` are imported on first
use.

A chunked map is read in *tiles*; threads share *segments*; loops sum *blocks*, which fit the cache.
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
    dtype_name,
    mask_name,
    raise_shape_mismatch,
)
from segtrust.kernels.bounds import (
    DiceBounds,
    dice_bounds_from,
    relative_errors_from,
    worst_relative_error,
)
from segtrust.kernels.classes import (
    channel_of,
    check_labels,
    check_normalised,
    is_normalised,
    labels_for,
    mask_of_label,
    most_probable_labels,
)
from segtrust.kernels.decoding import EMPTY_THRESHOLD, best_threshold, is_at_least
from segtrust.kernels.device import (
    FULL_SCALE,
    DeviceMap,
    as_binary_on_device,
    as_float,
    as_tensor,
    count_on_device,
    detached,
    entropies_of,
    fold,
    in_host_memory,
    is_device_array,
    on_host,
    to_device_of,
    wide_type,
)
from segtrust.kernels.integrals import (
    expected_dice,
    expected_tversky,
    probability_of_empty,
    probability_of_foreground,
)
from segtrust.kernels.map_source import (
    MapSource,
    count_batch,
    count_map,
    count_mask_changes,
    open_map,
    threshold_map,
)
from segtrust.kernels.map_view import code_probabilities, contiguous, raise_first_bad_value, view_map
from segtrust.kernels.quantiles import DistinctDoubts, Selector, bracket_from_sample, pair_of_ranks
from segtrust.kernels.selection import check_where, fill_unselected, select_pixels
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
from segtrust.kernels.surprises import (
    check_levels,
    parts_of,
    suspect_shape,
    warn_of_shape,
    warn_of_surprises,
)
from segtrust.kernels.tiles import TileMapper, is_chunked, read_tile, tiles_mapped_by, tiles_of

if TYPE_CHECKING:
    from segtrust.kernels.host_maps import HostMap
    from segtrust.kernels.patches import largest_box_sums

__all__ = [
    "EMPTY_THRESHOLD",
    "FULL_SCALE",
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
    "TileMapper",
    "UncertaintyNeeds",
    "UncertaintyStatistics",
    "agreement_of_chunks",
    "as_array",
    "as_binary",
    "as_binary_on_device",
    "as_float",
    "as_tensor",
    "best_threshold",
    "binary_entropy",
    "bracket_from_sample",
    "channel_of",
    "check_array",
    "check_labels",
    "check_levels",
    "check_map_type",
    "check_normalised",
    "check_shapes",
    "check_where",
    "code_probabilities",
    "contiguous",
    "count_batch",
    "count_map",
    "count_mask_changes",
    "count_on_device",
    "detached",
    "dice_bounds_from",
    "doubt_at_entropy",
    "dtype_name",
    "entropies_of",
    "expected_dice",
    "expected_tversky",
    "fill_unselected",
    "fold",
    "host_number",
    "in_host_memory",
    "is_at_least",
    "is_chunked",
    "is_device_array",
    "is_normalised",
    "labels_for",
    "largest_box_sums",
    "mask_name",
    "mask_of_label",
    "most_probable_labels",
    "on_host",
    "open_map",
    "pair_of_ranks",
    "parts_of",
    "probability_of_empty",
    "probability_of_foreground",
    "raise_first_bad_value",
    "raise_shape_mismatch",
    "read_tile",
    "relative_errors_from",
    "select_pixels",
    "suspect_shape",
    "threshold_map",
    "tiles_mapped_by",
    "tiles_of",
    "to_device_of",
    "view_map",
    "warn_of_shape",
    "warn_of_surprises",
    "wide_type",
    "worst_relative_error",
]


_LOADS_NUMBA = {"HostMap": "host_maps", "largest_box_sums": "patches"}


def __getattr__(name: str) -> Any:
    if name in _LOADS_NUMBA:
        return getattr(import_module(f"segtrust.kernels.{_LOADS_NUMBA[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
