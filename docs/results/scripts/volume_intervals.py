"""Coverage and width of volume intervals on hippocampi, for docs/results/intervals.md.

Run ``python -m docs.results.scripts.volume_intervals DATA``, where DATA holds
``hippocampus/labels/*.nii.gz`` of the Medical Segmentation Decathlon; a minute. The maps are simulated: each
label is blurred, and made larger or smaller, the more so the harder its case. Of every second case only each
third slice is used, as in a scan with thick slices.
"""

# ruff: noqa: T201

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from scipy.ndimage import gaussian_filter

import segtrust as st

SPLITS, LEVEL = 1000, 0.9


def hippocampi(folder: Path) -> tuple[Any, Any, Any]:
    """Return confidence, volume of the mask and true volume in ml of each case."""
    rows = []
    for number, path in enumerate(sorted(folder.glob("*.nii.gz"))):
        image = nib.load(path)
        truth, spacing_mm = np.asarray(image.dataobj) > 0, np.array(image.header.get_zooms()[:3], float)
        step = 1 if number % 2 else 3
        truth, spacing_mm = truth[..., ::step], spacing_mm * (1, 1, step)
        rng = np.random.default_rng(number)
        blur_mm = rng.uniform(0.4, 1.6)
        p = gaussian_filter(truth.astype(float), blur_mm / spacing_mm)
        p = np.clip(p, 0, 1) ** np.exp(rng.normal(0, 0.3 * blur_mm))
        volumes = (st.volume_ml(mask, spacing_mm) for mask in (p >= 0.5, truth))
        rows.append((st.soft_dice_confidence(p), *volumes))
    confidence, volume_ml, true_volume_ml = np.array(rows).T
    return confidence, volume_ml, true_volume_ml


def main() -> None:
    """Print coverage and width of the intervals of all, accepted and deferred cases."""
    confidence, volume_ml, true_volume_ml = hippocampi(Path(sys.argv[1]) / "hippocampus" / "labels")
    error = volume_ml - true_volume_ml
    print(f"{error.size} cases, {true_volume_ml.min():.2f} to {true_volume_ml.max():.2f} ml,", end=" ")
    print(f"mean error {error.mean():.3f} ml, mean absolute error {np.abs(error).mean():.3f} ml")
    threshold = float(np.median(confidence))
    ways = {
        "all together": st.ConformalVolume(LEVEL),
        "per decision": st.ConformalVolume(LEVEL, threshold),
        "all together, same margins in ml": st.ConformalVolume(LEVEL, floor_ml=1e6),
        "per decision, same margins in ml": st.ConformalVolume(LEVEL, threshold, floor_ml=1e6),
    }
    rows: dict[str, list[Any]] = {name: [] for name in ways}
    for seed in range(SPLITS):
        known, new = np.array_split(np.random.default_rng(seed).permutation(error.size), 2)
        accepted = confidence[new] >= threshold
        for name, unfit in ways.items():
            bounds = unfit.fit(confidence[known], volume_ml[known], true_volume_ml[known])
            found = bounds.interval(confidence[new], volume_ml[new])
            inside = (found.lower <= true_volume_ml[new]) & (true_volume_ml[new] <= found.upper)
            parts = (slice(None), accepted, ~accepted)
            rows[name].append(
                [values[part].mean() for part in parts for values in (inside, found.upper - found.lower)]
            )
    print("\n| intervals at 90 % | all | width (ml) | accepted | width | deferred | width |")
    print("|---|---|---|---|---|---|---|")
    for name, measured in rows.items():
        print(f"| {name} |", " | ".join(f"{value:.3f}" for value in np.mean(measured, axis=0)), "|")


if __name__ == "__main__":
    main()
