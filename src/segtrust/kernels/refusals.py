# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.array_checks import NearbyValues as Nearby
from segtrust.kernels.array_checks import check_map_type as check_type
from segtrust.kernels.array_checks import check_shapes as check_shapes
from segtrust.kernels.array_checks import mask_name as mask_name
from segtrust.kernels.array_checks import raise_bad_value as refuse_value
from segtrust.kernels.array_checks import raise_empty as refuse_empty
from segtrust.kernels.array_checks import raise_map_type as refuse_type
from segtrust.kernels.array_checks import raise_mask_type as refuse_mask_type
from segtrust.kernels.array_checks import raise_mask_values as refuse_mask_values
from segtrust.kernels.array_checks import raise_shape_mismatch as refuse_shape
