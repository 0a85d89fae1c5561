"""The work on one case: from its files to the rows of the score table."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from segtrust.calibration.scaling import Scaling
from segtrust.confidence.base import ConfidenceEstimator
from segtrust.confidence.score import assess_map
from segtrust.engine.outcomes import Failure, Outcome, Row
from segtrust.errors import ProbabilityRangeError, SegtrustError
from segtrust.io.cases import CaseFiles
from segtrust.io.digests import Digest, digest_of
from segtrust.io.loading import LoadedCase, ReadOptions, load_case
from segtrust.io.places import Place
from segtrust.kernels.masks import count_differing, thresholded
from segtrust.kernels.opening import open_map
from segtrust.kernels.tiles import is_chunked, read_tile, tiles_of
from segtrust.maps import EmptyPolicy, Prediction
from segtrust.risks import Overlap, overlap
from segtrust.saved import plain

__all__ = ["OfSets", "ScoreJob", "without_rounding"]

OfSets = Mapping[tuple[str, str], tuple[ConfidenceEstimator, ...]]
"""Estimators by set and structure."""
_ROUNDING = 1e-6


@dataclass(frozen=True)
class ScoreJob:
    """What is done with each case; called with its files it gives the outcome, and never raises.

    Attributes
    ----------
    estimators
        With all that they have learned.
    read
        What is read of a case.
    scaling
        A recalibration of the maps, or ``None``; the mask is that of the map as it was.
    with_truth
        Whether the Dice and the other overlaps are wanted, of cases that have a truth.
    digest
        Fingerprint of the map's file.
    empty
        What an empty mask is worth in the Dice.
    of_sets
        More estimators, which have learned from a set and score its cases alone.
    """

    estimators: tuple[ConfidenceEstimator, ...]
    read: ReadOptions = field(default_factory=ReadOptions)
    scaling: Scaling | None = None
    with_truth: bool = True
    digest: Digest = "quick"
    empty: EmptyPolicy = EmptyPolicy.PAPER
    of_sets: OfSets = field(default_factory=dict)

    def __call__(self, files: CaseFiles) -> Outcome:
        """Score a case."""
        begin = time.perf_counter()
        try:
            wanted = files if self.with_truth else files.lacking("truth")
            rows = [self._row(loaded, files) for loaded in load_case(wanted, self.read)]
            about = {"digest": digest_of(files.probabilities.path, self.digest)}
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            return Outcome(files.id, failure=_failure(files, error))
        seconds = {"seconds": time.perf_counter() - begin}
        return Outcome(files.id, tuple(row | about | seconds for row in rows))

    def learned_from(self, name: str) -> list[Row]:
        """Say in plain values what estimators have learned from a set: its rows depend on it."""
        return [
            {
                "set": name,
                "structure": structure,
                **{each.name: plain(each.parameters, each.name) for each in fitted},
            }
            for (of_set, structure), fitted in self.of_sets.items()
            if of_set == name
        ]

    def _row(self, loaded: LoadedCase, files: CaseFiles) -> Row:
        """Score a map; one that is beyond 0 or 1 by rounding alone is cut off there."""
        try:
            return self._plain_row(loaded, files)
        except ProbabilityRangeError:
            cut = without_rounding(loaded.prediction)
            if cut is None:
                raise
        return self._plain_row(replace(loaded, prediction=cut), files)

    def _plain_row(self, loaded: LoadedCase, files: CaseFiles) -> Row:
        prediction = self._calibrated(loaded.prediction)
        source = open_map(
            prediction.probabilities,
            prediction.mask,
            threshold=prediction.threshold,
            source=str(files.probabilities),
        )
        found = assess_map(source, (*self.estimators, *self.of_sets.get((files.set, loaded.structure), ())))
        bounds = found.bounds
        row = {
            "case": files.id,
            "structure": loaded.structure,
            "set": files.set,
            "group": files.group,
            "split": files.split,
            **{name: float(value) for name, value in found.scores.items()},
            "k": int(bounds.k),
            **{name: float(getattr(bounds, name)) for name in ("mu", "lam", "s", "lower", "upper")},
            "relative_error": float(bounds.relative_error),
            "foreground_ratio": float(found.foreground_ratio),
            "mask": "threshold" if prediction.mask is None else "delivered",
            "mask_difference": _difference(loaded),
            "shape": "×".join(map(str, prediction.shape)),
            "spacing_mm": "×".join(f"{each:g}" for each in prediction.spacing_mm or ()),
            "file": str(files.probabilities),
            **{f"{role}_file": str(place or "") for role, place in _beside(files).items()},
        }
        return row | ({} if loaded.truth is None else self._overlaps(prediction, loaded.truth))

    def _calibrated(self, prediction: Prediction) -> Prediction:
        return prediction if self.scaling is None else self.scaling.calibrate(prediction)

    def _overlaps(self, prediction: Prediction, truth: Any) -> Row:
        """Compare the mask that was scored with the truth."""
        found = _overlap(prediction, truth)
        truth_pixels = found.true_positives + found.false_negatives
        return {
            "dice": float(found.tversky(0.5, 0.5, self.empty)),
            "iou": float(found.tversky(1.0, 1.0, self.empty)),
            "truth_ratio": truth_pixels / math.prod(truth.shape),
        }


def _beside(files: CaseFiles) -> Mapping[str, Place | None]:
    """Give the other files of a case, for who wants to look at it."""
    return {"mask": files.mask, "truth": files.truth, "image": files.image}


def _overlap(prediction: Prediction, truth: Any) -> Overlap:
    """Count where mask and truth agree and differ; piece by piece where the map is read so."""
    p, mask = prediction.probabilities, prediction.mask
    if not is_chunked(p):
        return overlap(np.asarray(truth), _mask_in(prediction, p, mask))
    found = [
        overlap(read_tile(truth, tile), _mask_in(prediction, read_tile(p, tile), read_tile(mask, tile)))
        for tile in tiles_of(p)
    ]
    return Overlap(
        sum(each.true_positives for each in found),
        sum(each.false_positives for each in found),
        sum(each.false_negatives for each in found),
    )


def _mask_in(prediction: Prediction, p: Any, mask: Any) -> Any:
    """Give the mask that is scored, of a map or of a piece of one."""
    if mask is not None:
        return np.asarray(mask)
    return thresholded(np.asarray(p), threshold=prediction.threshold, source=prediction.source)


def without_rounding(prediction: Prediction) -> Prediction | None:
    """Cut a map off at 0 and 1 that leaves them by no more than single floats round; ``None`` for another."""
    p = prediction.probabilities
    if not isinstance(p, np.ndarray) or p.dtype.kind != "f":
        return None
    if not (p.min() >= -_ROUNDING and p.max() <= 1 + _ROUNDING):
        return None
    return replace(prediction, probabilities=np.clip(p, 0, 1))


def _difference(loaded: LoadedCase) -> float | None:
    """Share of the pixels in which the delivered mask is not the map cut at the threshold."""
    prediction = loaded.prediction
    if loaded.delivered is None:
        return None
    count = count_differing(
        prediction.probabilities, loaded.delivered, threshold=prediction.threshold, source=prediction.source
    )
    return count / float(math.prod(loaded.delivered.shape))


def _failure(files: CaseFiles, error: Exception) -> Failure:
    """Say what went wrong; of what nobody foresaw, where."""
    reason = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        reason = "not enough memory for this case. Use fewer workers, or a machine with more."
    elif not isinstance(error, SegtrustError | OSError):
        place = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"unexpected: {reason} (in {place.name}, line {place.lineno})"
    file = str(files.probabilities)
    named = reason if str(files.probabilities.path.name) in reason else f"{file}: {reason}"
    return Failure(files.id, file, type(error).__name__, named)
