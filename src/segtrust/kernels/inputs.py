# ruff: noqa
# mypy: implicit-reexport
from segtrust._arguments import check_nonnegative as check_number
from segtrust._arguments import check_threshold as check_fraction
from segtrust._arguments import check_weight as check_weight
from segtrust._arguments import check_whole as check_whole
from segtrust._arguments import describe as described
from segtrust.kernels.array_checks import as_array as as_array
from segtrust.kernels.array_checks import check_array as check_array
