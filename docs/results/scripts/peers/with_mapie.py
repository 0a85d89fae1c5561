"""MAPIE: its area for correct and wrong answers, and its thresholds with a promise."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from mapie.metrics.uncertainty import auarc
from mapie.risk_control import BinaryClassificationController
from mapie.risk_control._base_controller import ltt_procedure

import segtrust as st
from docs.results.scripts.peers import inputs, own
from docs.results.scripts.peers.inputs import Scores
from docs.results.scripts.peers.tables import Table
from docs.results.scripts.peers.timed import times

FAILURES, MEAN = "Dice below 0.85 in at most 0.25", "mean loss at most 0.12"


def aurc(given: Scores) -> float:
    """One minus MAPIE's area under the accuracy-rejection curve."""
    return 1.0 - auarc(1.0 - given.failed, given.confidence)


def both_classes(confidence: Any) -> Any:
    """Give the probabilities of "wrong" and "right", as a classifier would."""
    return np.column_stack([1.0 - confidence, confidence])


def controlled(given: Scores, reference: Any, target: st.Target, method: str) -> float | None:
    """Find the threshold at which the precision of "this one is right" is kept.

    Precision among those called right is one minus the failure rate of the accepted cases: the same promise.
    """
    controller = BinaryClassificationController(
        both_classes,
        risk="precision",
        target_level=1.0 - target.risk,
        confidence_level=1.0 - own.DELTA,
        list_predict_params=np.unique(own.PROCEDURE.candidates(reference, 0.5)),
        fwer_method=method,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller.calibrate(given.confidence, 1 - given.failed.astype(int))
    return controller.best_predict_param


def by_hand(given: Scores, reference: Any, target: st.Target) -> float | None:
    """Find a threshold for the mean loss of the accepted with a function that MAPIE keeps to itself.

    No public class of MAPIE has a loss that is continuous and counts accepted cases only; the test inside is
    told the mean losses and numbers of cases that the public classes would not work out.
    """
    candidates = np.unique(own.PROCEDURE.candidates(reference, 0.5))
    accepted = [given.confidence >= each for each in candidates]
    risks = np.array([[given.loss[each].mean() if each.any() else 1.0 for each in accepted]])
    counts = np.array([[max(int(each.sum()), 1) for each in accepted]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level = np.array([[target.risk]])
        (valid,), _ = ltt_procedure(risks, level, own.DELTA, counts, False, "fixed_sequence")
    return float(candidates[valid].min()) if valid else None


def promises() -> Table:
    """Give the same figures as segtrust's own, on the same draws."""
    fixed, holm = (partial(controlled, method=name) for name in ("fixed_sequence", "bonferroni_holm"))
    return own.promises(
        {
            ("segtrust", FAILURES): own.certified,
            ("MAPIE, `fixed_sequence`", FAILURES): fixed,
            ("MAPIE, `bonferroni_holm` (its default)", FAILURES): holm,
            ("segtrust", MEAN): own.certified,
            ("MAPIE, private `ltt_procedure`", MEAN): by_hand,
        }
    )


def tables() -> list[Table]:
    """Give all tables."""
    given, (cases, reference) = inputs.nuclei("ID", "sdc"), next(own.calibration_sets(1))
    many = inputs.population(100_000, seed=3)
    row = ("MAPIE, 1 − AUARC", f"{aurc(given):.4f}", "–", "–", "–")
    target = own.TARGETS[FAILURES]
    pairs = {
        "AURC, n = 100,000": (
            lambda: st.risk_coverage_curve(many.confidence, many.failed).aurc,
            lambda: aurc(many),
        ),
        "threshold for a failure rate, 300 cases": (
            lambda: own.certified(cases, reference, target),
            lambda: controlled(cases, reference, target, "fixed_sequence"),
        ),
    }
    return [
        Table("failures", own.FAILURE_HEADER, (row,)),
        own.ties({"MAPIE, 1 − AUARC": aurc}),
        promises(),
        times(pairs),
    ]
