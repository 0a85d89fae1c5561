# ruff: noqa
# mypy: implicit-reexport
from segtrust.kernels.patches import Layout as Layout
from segtrust.kernels.patches import Tile as Tile
from segtrust.kernels.patches import choose_layout as layout_of
from segtrust.kernels.patches import long_axes as long_axes
