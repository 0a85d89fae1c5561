# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.drift import DriftTest as DriftTest
from segtrust.selective.drift import drift_test as drift_test
