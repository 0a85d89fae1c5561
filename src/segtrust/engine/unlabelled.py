"""Estimators that learn from the maps of a whole set, and not from truths: one for each set and structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from segtrust.confidence import ConfidenceEstimator
from segtrust.engine.decoding import as_scored
from segtrust.engine.scoring import OfSets, without_rounding
from segtrust.errors import ProbabilityRangeError, SegtrustError
from segtrust.io.case_files import CaseFiles, Dataset
from segtrust.io.loading import LoadedCase, ReadOptions, load_case
from segtrust.kernels import open_map
from segtrust.maps import Prediction

__all__ = ["UNLABELLED", "SetReader", "fit_to_sets"]

UNLABELLED = ("tla",)
"""Names of the estimators that need no truths to learn."""


@dataclass(frozen=True)
class SetReader:
    """How the maps of a set are read.

    Attributes
    ----------
    options
        What is read of each case.
    scaling
        A recalibration of the maps, such as a `segtrust.calibration.Scaling`, or ``None``.
    drop_empty
        Whether cases with an empty truth do not count.
    """

    options: ReadOptions
    scaling: Any = None
    drop_empty: bool = False

    def read(self, files: CaseFiles) -> Iterator[LoadedCase]:
        """Give the structures of a case that count; none where it cannot be read, which scoring tells."""
        try:
            for loaded in load_case(files if self.drop_empty else replace(files, truth=None), self.options):
                if not (self.drop_empty and loaded.truth is not None and not loaded.truth.any()):
                    prediction = as_scored(_scorable(loaded.prediction), self.options, self.scaling)
                    yield replace(loaded, prediction=prediction)
        except (SegtrustError, OSError):
            return


def _scorable(prediction: Prediction) -> Prediction:
    """Refuse a map that cannot be scored, such as one with NaN, as scoring does."""
    try:
        open_map(prediction.probabilities, prediction.mask, threshold=prediction.threshold).count()
    except ProbabilityRangeError:
        cut = without_rounding(prediction)
        if cut is None:
            raise
        return cut
    return prediction


@dataclass(frozen=True)
class _Maps:
    """The maps of one structure, loaded one at a time whenever they are gone through."""

    cases: Sequence[CaseFiles]
    reader: SetReader
    structure: str

    def __iter__(self) -> Iterator[Prediction]:
        for files in self.cases:
            yield from (
                each.prediction for each in self.reader.read(files) if each.structure == self.structure
            )

    def __len__(self) -> int:
        return len(self.cases)

    def __contains__(self, item: object) -> bool:
        return any(each is item for each in self)


def fit_to_sets(estimators: Sequence[ConfidenceEstimator], found: Dataset, reader: SetReader) -> OfSets:
    """Let estimators learn from each set and structure on its own, as the paper's TLA does.

    Parameters
    ----------
    estimators
        That need no truths to learn.
    found
        Cases of all sets.
    reader
        How their maps are read.
    """
    fitted = {}
    for name in dict.fromkeys(case.set for case in found.cases) if estimators else ():
        cases = [case for case in found.cases if case.set == name]
        for structure in _structures(cases, reader):
            fitted[name, structure] = _fitted(estimators, _Maps(cases, reader, structure))
    return fitted


def _structures(cases: Sequence[CaseFiles], reader: SetReader) -> list[str]:
    """Give the structures of the first case that can be read: all cases of a set have the same."""
    for files in cases:
        found = [each.structure for each in reader.read(files)]
        if found:
            return found
    return []


def _fitted(estimators: Sequence[ConfidenceEstimator], maps: _Maps) -> tuple[ConfidenceEstimator, ...]:
    return tuple(each.fit(maps) for each in estimators)
