# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.statistics import UncertaintyNeeds as UncertaintyNeeds
