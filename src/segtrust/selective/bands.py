# ruff: noqa: F401, D100, I001
# mypy: implicit-reexport
from segtrust.selective.bootstrap import RiskBand
from segtrust.selective.bootstrap import risk_band
