"""torch-uncertainty: its areas and operating points, for correct and wrong answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import segtrust as st
from docs.results.scripts.peers import inputs, own, vision  # noqa: F401  vision before torch_uncertainty
from docs.results.scripts.peers.inputs import Scores
from docs.results.scripts.peers.tables import Table
from docs.results.scripts.peers.timed import times

from torch_uncertainty.metrics.classification import AUGRC, AURC, CovAtxRisk, RiskAtxCov  # isort: skip


def as_answers(given: Scores) -> tuple[Any, Any]:
    """Give probabilities whose largest one ranks as the confidence does, and labels that make failures wrong.

    The metrics take the confidence from the largest class probability and the loss from its class, so a
    score that is neither has to be dressed up as a classifier's answer: in (0.5, 1), for class 0.
    """
    sure = torch.from_numpy(0.5 + given.confidence / 2.0)
    return torch.stack([sure, 1.0 - sure], dim=1), torch.from_numpy(given.failed).long()


def value(metric: Any, given: Scores) -> float:
    """Give what a metric says of cases."""
    metric.update(*as_answers(given))
    return float(metric.compute())


def aurc(given: Scores) -> float:
    """AURC."""
    return value(AURC(), given)


def own_aurc(given: Scores) -> Callable[[], float]:
    """AURC of segtrust, to be timed."""
    return lambda: st.risk_coverage_curve(given.confidence, given.failed).aurc


def tables() -> list[Table]:
    """Give all tables."""
    given, many = inputs.nuclei("ID", "sdc"), inputs.population(100_000, seed=3)
    metrics = (AURC(), AUGRC(), CovAtxRisk(0.05), RiskAtxCov(0.8))
    row = ("torch-uncertainty", *(f"{value(metric, given):.4f}" for metric in metrics))
    pairs = {
        "AURC, n = 81": (own_aurc(given), lambda: aurc(given)),
        "AURC, n = 100,000": (own_aurc(many), lambda: aurc(many)),
    }
    return [
        Table("failures", own.FAILURE_HEADER, (row,)),
        own.ties({"torch-uncertainty": aurc}),
        times(pairs),
    ]
