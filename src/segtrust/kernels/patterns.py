# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.intrinsics import FETCHED as FETCHED
from segtrust.kernels.intrinsics import as_floats as as_floats
from segtrust.kernels.intrinsics import fetch_ahead as fetch_ahead
from segtrust.kernels.intrinsics import float_from_pattern as float_from_pattern
from segtrust.kernels.intrinsics import larger as larger
from segtrust.kernels.intrinsics import prefer_wide_vectors as prefer_wide_vectors
from segtrust.kernels.intrinsics import smaller as smaller
from segtrust.kernels.intrinsics import unsigned_pattern as unsigned_pattern
