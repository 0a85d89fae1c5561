"""Coverage and width of Dice intervals over random splits of real maps, for docs/results/intervals.md.

Run ``python -m docs.results.scripts.interval_widths DATA [SET ...]``, where DATA holds
``polyp/<set>/{masks,predictions}`` and ``busi-predictions/{masks,BCE_plain,dice_plain}``, 8-bit PNG files,
and SET is one of polyps-id, polyps-ood, BCE_plain and dice_plain (all by default); five minutes per set. With
crepes 0.9.1 in the environment its intervals are measured on the same splits; without it those rows are left
out.
"""

# ruff: noqa: T201

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import segtrust as st
from docs.results.scripts.watch_results import INSIDE, OUTSIDE, cases_of, polyps

SPLITS, LEVEL = 1000, 0.9
SETS = ("polyps-id", "polyps-ood", "BCE_plain", "dice_plain")
Ends = tuple[Any, Any]
Method = Callable[[Any, Any, Any, float | None], Ends]


def by_segtrust(confidence: Any, dice: Any, new: Any, threshold: float | None, **options: Any) -> Ends:
    """Return the ends of segtrust's intervals for new confidences."""
    found = st.ConformalDice(LEVEL, threshold, seed=0, **options).fit(confidence, dice).interval(new)
    return found.lower, found.upper


def by_crepes(
    confidence: Any, dice: Any, new: Any, threshold: float | None, *, learned: bool, each_end: bool
) -> Ends:
    """Return the ends of crepes's intervals: normalised, and Mondrian if there is a threshold.

    With ``learned``, half of the cases train an isotonic regression and crepes's difficulty estimator (25
    nearest neighbours, by their residuals); without, the confidence is the prediction and 1 - confidence +
    0.02 the difficulty. With ``each_end``, a predictive system bounds each end at 5 %; without, a regressor
    has one margin for both ends, exceeded in 10 %.
    """
    from crepes import ConformalPredictiveSystem, ConformalRegressor

    warnings.simplefilter("ignore")  # crepes's, of cells that are too small
    predict, difficulty = (lambda c: c), (lambda c: 1.0 - c + 0.02)
    if learned:
        predict, difficulty = _learn(confidence[::2], dice[::2])
        confidence, dice = confidence[1::2], dice[1::2]
    fitted = (ConformalPredictiveSystem if each_end else ConformalRegressor)().fit(
        dice - predict(confidence),
        sigmas=difficulty(confidence),
        bins=None if threshold is None else (confidence >= threshold).astype(int),
    )
    bins = None if threshold is None else (new >= threshold).astype(int)
    ends = fitted.predict_int(
        predict(new), sigmas=difficulty(new), bins=bins, confidence=LEVEL, y_min=0.0, y_max=1.0
    )
    return ends[:, 0], ends[:, 1]


def _learn(confidence: Any, dice: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    from crepes.extras import DifficultyEstimator
    from sklearn.isotonic import IsotonicRegression

    curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(confidence, dice)
    residuals = dice - curve.predict(confidence)
    difficulty = DifficultyEstimator().fit(
        confidence[:, None], residuals=residuals, k=min(25, dice.size), scaler=True
    )
    return curve.predict, lambda c: difficulty.apply(c[:, None])


DEFAULT, ONE_MARGIN = "**default** (corrected, scaled by confidence)", "crepes, our scale, 10 % at both"
METHODS: dict[str, Method] = {
    "segtrust 0.1.0 (isotonic, no scale)": partial(by_segtrust, predictor="isotonic", scale="none"),
    "isotonic, scaled by confidence": partial(by_segtrust, predictor="isotonic"),
    DEFAULT: by_segtrust,
    "crepes, own difficulty, 5 % at each end": partial(by_crepes, learned=True, each_end=True),
    "crepes, own difficulty, 10 % at both": partial(by_crepes, learned=True, each_end=False),
    "crepes, our scale, 5 % at each end": partial(by_crepes, learned=False, each_end=True),
    ONE_MARGIN: partial(by_crepes, learned=False, each_end=False),
}


def measure(confidence: Any, dice: Any, method: Method, threshold: float | None) -> Any:
    """Return coverage and mean width of all, accepted and deferred cases, over halves drawn at random."""
    median, rows = np.median(confidence), []
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(confidence.size)
        known, new = np.array_split(order, 2)
        lower, upper = method(confidence[known], dice[known], confidence[new], threshold)
        inside, accepted = (lower <= dice[new]) & (dice[new] <= upper), confidence[new] >= median
        rows.append(
            [
                values[chosen].mean()
                for chosen in (slice(None), accepted, ~accepted)
                for values in (inside, upper - lower)
            ]
        )
    return np.mean(rows, axis=0)


def measure_misses(confidence: Any, dice: Any, method: Method) -> Any:
    """Return the shares of cases below and above their intervals, ranked together, over the same halves."""
    rows = []
    for seed in range(SPLITS):
        known, new = np.array_split(np.random.default_rng(seed).permutation(confidence.size), 2)
        lower, upper = method(confidence[known], dice[known], confidence[new], None)
        rows.append(((dice[new] < lower).mean(), (dice[new] > upper).mean()))
    return np.mean(rows, axis=0)


def read_set(name: str, root: Path) -> tuple[Any, Any]:
    """Return the confidences (SDC) and the Dice of a set."""
    if name.startswith("polyps"):
        return polyps(root / "polyp", INSIDE if name == "polyps-id" else OUTSIDE)
    folder = root / "busi-predictions"
    cases = list(cases_of(folder / name, folder / "masks"))
    confidence = np.array([st.SoftDice().score(case) for case in cases])
    return confidence, np.array(
        [st.dice(case.truth, case.prediction.probabilities >= 127.5) for case in cases]
    )


def main() -> None:
    """Print one table per set."""
    root, *names = sys.argv[1:]
    for name in names or SETS:
        confidence, dice = read_set(name, Path(root))
        print(f"\n{name}: {dice.size} cases, mean SDC {confidence.mean():.3f}, mean Dice {dice.mean():.3f}\n")
        print("| intervals at 90 % | ranked | all | width | accepted | width | deferred | width |")
        print("|---|---|---|---|---|---|---|---|")
        for ranked, threshold in (("together", None), ("per decision", float(np.median(confidence)))):
            for label, method in METHODS.items():
                if "crepes" in label and find_spec("crepes") is None:
                    continue
                row = measure(confidence, dice, method, threshold)
                print(f"| {label} | {ranked} |", " | ".join(f"{value:.3f}" for value in row), "|", flush=True)
                if threshold is None and label in (DEFAULT, ONE_MARGIN):
                    below, above = measure_misses(confidence, dice, method)
                    print(f"<!-- below the interval {below:.3f}, above it {above:.3f} -->", flush=True)


if __name__ == "__main__":
    main()
