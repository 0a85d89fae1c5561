# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.targets import FEWEST_REFERENCES as FEWEST_REFERENCES
from segtrust.selective.targets import Procedure as Procedure
