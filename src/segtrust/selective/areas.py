# ruff: noqa: F401, D100
# mypy: implicit-reexport
from segtrust.selective.curve import CONVENTIONS
