# ruff: noqa: F401, D100, I001
# mypy: implicit-reexport
from segtrust.selective.bootstrap import Bootstrap
from segtrust.selective.bootstrap import BootstrapInterval
from segtrust.selective.bootstrap import bootstrap_interval
