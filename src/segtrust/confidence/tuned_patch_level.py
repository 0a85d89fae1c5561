# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.tuned import SIDES as SIDES
from segtrust.confidence.tuned import TunedPatchLevel as TunedPatchLevel
from segtrust.confidence.tuned import largest_sums as largest_sums
