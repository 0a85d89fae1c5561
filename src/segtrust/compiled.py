# ruff: noqa
# mypy: implicit-reexport
from segtrust._compile import elementwise as elementwise
from segtrust._compile import entry as entry
from segtrust._compile import plain as plain
from segtrust._compile import reduction as reduction
from segtrust._compile import nan_reduction as wary
