# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.device import LEVELS as LEVELS
from segtrust.kernels.device import block_size as block_size
from segtrust.kernels.device import cut_in_blocks as cut_in_blocks
from segtrust.kernels.device import detached as detached
from segtrust.kernels.device import entropies_of as entropies_of
from segtrust.kernels.device import fold as fold
from segtrust.kernels.device import name_of as name_of
from segtrust.kernels.device import wide_type as wide_type
from segtrust.kernels.device import window_sums as window_sums
