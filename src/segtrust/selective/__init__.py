"""Confidences and losses of many cases: curves, areas, intervals, certified thresholds. Vectors only."""

from segtrust.selective.cells import ConformalCell, DiceIntervals
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.coverage import CoverageThreshold, threshold_for_coverage
from segtrust.selective.estimate import MeanDice, MeanDiceEstimator
from segtrust.selective.martingale import ExchangeabilityMartingale, MartingaleState
from segtrust.selective.recalibration import Recalibration
from segtrust.selective.seen import refuse_seen
from segtrust.selective.two_sample import DriftTest, drift_test

__all__ = [
    "ConformalCell",
    "ConformalDice",
    "CoverageThreshold",
    "DiceIntervals",
    "DriftTest",
    "ExchangeabilityMartingale",
    "MartingaleState",
    "MeanDice",
    "MeanDiceEstimator",
    "Recalibration",
    "drift_test",
    "refuse_seen",
    "threshold_for_coverage",
]
