# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.patches import largest_patch as largest_patch
from segtrust.kernels.patches import measure_with_patches as measure_with_patches
