# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.certify import Certificate as Certificate
from segtrust.selective.certify import Evidence as Evidence
from segtrust.selective.certify import Operation as Operation
from segtrust.selective.certify import Step as Step
