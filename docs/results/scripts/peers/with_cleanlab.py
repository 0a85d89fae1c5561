"""cleanlab: finding bad labels, which is its job, and its score turned into a confidence, which is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from cleanlab.segmentation.rank import get_label_quality_scores

import segtrust as st
from docs.results.scripts.peers import inputs
from docs.results.scripts.peers.tables import Table
from docs.results.scripts.peers.timed import times

SPOILT = slice(None, None, 5)
"""Labels that are spoilt: every fifth."""


def quality(labels: Any, p: Any, method: str = "softmin") -> Any:
    """Give cleanlab's quality of each label."""
    both = np.stack([1.0 - p, p], axis=1)
    scores, _ = get_label_quality_scores(
        labels.astype(int), both, method=method, verbose=False, n_jobs=1, downsample=1
    )
    return scores


def spoilt(truth: Any) -> dict[str, Any]:
    """Give the labels with every fifth one spoilt, in three ways."""
    half, moved, lost = truth.copy(), truth.copy(), truth.copy()
    half[SPOILT, truth.shape[1] // 2 :] = False
    moved[SPOILT] = np.roll(truth[SPOILT], 8, axis=2)
    lost[SPOILT, :64, :64] = False
    return {"lower half missing": half, "moved by 8 pixels": moved, "a corner of 64 × 64 missing": lost}


def found(p: Any, truth: Any) -> Table:
    """Give the AUROC with which spoilt labels are found: by cleanlab, and by the Dice to the prediction."""
    masks, rows = p >= 0.5, []
    is_spoilt = np.zeros(len(p))
    is_spoilt[SPOILT] = 1.0
    for name, labels in spoilt(truth).items():
        scores = {
            "cleanlab, `softmin`": quality(labels, p),
            "cleanlab, `num_pixel_issues`": quality(labels, p, "num_pixel_issues"),
            "Dice": np.array([st.dice(label, mask) for label, mask in zip(labels, masks, strict=True)]),
        }
        areas = [st.failure_detection(each, is_spoilt, cutoff=0.5).auroc for each in scores.values()]
        rows.append((name, *(f"{area:.3f}" for area in areas)))
    header = ("spoilt labels", "cleanlab, `softmin`", "cleanlab, `num_pixel_issues`", "`segtrust.dice`")
    return Table("labels", header, tuple(rows))


def confidence(p: Any, truth: Any) -> Table:
    """Give the AURC of cleanlab's score of the model's own masks, beside the SDC's."""
    loss = np.array([1.0 - st.dice(t, one >= 0.5) for t, one in zip(truth, p, strict=True)])
    scores = {
        "soft Dice confidence (segtrust)": np.array([st.soft_dice_confidence(one) for one in p]),
        "cleanlab's `softmin` of the model's own mask": quality(p >= 0.5, p),
    }
    rows = [(name, f"{st.risk_coverage_curve(c, loss).aurc:.4f}") for name, c in scores.items()]
    return Table("as confidence", ("score", "AURC"), tuple(rows))


def tables() -> list[Table]:
    """Give all tables."""
    p, truth, _ = inputs.maps("id")
    masks = p >= 0.5
    pair = (
        lambda: [st.soft_dice_confidence(one) for one in p],
        lambda: quality(masks, p),
    )
    return [found(p, truth), confidence(p, truth), times({"one score each for 60 maps": pair})]
