"""What every neighbour is given: the embedded score table, a table full of ties, a population, the maps."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import segtrust as st

DATA = Path(st.__file__).parent / "demo" / "data"
FAILED_BELOW = 0.85
"""A Dice below which a case counts as failed, as in the demo."""


@dataclass(frozen=True)
class Scores:
    """Confidence and loss of cases.

    Attributes
    ----------
    confidence
        Higher is surer.
    loss
        One minus Dice.
    """

    confidence: Any
    loss: Any

    @property
    def failed(self) -> Any:
        """Loss of 0 or 1: whether the Dice is below the cut-off."""
        return (self.loss > 1.0 - FAILED_BELOW) * 1.0

    def taken(self, order: Any) -> Scores:
        """Give the same cases in another order, or some of them."""
        return Scores(self.confidence[order], self.loss[order])


def nuclei(set_name: str, estimator: str) -> Scores:
    """Read the embedded table of all test cases of a set."""
    with (DATA / "scores.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] == set_name]
    confidence, dice = (np.array([float(row[name]) for row in rows]) for name in (estimator, "dice"))
    return Scores(confidence, 1.0 - dice)


def tied(n: int = 100) -> Scores:
    """Draw cases whose confidences were rounded to one decimal, as a table for people is."""
    drawn = population(n, seed=7)
    return Scores(drawn.confidence.round(1), drawn.loss)


def population(n: int, seed: int) -> Scores:
    """Draw losses of which a fifth are bad, and a confidence in (0, 1) that knows them up to noise."""
    rng = np.random.default_rng(seed)
    loss = np.where(rng.random(n) < 0.8, rng.beta(2, 18, n), rng.beta(4, 4, n))
    return Scores(1.0 / (1.0 + np.exp(4.0 * loss - 2.0 + 0.6 * rng.standard_normal(n))), loss)


def maps(set_name: str = "id") -> tuple[Any, Any, list[str]]:
    """Read probabilities in float64, truths and ids of the embedded maps of a set; needs Pillow."""
    from segtrust.io import ReadOptions, find_cases, load_case

    cases = find_cases([DATA / f"{set_name}.csv"]).cases
    loaded = [next(iter(load_case(case, ReadOptions()))) for case in cases]
    p = np.stack([each.prediction.probabilities for each in loaded]) / 255.0
    return p, np.stack([each.truth for each in loaded]).astype(bool), [case.id for case in cases]
