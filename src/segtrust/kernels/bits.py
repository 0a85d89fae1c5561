# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.statistics import binary_entropy as binary_entropy
from segtrust.kernels.statistics import bits_of_float as bits_of_float
from segtrust.kernels.statistics import doubt_at_entropy as doubt_at_entropy
from segtrust.kernels.statistics import float_of_bits as float_of_bits
