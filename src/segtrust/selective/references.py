# ruff: noqa: F401, D100
# mypy: implicit-reexport
from segtrust.selective.vectors import check_reference as references_of
