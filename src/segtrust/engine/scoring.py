"""Score one case: from its files to the rows of the score table."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np

from segtrust._files import plain_values
from segtrust.calibration import Scaling
from segtrust.confidence import ConfidenceEstimator, Pixels, assess_map
from segtrust.engine.executors import CASE_SECONDS, Limits, ProcessDiedError, Sandbox
from segtrust.engine.outcomes import Outcome
from segtrust.engine.questions import hints_of_map
from segtrust.ensembles import ROUNDING
from segtrust.errors import ParameterError, ProbabilityRangeError, SegtrustError, WrongContentError
from segtrust.io import (
    MEMBER_SEPARATOR,
    ArrayRef,
    CaseFiles,
    ChecksumKind,
    Dataset,
    Decoding,
    Failure,
    LoadedCase,
    OpenedCase,
    ReadOptions,
    ScoreRow,
    check_unchanged,
    checksum_of,
    load_case,
    load_opened,
    read_case_image,
    stamp_files,
)
from segtrust.kernels import count_mask_changes, is_chunked, open_map, read_tile, threshold_map, tiles_of
from segtrust.maps import EmptyPolicy, Prediction
from segtrust.policy import prepare_prediction
from segtrust.risks import RISKS, Overlap, overlap

__all__ = [
    "NO_CHECKSUMS",
    "UNLABELLED",
    "ScoreJob",
    "SetEstimators",
    "SetReader",
    "failure_of",
    "fit_to_sets",
    "is_decoded",
    "parameters_of",
    "prepare_for_scoring",
]

NO_CHECKSUMS: ScoreRow = {"checksum": "", "mask_checksum": ""}
"""Checksum columns of a case that is in no file."""
SetEstimators = Mapping[tuple[str, str], tuple[ConfidenceEstimator, ...]]
"""Estimators by set and structure."""
_STORED_RISKS = (RISKS["dice_risk"], RISKS["iou_risk"])
"""Risks with a column of their own. Others that need counts only follow from the row: see `loss_of_row`."""


@dataclass(frozen=True)
class ScoreJob:
    """The work done for each case. Called with the files of a case it returns the outcome; it never raises.

    Attributes
    ----------
    estimators
        Estimators, with everything they have learned.
    read
        How a case is read.
    scaling
        Recalibration of the maps, or ``None``. The mask is that of the map before recalibration, unless the
        Dice-optimal mask is requested.
    with_truth
        Whether to compare masks with the ground truth, if a case has one.
    digest
        Kind of checksum of the files of map and mask.
    empty
        Rule for the Dice of empty masks.
    of_sets
        Further estimators, which have learned from a set without ground truth and score only its cases.
    predictor
        The model that makes the maps, if the same run makes them; else empty.
    """

    estimators: tuple[ConfidenceEstimator, ...]
    read: ReadOptions = field(default_factory=ReadOptions)
    scaling: Scaling | None = None
    with_truth: bool = True
    digest: ChecksumKind = "quick"
    empty: EmptyPolicy = EmptyPolicy.PAPER
    of_sets: SetEstimators = field(default_factory=dict)
    predictor: str = ""

    def __post_init__(self) -> None:
        """Check the kind of checksum; set `decode_empty` to the rule of the evaluation if none is given."""
        if self.digest not in get_args(ChecksumKind):
            raise ParameterError(
                f"digest: expected {' or '.join(get_args(ChecksumKind))}, got {self.digest!r}."
            )
        if self.read.decode is not Decoding.THRESHOLD and self.read.decode_empty is None:
            object.__setattr__(self, "read", replace(self.read, decode_empty=self.empty))

    def __call__(self, files: CaseFiles) -> Outcome:
        """Score a case."""
        wanted = files if self.with_truth else replace(files, truth=None)
        refs = (*wanted.maps, wanted.mask, wanted.truth, wanted.image)
        return self._score(files, lambda: load_case(wanted, self.read, digest=self.digest), refs)

    def score_opened(self, files: CaseFiles, open_case: Callable[[], OpenedCase]) -> Outcome:
        """Score a case whose map exists only in memory: its rows name no file of a map.

        Parameters
        ----------
        files
            The name of the case, and the files that exist.
        open_case
            Opens the case; what it raises is reported like any failure.
        """
        outcome = self._score(files, lambda: load_opened(open_case(), self.read))
        return replace(outcome, rows=tuple(row | {"file": "", **NO_CHECKSUMS} for row in outcome.rows))

    def _score(
        self,
        files: CaseFiles,
        load: Callable[[], Iterator[LoadedCase]],
        refs: Sequence[ArrayRef | None] = (),
    ) -> Outcome:
        """Score what ``load`` yields; the files at ``refs`` must not change in the meantime."""
        start = time.perf_counter()
        rows, notes, hints = [], dict[str, None](), dict[str, None]()
        try:
            stamps = stamp_files(refs)
            for loaded in load():
                rows.append(self.row(loaded, files) | {"checksum": loaded.checksum})
                notes |= dict.fromkeys(loaded.notes)
                hints |= dict.fromkeys(hints_of_map(loaded.prediction.probabilities))
            mask = "" if files.mask is None else checksum_of(files.mask.path, self.digest)
            check_unchanged(refs, stamps)
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            return Outcome(files.id, failure=failure_of(files, error))
        more = {"mask_checksum": mask, "seconds": time.perf_counter() - start}
        return Outcome(files.id, tuple(row | more for row in rows), None, tuple(hints), tuple(notes))

    def learned_from(self, name: str) -> list[ScoreRow]:
        """Return as plain values what estimators have learned from a set: its rows depend on it."""
        return [
            {
                "set": name,
                "structure": structure,
                **{each.name: plain_values(each.parameters, each.name) for each in estimators},
            }
            for (set_name, structure), estimators in self.of_sets.items()
            if set_name == name
        ]

    def row(self, loaded: LoadedCase, files: CaseFiles) -> ScoreRow:
        """Return the row of one structure; a map that leaves [0, 1] only by rounding is clipped."""
        try:
            return self._row(loaded, files)
        except ProbabilityRangeError:
            clipped = _clip_rounding(loaded.prediction)
            if clipped is None:
                raise
        return self._row(replace(loaded, prediction=clipped), files)

    def _row(self, loaded: LoadedCase, files: CaseFiles) -> ScoreRow:
        prediction = prepare_for_scoring(loaded.prediction, self.read, self.scaling)
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
                    files.image, prediction.shape, loaded.grid, resample=bool(self.read.resample)
                )
            pixels = Pixels(replace(prediction, image=image))
        assessed = assess_map(source, estimators, prediction.agreement, pixels)
        bounds = assessed.bounds
        for name, value in assessed.scores.items():  # an estimator of another package may return anything
            if not math.isfinite(value):
                raise WrongContentError(
                    f"{name}: expected a finite confidence from this estimator, got {value}."
                )
        row: ScoreRow = {
            "case": files.id,
            "structure": loaded.structure,
            "set": files.set,
            "group": files.group,
            "split": files.split,
            **{name: float(value) for name, value in assessed.scores.items()},
            "k": int(bounds.k),
            **{name: float(getattr(bounds, name)) for name in ("mu", "lam", "s")},
            "idc_over_sdc_low": float(bounds.lower),
            "idc_over_sdc_high": float(bounds.upper),
            "relative_error": float(bounds.relative_error),
            "foreground_ratio": float(assessed.foreground_ratio),
        }
        if is_decoded(loaded.prediction, self.read):
            row |= {"mask": str(self.read.decode), "mask_threshold": prediction.threshold}
        else:
            row["mask"] = "threshold" if prediction.mask is None else "delivered"
            if self.read.decode is not Decoding.THRESHOLD:
                row["mask_threshold"] = None
        row |= {
            "mask_difference": _mask_difference(loaded),
            "shape": "×".join(map(str, prediction.shape)),
            "spacing_mm": "×".join(f"{spacing:g}" for spacing in prediction.spacing_mm or ()),
            "file": str(files.probabilities),
            "mask_file": str(files.mask or ""),
            "truth_file": str(files.truth or ""),
            "image_file": str(files.image or ""),
        }
        if files.members:
            row |= {
                "members": len(files.maps),
                "member_files": MEMBER_SEPARATOR.join(map(str, files.members)),
            }
        return row if loaded.truth is None else row | self._compare(prediction, loaded.truth)

    def _compare(self, prediction: Prediction, truth: Any) -> ScoreRow:
        """Compare the mask that was scored with the ground truth."""
        counts = _overlap(prediction, truth)
        row: ScoreRow = {
            risk.column: float(risk.from_counts(counts, self.empty))
            for risk in _STORED_RISKS
            if risk.from_counts
        }
        row["truth_ratio"] = (counts.true_positives + counts.false_negatives) / math.prod(truth.shape)
        known = {"spacing_mm": prediction.spacing_mm}
        for risk in RISKS.values():
            if risk.from_counts is None:  # needs both masks, not only how often they agree
                needed = {name: known.get(name) for name in risk.needs}
                row[risk.column] = None
                if None not in needed.values():
                    mask = _mask_of(prediction, np.asarray(prediction.probabilities), prediction.mask)
                    row[risk.column] = float(risk.score(np.asarray(truth), mask, empty=self.empty, **needed))
        return row


def prepare_for_scoring(prediction: Prediction, options: ReadOptions, scaling: Any = None) -> Prediction:
    """Return a prediction as it is scored: recalibrated, and with the Dice-optimal mask if requested.

    The Dice-optimal mask is that of the recalibrated map. A delivered mask, or the thresholded map, is that
    before recalibration.
    """
    decode_empty = options.decode_empty or EmptyPolicy.PAPER
    return prepare_prediction(prediction, scaling, decode_empty if is_decoded(prediction, options) else None)


def is_decoded(prediction: Prediction, options: ReadOptions) -> bool:
    """Return whether the mask of a prediction, as it was read, is still to be computed."""
    return options.decode is Decoding.DICE_OPTIMAL and prediction.mask is None


def parameters_of(estimator: ConfidenceEstimator) -> dict[str, Any]:
    """Return what an estimator was set to or has learned, without the ids of cases."""
    return {name: value for name, value in estimator.parameters.items() if name != "used_ids"}


def failure_of(files: CaseFiles, error: Exception) -> Failure:
    """Return the failure for an exception; for an unexpected one with the line where it was raised."""
    reason = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        reason = "not enough memory for this case. Use fewer workers, or a machine with more."
    elif not isinstance(error, SegtrustError | OSError):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"unexpected: {reason} (in {frame.name}, line {frame.lineno})"
    file = str(files.probabilities)
    if files.probabilities.path.name not in reason:
        reason = f"{file}: {reason}"
    return Failure(files.id, file, type(error).__name__, reason)


def _overlap(prediction: Prediction, truth: Any) -> Overlap:
    """Count where mask and truth agree and differ; tile by tile if the map is chunked."""
    p, mask = prediction.probabilities, prediction.mask
    if not is_chunked(p):
        return overlap(np.asarray(truth), _mask_of(prediction, p, mask))
    counts = [
        overlap(read_tile(truth, tile), _mask_of(prediction, read_tile(p, tile), read_tile(mask, tile)))
        for tile in tiles_of(p)
    ]
    return Overlap(
        sum(tile.true_positives for tile in counts),
        sum(tile.false_positives for tile in counts),
        sum(tile.false_negatives for tile in counts),
        sum(tile.pixels for tile in counts),
    )


def _mask_of(prediction: Prediction, p: Any, mask: Any) -> Any:
    """Return the mask that is scored, of a map or of one of its tiles."""
    if mask is not None:
        return np.asarray(mask)
    return threshold_map(np.asarray(p), threshold=prediction.threshold, source=prediction.source)


def _clip_rounding(prediction: Prediction) -> Prediction | None:
    """Return a map clipped to [0, 1] if it leaves it only by the rounding of floats; else ``None``."""
    p = prediction.probabilities
    if not isinstance(p, np.ndarray) or p.dtype.kind != "f":
        return None
    if not (p.min() >= -ROUNDING and p.max() <= 1 + ROUNDING):
        return None
    return replace(prediction, probabilities=np.clip(p, 0, 1))


def _mask_difference(loaded: LoadedCase) -> float | None:
    """Return the share of pixels in which the delivered mask differs from the map at the threshold."""
    prediction = loaded.prediction
    if loaded.delivered is None:
        return None
    count = count_mask_changes(
        prediction.probabilities, loaded.delivered, threshold=prediction.threshold, source=prediction.source
    )
    return count / float(math.prod(loaded.delivered.shape))


# Estimators that learn from the maps of a whole set without ground truth, one per set and structure.

UNLABELLED = ("tla",)
"""Names of the estimators that learn without ground truth."""


@dataclass(frozen=True)
class SetReader:
    """Reads the maps of a set, as they are scored.

    Attributes
    ----------
    options
        How a case is read.
    scaling
        Recalibration of the maps, or ``None``.
    drop_empty
        Whether cases with empty ground truth are left out.
    """

    options: ReadOptions
    scaling: Any = None
    drop_empty: bool = False

    def read(self, files: CaseFiles) -> Iterator[LoadedCase]:
        """Yield the structures of a case; nothing if it cannot be read, which scoring reports."""
        try:
            wanted = files if self.drop_empty else replace(files, truth=None)
            for loaded in load_case(wanted, self.options):
                if self.drop_empty and loaded.truth is not None and not loaded.truth.any():
                    continue
                prediction = loaded.prediction
                try:
                    open_map(
                        prediction.probabilities, prediction.mask, threshold=prediction.threshold
                    ).count()
                except ProbabilityRangeError:
                    clipped = _clip_rounding(prediction)
                    if clipped is None:
                        raise
                    prediction = clipped
                yield replace(loaded, prediction=prepare_for_scoring(prediction, self.options, self.scaling))
        except (SegtrustError, OSError):
            return


@dataclass(frozen=True)
class _StructureMaps:
    """The maps of one structure, read one at a time on every pass."""

    cases: Sequence[CaseFiles]
    reader: SetReader
    structure: str

    def __iter__(self) -> Iterator[Prediction]:
        for files in self.cases:
            for loaded in self.reader.read(files):
                if loaded.structure == self.structure:
                    yield loaded.prediction

    def __len__(self) -> int:
        return len(self.cases)

    def __contains__(self, item: object) -> bool:
        return any(prediction is item for prediction in self)


def fit_to_sets(
    estimators: Sequence[ConfidenceEstimator],
    dataset: Dataset,
    reader: SetReader,
    limits: Limits | None = None,
) -> SetEstimators:
    """Fit estimators that need no ground truth to each set and structure, as the paper's TLA does.

    The maps are read in a worker process. If it dies, the cases that end it are left out: scoring reports
    them.

    Parameters
    ----------
    estimators
        What is fitted; nothing is read without any.
    dataset, reader
        The cases, and how their maps are read.
    limits
        Memory of the process, and time for each case.
    """
    if not estimators:
        return {}
    memory, seconds = (None, CASE_SECONDS) if limits is None else (limits.memory, limits.seconds)
    total = None if seconds is None else seconds * max(1, len(dataset.cases))
    with Sandbox(memory=memory, seconds=total) as sandbox:
        try:
            return sandbox.call(_fit_to_sets, estimators, dataset, reader)
        except ProcessDiedError:
            kept = []
    with Sandbox(memory=memory, seconds=seconds) as sandbox:
        for case in dataset.cases:
            with suppress(ProcessDiedError):
                sandbox.call(_read_all, reader, case)
                kept.append(case)
    with Sandbox(memory=memory, seconds=total) as sandbox:
        return sandbox.call(_fit_to_sets, estimators, replace(dataset, cases=tuple(kept)), reader)


def _read_all(reader: SetReader, case: CaseFiles) -> None:
    for _ in reader.read(case):
        pass


def _fit_to_sets(
    estimators: Sequence[ConfidenceEstimator], dataset: Dataset, reader: SetReader
) -> SetEstimators:
    fitted = {}
    for name in dict.fromkeys(case.set for case in dataset.cases):
        cases = [case for case in dataset.cases if case.set == name]
        structures: list[str] = []
        for files in cases:  # all cases of a set have the structures of the first that can be read
            structures = [loaded.structure for loaded in reader.read(files)]
            if structures:
                break
        for structure in structures:
            maps = _StructureMaps(cases, reader, structure)
            fitted[name, structure] = tuple(estimator.fit(maps) for estimator in estimators)
    return fitted
