"""The work on one case: from its files to the rows of the score table."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from segtrust._files import plain_values
from segtrust.calibration import Scaling
from segtrust.confidence import ConfidenceEstimator, Pixels, assess_map
from segtrust.engine.decoding import as_scored, is_decoded
from segtrust.engine.outcomes import Failure, Outcome, Row
from segtrust.ensembles import ROUNDING
from segtrust.errors import ProbabilityRangeError, SegtrustError, WrongContentError
from segtrust.io.case_images import read_case_image
from segtrust.io.cases import CaseFiles
from segtrust.io.digests import Digest, digest_of, digest_of_all
from segtrust.io.loading import Decoding, LoadedCase, OpenedCase, ReadOptions, load_case, load_opened
from segtrust.io.members import SEPARATOR
from segtrust.io.places import Place
from segtrust.kernels import count_mask_changes, is_chunked, open_map, read_tile, threshold_map, tiles_of
from segtrust.maps import EmptyPolicy, Prediction
from segtrust.risks import RISKS, Overlap, overlap

__all__ = ["IN_MEMORY", "OfSets", "ScoreJob", "failure_of", "without_rounding"]

IN_MEMORY: Row = {"digest": "", "mask_digest": ""}
"""Fingerprints of what is in no file."""
OfSets = Mapping[tuple[str, str], tuple[ConfidenceEstimator, ...]]
"""Estimators by set and structure."""
_STORED = (RISKS["dice_risk"], RISKS["iou_risk"])
"""Risks with a column of their own. Others that take counts only follow from the row: see `loss_of_row`."""


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
        A recalibration of the maps, or ``None``; the mask is that of the map as it was, unless the best one
        is sought.
    with_truth
        Whether the Dice and the other overlaps are wanted, of cases that have a truth.
    digest
        Fingerprint of the files of map and mask.
    empty
        What an empty mask is worth in the Dice.
    of_sets
        More estimators, which have learned from a set and score its cases alone.
    predictor
        Which model makes the maps, where the same run makes them; else nothing.
    """

    estimators: tuple[ConfidenceEstimator, ...]
    read: ReadOptions = field(default_factory=ReadOptions)
    scaling: Scaling | None = None
    with_truth: bool = True
    digest: Digest = "quick"
    empty: EmptyPolicy = EmptyPolicy.PAPER
    of_sets: OfSets = field(default_factory=dict)
    predictor: str = ""

    def __post_init__(self) -> None:
        """Seek masks by the policy by which they are judged, unless another is said."""
        if self.read.decode is not Decoding.THRESHOLD and self.read.decode_empty is None:
            object.__setattr__(self, "read", replace(self.read, decode_empty=self.empty))

    def __call__(self, files: CaseFiles) -> Outcome:
        """Score a case."""
        wanted = files if self.with_truth else replace(files, truth=None)
        return self._outcome(files, lambda: load_case(wanted, self.read), self._digests)

    def score_opened(self, files: CaseFiles, case: Callable[[], OpenedCase]) -> Outcome:
        """Score a case whose map is in memory, and nowhere else: its rows name no file of a map.

        Parameters
        ----------
        files
            Its name, and the files that there are.
        case
            Opens it; what that raises is told like any failure.
        """
        found = self._outcome(files, lambda: load_opened(case(), self.read), lambda _: IN_MEMORY)
        return replace(found, rows=tuple(row | {"file": ""} for row in found.rows))

    def _outcome(
        self,
        files: CaseFiles,
        load: Callable[[], Iterator[LoadedCase]],
        digests: Callable[[CaseFiles], Row],
    ) -> Outcome:
        begin = time.perf_counter()
        try:
            rows = [self.row(loaded, files) for loaded in load()]
            about = digests(files)
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            return Outcome(files.id, failure=failure_of(files, error))
        seconds = {"seconds": time.perf_counter() - begin}
        return Outcome(files.id, tuple(row | about | seconds for row in rows))

    def _digests(self, files: CaseFiles) -> Row:
        """Give the fingerprints of the map and of the delivered mask, where there is one."""
        mask = "" if files.mask is None else digest_of(files.mask.path, self.digest)
        return {
            "digest": digest_of_all([place.path for place in files.maps], self.digest),
            "mask_digest": mask,
        }

    def learned_from(self, name: str) -> list[Row]:
        """Say in plain values what estimators have learned from a set: its rows depend on it."""
        return [
            {
                "set": name,
                "structure": structure,
                **{each.name: plain_values(each.parameters, each.name) for each in fitted},
            }
            for (of_set, structure), fitted in self.of_sets.items()
            if of_set == name
        ]

    def row(self, loaded: LoadedCase, files: CaseFiles) -> Row:
        """Score a map; one that is beyond 0 or 1 by rounding alone is cut off there."""
        try:
            return self._plain_row(loaded, files)
        except ProbabilityRangeError:
            cut = without_rounding(loaded.prediction)
            if cut is None:
                raise
        return self._plain_row(replace(loaded, prediction=cut), files)

    def _plain_row(self, loaded: LoadedCase, files: CaseFiles) -> Row:
        prediction = as_scored(loaded.prediction, self.read, self.scaling)
        source = open_map(
            prediction.probabilities,
            prediction.mask,
            threshold=prediction.threshold,
            source=str(files.probabilities),
        )
        estimators = (*self.estimators, *self.of_sets.get((files.set, loaded.structure), ()))
        pixels = None
        if any(estimator.needs.pixels for estimator in estimators):
            image = None
            if files.image is not None:
                image = read_case_image(
                    files.image, prediction.shape, loaded.grid, resample=self.read.resample
                )
            pixels = Pixels(replace(prediction, image=image))
        found = assess_map(source, estimators, prediction.agreement, pixels)
        bounds = found.bounds
        row = {
            "case": files.id,
            "structure": loaded.structure,
            "set": files.set,
            "group": files.group,
            "split": files.split,
            **{name: _finite(value, name) for name, value in found.scores.items()},
            "k": int(bounds.k),
            **{name: float(getattr(bounds, name)) for name in ("mu", "lam", "s", "lower", "upper")},
            "relative_error": float(bounds.relative_error),
            "foreground_ratio": float(found.foreground_ratio),
            **self._about_mask(loaded.prediction, prediction),
            "mask_difference": _difference(loaded),
            "shape": "×".join(map(str, prediction.shape)),
            "spacing_mm": "×".join(f"{each:g}" for each in prediction.spacing_mm or ()),
            "file": str(files.probabilities),
            **{f"{role}_file": str(place or "") for role, place in _beside(files).items()},
            **_members(files),
        }
        return row | ({} if loaded.truth is None else self._overlaps(prediction, loaded.truth))

    def _about_mask(self, as_read: Prediction, prediction: Prediction) -> Row:
        """Say of what kind the mask is; where masks are sought, also where the map was cut."""
        if is_decoded(as_read, self.read):
            return {"mask": str(self.read.decode), "mask_threshold": prediction.threshold}
        kind = {"mask": "threshold" if prediction.mask is None else "delivered"}
        return kind if self.read.decode is Decoding.THRESHOLD else kind | {"mask_threshold": None}

    def _overlaps(self, prediction: Prediction, truth: Any) -> Row:
        """Compare the mask that was scored with the truth."""
        found = _overlap(prediction, truth)
        truth_pixels = found.true_positives + found.false_negatives
        row: Row = {
            **{
                risk.column: float(risk.from_counts(found, self.empty))
                for risk in _STORED
                if risk.from_counts
            },
            "truth_ratio": truth_pixels / math.prod(truth.shape),
        }
        known = {"spacing_mm": prediction.spacing_mm}
        for risk in RISKS.values():
            if risk.from_counts is None:  # takes both masks, and not only how often they agree
                needed = {name: known.get(name) for name in risk.needs}
                mask = _mask_in(prediction, np.asarray(prediction.probabilities), prediction.mask)
                value = None
                if None not in needed.values():
                    value = float(risk.score(np.asarray(truth), mask, empty=self.empty, **needed))
                row[risk.column] = value
        return row


