"""Cases that are loaded from their files whenever they are needed, by any process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from segtrust.engine import prepare_for_scoring
from segtrust.errors import WrongContentError
from segtrust.io import CaseFiles, LoadedCase, ReadOptions, load_case, stamps_of
from segtrust.maps import Case


@dataclass(frozen=True)
class FileCase:
    """One structure of a case, with its truth; called, it is loaded.

    Attributes
    ----------
    files
        Of the case.
    options
        How they are read.
    structure
        Which of its structures.
    recalibration
        Applied to the map, such as a `segtrust.calibration.Scaling`; ``None`` for none.
    """

    files: CaseFiles
    options: ReadOptions
    structure: str
    recalibration: Any = None

    def __call__(self) -> Case:
        """Load the case."""
        loaded = self.load()
        return Case(loaded.prediction, loaded.truth)

    def load(self) -> LoadedCase:
        """Load the case with all that its files say."""
        for loaded in load_case(self.files, self.options):
            if loaded.structure == self.structure:
                named = replace(loaded.prediction, id=self.files.id)
                return replace(
                    loaded, prediction=prepare_for_scoring(named, self.options, self.recalibration)
                )
        raise WrongContentError(
            f"{self.files.probabilities}: expected the structure {self.structure!r}, got no such structure."
        )

    @property
    def fingerprint(self) -> list[Any]:
        """Where the files are, how large and how old, and how they are read: what results depend on."""
        return [
            stamps_of([self.files])[self.files.id],
            repr(self.options),
            self.structure,
            repr(self.recalibration),
        ]
