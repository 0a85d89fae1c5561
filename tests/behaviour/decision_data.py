"""Small inputs that are the same on every machine, and how the tests of decisions read what was written.

Maps are made of sums, products, quotients and square roots and rounded to multiples of 1/1024, so that no
processor and no mathematical library changes a bit of them. Confidences in tables have six decimals.
"""

import csv
import json

import numpy as np

import segtrust as st

SHAPE = (24, 30)
MODEL = "fold 0"


def make_case(seed, *, blur=(0.3, 3.0), shift=5.0):
    """Return a map and its ground truth: a disc that the model sees shifted, blurred and noisy."""
    rng = np.random.default_rng(seed)
    radius, softness, moved = rng.uniform(3, 7), rng.uniform(*blur), rng.uniform(0, shift)
    rows, columns = np.ogrid[: SHAPE[0], : SHAPE[1]]
    truth = (rows - 12.0) ** 2 + (columns - 15.0) ** 2 <= radius**2
    distance = np.sqrt((rows - 12.0 - moved) ** 2 + (columns - 15.0) ** 2)
    evidence = (radius - distance) / softness + rng.uniform(-0.5, 0.5, SHAPE)
    p = 0.5 + 0.5 * evidence / (1.0 + np.abs(evidence))
    return (np.round(1024 * p) / 1024).astype(np.float32), truth


def write_cases(folder, count, *, first=0, truth_folder=None, empty_masks=(), empty_truth=(), **options):
    """Write maps, and their ground truth into a second folder; return the folder of the maps."""
    for path in (folder, truth_folder):
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        p, truth = make_case(first + number, **options)
        if number in empty_masks:
            p = p / 4
        if number in empty_truth:
            truth = np.zeros_like(truth)
        np.save(folder / f"case_{number:03d}.npy", p)
        if truth_folder is not None:
            np.save(truth_folder / f"case_{number:03d}.npy", truth.astype(np.uint8))
    return folder


def score_rows(count, *, structure="foreground", seed=0, **more):
    """Return rows of a score table whose confidences know something of the Dice, all of them different."""
    rng = np.random.default_rng(seed)
    confidence = rng.permutation(count * 20)[:count] / (count * 20)
    dice = np.clip(0.35 + 0.65 * confidence + rng.uniform(-0.15, 0.15, count), 0, 1)
    pixels = rng.integers(5, 200, count)
    return [
        {
            "case": f"case_{number:03d}",
            "structure": structure,
            "group": f"patient_{number // 2:03d}",
            "sdc": round(float(confidence[number]), 6),
            "k": int(pixels[number]),
            "mask": "threshold",
            "dice": round(float(dice[number]), 6),
            **more,
        }
        for number in range(count)
    ]


def rows_of_maps(count, *, first=0):
    """Return rows of a score table of maps of `make_case`, with confidences of six decimals."""
    rows = []
    for number in range(count):
        p, truth = make_case(first + number)
        dice = st.dice(truth, p >= 0.5)
        row = {
            "case": f"known_{number:03d}",
            "structure": "foreground",
            "group": f"patient_{number // 2:03d}",
        }
        row |= {"sdc": round(float(st.soft_dice_confidence(p)), 6), "k": int((p >= 0.5).sum())}
        rows.append({**row, "mask": "threshold", "dice": round(float(dice), 6)})
    return rows


SETTINGS = {
    "format": "segtrust-scores-2",
    "estimators": {"sdc": {"empty": "paper"}},
    "read": {"mask": "delivered", "threshold": 0.5, "channel": None, "labels": None, "decode": "threshold"},
    "empty": "paper",
}
"""What `segtrust score` writes beside its table; nothing can be certified without it."""


def write_rows(path, rows, settings=None):
    """Write a score table as CSV; with settings, as `segtrust score` keeps them beside the table."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    if settings is not None:
        beside = path.with_name(f"{path.name}.about.json")
        beside.write_text(json.dumps({**settings, "rows": len(rows)}))
    return path
