# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.statistics import Ranks as Ranks
