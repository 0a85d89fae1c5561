# ruff: noqa: D100, F401, I001, RUF100
from segtrust.kernels.patches import largest_box_sums as largest_box_sums
