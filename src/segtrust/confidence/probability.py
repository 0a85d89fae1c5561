# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.aggregation import AverageClassProbability as AverageClassProbability
from segtrust.confidence.aggregation import AverageMaxProbability as AverageMaxProbability
from segtrust.confidence.aggregation import average_class_probability as average_class_probability
from segtrust.confidence.aggregation import average_max_probability as average_max_probability