def _finite(value: Any, name: str) -> float:
    """Refuse what has no rank, as an estimator of another package may give it."""
    number = float(value)
    if not math.isfinite(number):
        raise WrongContentError(f"{name}: expected a finite confidence from this estimator, got {number}.")
    return number


def _members(files: CaseFiles) -> Row:
    """Say of which files a map was fused; nothing where it is that of one model."""
    if not files.members:
        return {}
    return {"members": len(files.maps), "member_files": SEPARATOR.join(map(str, files.members))}


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
        sum(each.pixels for each in found),
    )


def _mask_in(prediction: Prediction, p: Any, mask: Any) -> Any:
    """Give the mask that is scored, of a map or of a piece of one."""
    if mask is not None:
        return np.asarray(mask)
    return threshold_map(np.asarray(p), threshold=prediction.threshold, source=prediction.source)


def without_rounding(prediction: Prediction) -> Prediction | None:
    """Cut a map off at 0 and 1 that leaves them by no more than single floats round; ``None`` for another."""
    p = prediction.probabilities
    if not isinstance(p, np.ndarray) or p.dtype.kind != "f":
        return None
    if not (p.min() >= -ROUNDING and p.max() <= 1 + ROUNDING):
        return None
    return replace(prediction, probabilities=np.clip(p, 0, 1))


def _difference(loaded: LoadedCase) -> float | None:
    """Share of the pixels in which the delivered mask is not the map cut at the threshold."""
    prediction = loaded.prediction
    if loaded.delivered is None:
        return None
    count = count_mask_changes(
        prediction.probabilities, loaded.delivered, threshold=prediction.threshold, source=prediction.source
    )
    return count / float(math.prod(loaded.delivered.shape))


def failure_of(files: CaseFiles, error: Exception) -> Failure:
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
