# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.quantiles import DistinctDoubts as DistinctDoubts
from segtrust.kernels.quantiles import distinct_codes as distinct_codes
from segtrust.kernels.quantiles import distinct_doubts as distinct_doubts
from segtrust.kernels.quantiles import merge_distinct as merge_distinct
from segtrust.kernels.quantiles import pair_of_ranks as pair_of_ranks
