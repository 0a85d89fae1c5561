# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.patches import largest_box_sums as largest_box_sums
