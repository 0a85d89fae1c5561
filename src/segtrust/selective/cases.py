# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.certify import CalibrationCases as CalibrationCases
