# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.tuned import WEIGHTS as WEIGHTS
from segtrust.confidence.tuned import TunedSoftDice as TunedSoftDice
