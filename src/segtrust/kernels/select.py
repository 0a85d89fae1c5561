# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.quantiles import SAMPLE as SAMPLE
from segtrust.kernels.quantiles import Selector as Selector
from segtrust.kernels.quantiles import bracket_from_sample as bracket_from_sample
from segtrust.kernels.quantiles import order_statistic as order_statistic
from segtrust.kernels.quantiles import sample_doubts as sample_doubts
