"""Compiled sums over probability maps, and the mathematics on top of them.

Everything that other packages use is imported here. These modules do not load Numba; `open_map` loads the
compiled loops when it opens the first map on the host.
"""

from segtrust.kernels.array_checks import (
    as_array,
    as_binary,
    check_array,
    check_map_type,
    check_shapes,
    raise_empty,
    raise_shape_mismatch,
)
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
from segtrust.kernels.map_source import MapSource, count_mask_changes, open_map, threshold_map
from segtrust.kernels.map_view import contiguous, raise_first_bad_value, view_map
from segtrust.kernels.statistics import (
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

__all__ = [
    "LEVELS",
    "Counts",
    "DeviceMap",
    "DiceStatistics",
    "MapSource",
    "Ranks",
    "Spread",
    "UncertaintyNeeds",
    "UncertaintyStatistics",
    "as_array",
    "as_binary",
    "as_binary_on_device",
    "binary_entropy",
    "block_size",
    "check_array",
    "check_map_type",
    "check_shapes",
    "contiguous",
    "count_mask_changes",
    "count_on_device",
    "detached",
    "doubt_at_entropy",
    "entropies_of",
    "fold",
    "host_number",
    "is_chunked",
    "is_device_array",
    "name_of",
    "on_host",
    "open_map",
    "put_beside",
    "raise_empty",
    "raise_first_bad_value",
    "raise_shape_mismatch",
    "read_tile",
    "spreading",
    "threshold_map",
    "tiles_of",
    "view_map",
    "window_sums",
]
