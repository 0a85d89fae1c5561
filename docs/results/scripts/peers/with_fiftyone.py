"""FiftyOne: the embedded cases as a data set that can be browsed, sorted by segtrust's confidence."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import fiftyone as fo
import numpy as np

import segtrust as st
from docs.results.scripts.peers import inputs
from docs.results.scripts.peers.tables import Table


def sample(case: str, p: Any, truth: Any) -> Any:
    """Make a sample with its image, both masks and the confidence."""
    made = fo.Sample(filepath=str(inputs.DATA / "images" / f"{case}.webp"))
    made["truth"] = fo.Segmentation(mask=truth.astype(np.uint8))
    made["prediction"] = fo.Segmentation(mask=(p >= 0.5).astype(np.uint8))
    made["sdc"] = st.soft_dice_confidence(p)
    made["segtrust_dice"] = st.dice(truth, p >= 0.5)
    return made


def largest(a: Any, b: Any) -> str:
    """Show the largest difference of two vectors."""
    return f"{np.max(np.abs(np.asarray(a) - np.asarray(b))):.1e}"


def evaluated(data: Any, p: Any, truth: Any) -> list[tuple[str, str]]:
    """Hold what FiftyOne stores with each sample against the Dice, and against the share of right pixels."""
    precision, recall, dice = (np.array(data.values(f"eval_{x}")) for x in ("precision", "recall", "dice"))
    harmonic = 2 * precision * recall / (precision + recall)
    right = ((p >= 0.5) == truth).mean(axis=(1, 2))
    so_far = np.cumsum(right) / np.arange(1, len(right) + 1)
    own = data.values("segtrust_dice")
    return [
        ("its precision and recall, harmonic mean, against Dice: largest difference", largest(harmonic, own)),
        ("its `compute_dice` against Dice: largest difference", largest(dice, own)),
        ("the same against the share of right pixels in all samples so far", largest(dice, so_far)),
    ]


def tables() -> list[Table]:
    """Make the set, let FiftyOne evaluate it, and say what it holds then."""
    p, truth, cases = inputs.maps("id")
    data = fo.Dataset("segtrust-neighbours", overwrite=True)
    begin = perf_counter()
    data.add_samples([sample(*each) for each in zip(cases, p, truth, strict=True)], progress=False)
    made = perf_counter()
    data.evaluate_segmentations(
        "prediction", gt_field="truth", eval_key="eval", compute_dice=True, progress=False
    )
    done = perf_counter()
    first, whole = (each.values("segtrust_dice") for each in (data.sort_by("sdc").limit(10), data))
    rows = [
        ("60 samples with image, two masks and two numbers", f"{made - begin:.1f} s"),
        ("`evaluate_segmentations`", f"{done - made:.1f} s"),
        *evaluated(data, p, truth),
        ("mean Dice of the ten least sure, of all", f"{np.mean(first):.3f}, {np.mean(whole):.3f}"),
    ]
    data.delete()
    return [Table("browsing", ("FiftyOne", "found"), tuple(rows))]
