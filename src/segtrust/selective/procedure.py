# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.targets import Procedure as Procedure
