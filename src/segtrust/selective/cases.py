"""Cases with a known loss, from which a threshold may be certified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.selective.labels import labels_of, texts_of
from segtrust.selective.references import references_of
from segtrust.selective.seen import HashedIds, ids_of, names_of, refuse_seen
from segtrust.selective.shuffling import first_come, shuffled_places
from segtrust.selective.vectors import confidences_of, kept, losses_of

__all__ = ["CalibrationCases"]


@dataclass(frozen=True, eq=False)
class CalibrationCases:
    """Confidences and losses of cases that nothing has learned from, checked and copied when made.

    Parameters
    ----------
    confidence, loss
        One number a case; losses in [0, 1], whoever computed them.
    patients
        Label of the patient of each case, where patients have several: text or numbers, compared as text
        (1, 1.0 and "1" are the same patient). No case may be without one.
    ids
        Different texts, one a case; needed to refuse cases that an estimator was fitted on.
    reference
        Confidences of at least 10 unlabelled cases that have nothing to do with these, from which candidate
        thresholds are taken; those of the cases themselves are refused. Without any some of the cases here
        are set aside for it.

    Examples
    --------
    >>> CalibrationCases([0.9, 0.4], [0.05, 0.6], ids=["a", "b"]).n
    2
    """

    confidence: Any
    loss: Any
    patients: Any = None
    ids: Sequence[str] | None = None
    reference: Any = None

    def __post_init__(self) -> None:
        """Check everything once and put it in its final form."""
        ids = ids_of(self.ids)
        confidence = confidences_of(self.confidence, ids=ids, fewest=2)
        names_of(ids, confidence.size)
        columns = {
            "confidence": confidence,
            "loss": losses_of(self.loss, confidence.size, ids=ids, unit=True),
        }
        if self.patients is not None:
            columns["patients"] = texts_of(self.patients, confidence.size, "patients", ids=ids)
        if self.reference is not None:
            columns["reference"] = references_of(self.reference, confidence)
        for name, column in columns.items():
            object.__setattr__(self, name, kept(column))
        object.__setattr__(self, "ids", ids)

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.confidence.size)

    @property
    def units(self) -> Any:
        """Independent unit of each case, its patient or itself, numbered in the order of the cases."""
        return np.arange(self.n) if self.patients is None else first_come(self.patients)

    @property
    def digest(self) -> str:
        """Fingerprint of the table, whatever the order of its rows and the containers it came in."""
        nothing = [None] * self.n
        names = nothing if self.ids is None else list(self.ids)
        patients = nothing if self.patients is None else self.patients.tolist()
        numbers = ((column + 0.0).tolist() for column in (self.confidence, self.loss))  # 0.0 for -0.0
        rows = sorted(map(json.dumps, zip(names, patients, *numbers, strict=True)))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def part(self, chosen: Any) -> CalibrationCases:
        """Give some of the cases, by their places or by a boolean array; the reference stays as it is."""
        places = np.arange(self.n)[chosen]
        ids = None if self.ids is None else [self.ids[at] for at in places]
        patients = None if self.patients is None else self.patients[places]
        some = CalibrationCases(self.confidence[places], self.loss[places], patients, ids)
        object.__setattr__(some, "reference", self.reference)  # checked against all cases
        return some

    def shuffled(self, seed: int) -> CalibrationCases:
        """Give the cases in a random order that knows nothing of their losses; units stay together."""
        patients = None if self.patients is None else labels_of(self.patients, self.n, "patients")
        return self.part(shuffled_places(seed, self.confidence, units=patients, ids=self.ids))

    def refuse(self, used_ids: Collection[str] | HashedIds) -> None:
        """Raise where something has learned from a case, or where that cannot be told."""
        refuse_seen(self.ids, used_ids, self.n)
