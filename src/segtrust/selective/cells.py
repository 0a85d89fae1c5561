# ruff: noqa: F401, D100, I001, RUF100
from segtrust.selective.conformal import ConformalCell as ConformalCell
from segtrust.selective.conformal import DiceIntervals as DiceIntervals
