# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.array_checks import as_binary as as_binary
from segtrust.kernels.map_view import MapView as MapView
from segtrust.kernels.map_view import contiguous as packed
from segtrust.kernels.map_view import is_readable_in_place as is_packed
from segtrust.kernels.map_view import raise_first_bad_value as explain_bad_values
from segtrust.kernels.map_view import view_map as view_map
