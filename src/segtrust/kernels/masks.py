# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.map_source import count_mask_changes as count_differing
from segtrust.kernels.map_source import threshold_map as cut_map
from segtrust.kernels.map_source import threshold_map as thresholded
