# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.map_source import MapSource as MapSource
from segtrust.kernels.map_source import open_map as open_map
