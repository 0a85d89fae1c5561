# ruff: noqa: F401, D100, I001
# mypy: implicit-reexport
from segtrust.selective.bootstrap import coverage_at_risk
from segtrust.selective.bootstrap import get_statistic
