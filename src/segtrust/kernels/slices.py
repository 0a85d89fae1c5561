# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.patches import largest_box_by_slices as largest_by_slices
