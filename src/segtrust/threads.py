# ruff: noqa
# mypy: implicit-reexport
from segtrust._compile import available_cores as cores
from segtrust._compile import map_in_threads as in_order
