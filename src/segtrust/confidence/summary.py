# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.base import Needs as Needs
from segtrust.confidence.base import Summary as Summary
from segtrust.confidence.base import summarise as summarise
