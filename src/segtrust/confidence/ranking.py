# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.tuned import rank_correlations as rank_correlations
from segtrust.confidence.tuned import ranking_areas as ranking_areas
