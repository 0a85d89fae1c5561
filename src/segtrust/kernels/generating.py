# ruff: noqa: D100, F401, I001, RUF100
from segtrust.kernels.integrals import generating_sums as generating_sums
