"""Code as users write it: checked by mypy and pyright (`make lint`), never run.

``assert_type`` fails where a result is ``Any`` or another type than a user would expect.
"""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

import segtrust as st


def score_arrays(p: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> None:
    assert_type(st.soft_dice_confidence(p), float)
    assert_type(st.ideal_dice_confidence(p, mask, empty="agree", where=mask), float)
    assert_type(st.soft_dice_confidence([0.9, 0.2]), float)
    assert_type(st.average_negative_entropy(p), float)
    assert_type(st.expected_iou(p, mask), float)
    assert_type(st.dice(mask, mask), float)
    assert_type(st.soft_dice_loss(p, mask), float)
    assert_type(st.SoftDice()(p), float)
    assert_type(st.PatchLevel(5)(p, mask, where=mask), float)
    assert_type(st.score_classes(p, {0: "background", 1: "liver"}), st.ClassScores)
    assert_type(st.dice_bounds(p).relative_error, float)
    assert_type(st.score(p, mask, "sdc"), dict[str, float])
    assert_type(st.score(p, estimators={"small": st.PatchLevel(5), "large": "pla"}), dict[str, float])
    assert_type(st.score_batch(p, estimators=["sdc"]), dict[str, npt.NDArray[np.float64]])
    assert_type(st.fuse([p, p], "mean-logit", weights=[1.0, 2.0]), npt.NDArray[np.floating[Any]])
    assert_type(st.TemperatureScaling(2.0).apply(p), npt.NDArray[np.floating[Any]])
    assert_type(st.score_classes(p, ["background", "liver"]), st.ClassScores)
    assert_type(st.score_classes(p, ["background", "liver"], batch=True), st.BatchClassScores)


def score_tensors(p: torch.Tensor, mask: torch.Tensor) -> None:
    assert_type(st.soft_dice_confidence(p), torch.Tensor)
    assert_type(st.ideal_dice_confidence(p, mask), torch.Tensor)
    assert_type(st.SoftDice()(p, mask), torch.Tensor)
    assert_type(st.dice(mask, mask), torch.Tensor)
    assert_type(st.soft_dice_loss(p, mask), torch.Tensor)
    assert_type(st.score(p, mask), dict[str, torch.Tensor])
    assert_type(st.fuse([p, p]), torch.Tensor)
    assert_type(st.PlattScaling(1.0, 0.0).apply(p), torch.Tensor)


def decide(path: Path, p: npt.NDArray[np.float32], confidence: list[float], loss: list[float]) -> st.Decision:
    column = pd.Series(confidence)
    curve = st.risk_coverage_curve(confidence, dice=[1.0 - value for value in loss])
    assert_type(curve.aurc, float)
    assert_type(curve.area("plugin"), float)
    assert_type(curve.coverages, npt.NDArray[np.float64])
    certificate = st.certify_threshold(confidence, loss, target_risk=0.1)
    assert_type(certificate, st.Certificate)
    policy = st.Policy.from_certificate(certificate, st.Scoring("sdc"))
    policy.save(path)
    assert_type(st.Policy.load(path), st.Policy)
    assert_type(policy.estimator(), st.ConfidenceEstimator)
    assert_type(policy.decide_map(p), st.MapDecision)
    assert_type(policy.decide(0.9), st.Decision)
    assert_type(policy.decide(np.float32(0.9)), st.Decision)
    assert_type(
        st.ConformalDice().fit(confidence, dice=loss).interval(confidence).lower, npt.NDArray[np.float64]
    )
    assert_type(policy.decide(confidence), npt.NDArray[np.str_])
    assert_type(policy.decide(p.ravel()), npt.NDArray[np.str_])
    assert_type(policy.decide(column), pd.Series)
    assert_type(st.drift_test(reference=confidence, new=confidence).alarm, bool)
    return policy.decide_map(p).decision


def wrong(p: npt.NDArray[np.float32]) -> None:
    """Both checkers reject what cannot work: an unused ignore is an error, too."""
    st.soft_dice_confidence(p, empty="papr")  # type: ignore[call-overload]  # pyright: ignore
    st.fuse([p], "mean-odds")  # type: ignore[call-overload]  # pyright: ignore
    st.Procedure(p_value="bets")  # type: ignore[arg-type]  # pyright: ignore
    st.Scoring("sdc", decode="argmax")  # type: ignore[arg-type]  # pyright: ignore
    st.TemperatureScaling(ends="cut")  # type: ignore[arg-type]  # pyright: ignore
    st.bootstrap_interval([0.5], [0.4], "auroc")  # type: ignore[arg-type]  # pyright: ignore
    st.drift_test(reference=p, new=p, statistic="t")  # type: ignore[arg-type]  # pyright: ignore
    st.drift_test([0.5], [0.4])  # type: ignore[call-arg]  # pyright: ignore


def catch(path: str) -> str:
    try:
        return str(st.Policy.load(path))
    except st.errors.PolicyError as error:
        return str(error)
