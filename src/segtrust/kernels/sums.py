# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.dice_sums import BLOCK as BLOCK
from segtrust.kernels.dice_sums import QUARTIC_MASS as QUARTIC_MASS
from segtrust.kernels.dice_sums import QUARTIC_TOP as QUARTIC_TOP
from segtrust.kernels.dice_sums import SEGMENT as SEGMENT
from segtrust.kernels.dice_sums import segments_of as segments_of
