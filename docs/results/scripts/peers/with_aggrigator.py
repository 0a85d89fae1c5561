"""aggrigator: aggregations of entropy maps, those that segtrust has too and those that it has not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from aggrigator.methods import AggregationMethods as Methods
from aggrigator.uncertainty_maps import UncertaintyMap

import segtrust as st
from docs.results.scripts.peers import inputs
from docs.results.scripts.peers.tables import Table
from docs.results.scripts.peers.timed import times

SIZE, TAU = 10, 0.3


def entropy(p: Any) -> Any:
    """Entropy in bits, 0 at 0 and 1; aggrigator takes maps of uncertainty, not of probability."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)), nan=0.0)


SHARED: dict[str, tuple[Callable[[Any], float], Callable[[Any], float]]] = {
    "mean entropy": (lambda p: -st.average_negative_entropy(p), Methods.mean),
    "largest patch of 10 × 10": (
        lambda p: -st.patch_level_confidence(p, size=SIZE) / SIZE**2,  # a sum here, a mean there
        lambda u: Methods.patch_aggregation(u, SIZE),
    ),
    "mean above 0.3": (
        lambda p: -st.threshold_level_confidence(p, tau=TAU),
        lambda u: Methods.above_threshold_mean(u, TAU),
    ),
}

ALONE: dict[str, Callable[[Any], float]] = {
    "sum": Methods.sum,
    "max": Methods.max,
    "0.95 quantile": lambda u: Methods.quantile(u, 0.95),
    "standard deviation": Methods.std_dev,
    "mean above the 0.95 quantile": lambda u: Methods.above_quantile_mean(u, 0.95),
    "mean above the quantile of the foreground's share": Methods.above_quantile_mean_fg_ratio,
    "Moran's I": Methods.morans_I,
    "Geary's C": Methods.gearys_C,
    "mean inside the predicted class": lambda u: Methods.class_mean(u, 1),
    "mean on its boundary": lambda u: Methods.class_boundary_mean(u, {"id": 1}),
    "mean of class means, background too": lambda u: Methods.class_mean_w_equal_weights(u, True),
}


def agreement(p: Any, us: list[Any]) -> Table:
    """Give the largest difference of each shared aggregation."""
    rows = []
    for name, (own, other) in SHARED.items():
        differences = [abs(own(one) - other(u)) for one, u in zip(p, us, strict=True)]
        rows.append((name, f"{max(differences):.1e}"))
    return Table("aggregations", ("aggregation", "largest difference"), tuple(rows))


def ranking(p: Any, us: list[Any], loss: Any) -> Table:
    """Give the AURC of each aggregation as a confidence, and whether it can be told from the SDC's."""
    sdc = np.array([st.soft_dice_confidence(one) for one in p])
    others = {name: other for name, (_, other) in SHARED.items()} | ALONE
    confidences = {name: np.array([-other(u) for u in us]) for name, other in others.items()}
    found = {name: st.risk_coverage_curve(c, loss).aurc for name, c in confidences.items()}
    rows = [("soft Dice confidence (segtrust)", f"{st.risk_coverage_curve(sdc, loss).aurc:.4f}", "")]
    plan = st.Bootstrap(method="percentile", seed=0)
    for name, area in sorted(found.items(), key=lambda each: each[1]):
        told = st.compare_estimators(confidences[name], sdc, loss, bootstrap=plan)
        rows.append((name, f"{area:.4f}", f"{told.difference:+.4f} [{told.low:+.4f}, {told.high:+.4f}]"))
    return Table("ranking", ("aggregation", "AURC", "less the SDC's"), tuple(rows))


def timed(p: Any) -> Table:
    """Give the times for one map, with the entropy at hand and from the probabilities."""
    bare, pairs = UncertaintyMap(entropy(p)), {}
    for name, (own, other) in SHARED.items():
        pairs[f"{name}, neighbour has the entropies"] = (partial(own, p), partial(other, bare))
        pairs[f"{name}, from probabilities"] = (
            partial(own, p),
            lambda other=other: other(UncertaintyMap(entropy(p))),
        )
    return times(pairs)


def tables() -> list[Table]:
    """Give all tables."""
    p, truth, _ = inputs.maps("id")
    us = [UncertaintyMap(entropy(one), mask=(one >= 0.5).astype(int), name="map") for one in p]
    loss = np.array([1.0 - st.dice(t, one >= 0.5) for t, one in zip(truth, p, strict=True)])
    return [agreement(p, us), ranking(p, us, loss), timed(p[0])]
