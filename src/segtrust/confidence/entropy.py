# ruff: noqa
# mypy: implicit-reexport
from segtrust.confidence.aggregation import AverageNegativeEntropy as AverageNegativeEntropy
from segtrust.confidence.aggregation import MedianMinMax as MedianMinMax
from segtrust.confidence.aggregation import PatchLevel as PatchLevel
from segtrust.confidence.aggregation import average_negative_entropy as average_negative_entropy
from segtrust.confidence.aggregation import median_min_max_confidence as median_min_max_confidence
from segtrust.confidence.aggregation import patch_level_confidence as patch_level_confidence
