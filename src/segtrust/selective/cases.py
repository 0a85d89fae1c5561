"""Cases with a known loss, from which a threshold may be certified."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.selective.seen import names_of, refuse_seen
from segtrust.selective.shuffling import first_come, shuffled_places
from segtrust.selective.vectors import confidences_of, labels_of, losses_of

__all__ = ["CalibrationCases"]


@dataclass(frozen=True, eq=False)
class CalibrationCases:
    """Confidences and losses of cases that nothing has learned from, checked when made.

    Parameters
    ----------
    confidence, loss
        One number a case; losses in [0, 1], whoever computed them.
    patients
        Label of the patient of each case, where patients have several.
    ids
        Different texts, one a case; needed to refuse cases that an estimator was fitted on.
    reference
        Confidences of unlabelled cases that have nothing to do with these, from which candidate thresholds
        are taken. Without them some of the cases here are set aside for it.

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
        ids = None if self.ids is None else tuple(str(each) for each in self.ids)
        confidence = confidences_of(self.confidence, ids=_fitting(ids, self.confidence), fewest=2)
        names_of(ids, confidence.size)
        reference = None if self.reference is None else confidences_of(self.reference)
        patients = self.patients
        if patients is not None:
            labels_of(patients, confidence.size, "patients")
            patients = np.asarray(patients)
        loss = losses_of(self.loss, confidence.size, ids=ids, unit=True)
        final = {"confidence": confidence, "loss": loss, "patients": patients, "ids": ids}
        for name, value in {**final, "reference": reference}.items():
            object.__setattr__(self, name, value)

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
        """Fingerprint of the table, whatever the order of its rows."""
        columns = [self.ids, self.patients, self.confidence.tolist(), self.loss.tolist()]
        rows = sorted(map(repr, zip(*(column for column in columns if column is not None), strict=True)))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def part(self, chosen: Any) -> CalibrationCases:
        """Give some of the cases, by their places or by a boolean array."""
        ids = None if self.ids is None else np.array(self.ids)[chosen].tolist()
        patients = None if self.patients is None else self.patients[chosen]
        return CalibrationCases(self.confidence[chosen], self.loss[chosen], patients, ids, self.reference)

    def shuffled(self, seed: int) -> CalibrationCases:
        """Give the cases in a random order that knows nothing of their losses; units stay together."""
        patients = None if self.patients is None else labels_of(self.patients, self.n, "patients")
        return self.part(shuffled_places(seed, self.confidence, units=patients, ids=self.ids))

    def refuse(self, used_ids: Collection[str]) -> None:
        """Raise where something has learned from a case, or where that cannot be told."""
        refuse_seen(self.ids, used_ids, self.n)


def _fitting(ids: Sequence[str] | None, values: Any) -> Sequence[str] | None:
    """Ids may name a case in an error only where there is one for each."""
    return ids if ids is not None and np.ndim(values) == 1 and len(ids) == len(values) else None
