# ruff: noqa
# mypy: implicit-reexport
from segtrust._params import HasParams as HasParams
