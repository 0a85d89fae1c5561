"""Calibration cases: confidences and losses that nothing has learned from, and what was asked of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from segtrust._arguments import check_count, renamed_attribute
from segtrust._display import Displayed
from segtrust._files import check_keys, naming_errors
from segtrust._optional import require
from segtrust._storage import Storable, without_format
from segtrust._types import FloatArray, VectorLike
from segtrust.errors import CaseValueError, ParameterError
from segtrust.selective.looks import LookLog, case_keys
from segtrust.selective.seen import (
    HashedIds,
    check_checksums,
    check_ids,
    checksum_names,
    ids_as_text,
    reject_seen,
)
from segtrust.selective.shuffling import number_by_appearance, shuffled_order
from segtrust.selective.vectors import (
    check_confidences,
    check_labels,
    check_outcomes,
    check_reference,
    check_same_index,
    frozen_copy,
    number_labels,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_COLUMNS = ("confidence", "loss", "patients", "ids", "reference")
_SAME = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""Differences of two copies that rounding explains."""
_LATER_COLUMNS = ("checksums", "copies", "copied_ids", "looks")
"""Saved since certificates remember every look; files without them are read too."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CalibrationCases(Displayed, Storable):
    """Confidences and losses of cases that nothing has learned from, checked and copied.

    Parameters
    ----------
    confidence
        Confidence of each case.
    loss
        Loss of each case, in [0, 1]: for example, one minus its Dice.
    patients
        Label of each case's patient, if patients have several cases: text or numbers, compared as text
        (1, 1.0 and "1" are the same patient). Every case needs one.
    ids
        Different texts, one per case; needed to reject cases that an estimator was fitted on.
    reference
        Confidences of at least 10 unlabelled cases that are unrelated to these, from which candidate
        thresholds are taken; the confidences of the cases themselves are rejected. Without a reference, every
        rank of the cases is tested; if patients have several cases, some patients are set aside for it.
    dice
        Dice of each case, in [0, 1], instead of the loss.
    checksums
        Checksum of each case's map, such as the column ``digest`` of a score table; empty for a case without
        one. Cases with equal checksums and confidences are copies: they count as one case, and different
        losses for them are an error. Pass an empty text for an empty mask: the maps of different images
        may be equal if there is nothing in them, and these are different cases.
    looks
        What was asked of these cases before; a new record by default. `certify` adds to it.

    Attributes
    ----------
    copies
        Number of cases that were left out because they are copies of others.
    copied_ids
        Ids of these cases.

    Examples
    --------
    >>> CalibrationCases([0.9, 0.4], dice=[0.95, 0.4], ids=["a", "b"]).n
    2
    >>> twice = CalibrationCases([0.9, 0.4, 0.9], dice=[0.95, 0.4, 0.95], checksums=["x", "y", "x"])
    >>> twice.n, twice.copies
    (2, 1)
    """

    confidence: FloatArray
    loss: FloatArray
    patients: Any
    ids: tuple[str, ...] | None
    reference: FloatArray | None
    checksums: tuple[str, ...] | None
    copies: int
    copied_ids: frozenset[str]
    looks: LookLog

    _format = "segtrust-calibration-cases-2"
    _older_formats = ("segtrust-calibration-cases-1",)

    def __init__(
        self,
        confidence: VectorLike,
        loss: VectorLike | None = None,
        patients: VectorLike | None = None,
        ids: Sequence[Any] | None = None,
        reference: VectorLike | None = None,
        *,
        dice: VectorLike | None = None,
        checksums: Sequence[Any] | None = None,
        looks: LookLog | None = None,
    ) -> None:
        check_same_index(
            confidence=confidence, loss=loss, dice=dice, patients=patients, ids=ids, checksums=checksums
        )
        names = ids_as_text(ids)
        confidence = check_confidences(confidence, ids=names, fewest=2)
        check_ids(names, confidence.size)
        columns = {
            "confidence": frozen_copy(confidence),
            "loss": frozen_copy(check_outcomes(confidence, loss, dice, ids=names, unit=True)),
            "patients": None,
            "ids": names,
            "reference": None,
            "checksums": None,
            "copies": 0,
            "copied_ids": frozenset(),
            "looks": LookLog() if looks is None else looks,
        }
        if not isinstance(columns["looks"], LookLog):
            raise ParameterError(f"looks: expected a LookLog, got {looks!r}.")
        if patients is not None:
            columns["patients"] = frozen_copy(check_labels(patients, confidence.size, "patients", ids=names))
        if reference is not None:
            columns["reference"] = frozen_copy(check_reference(reference, confidence))
        if checksums is not None:
            columns["checksums"] = check_checksums(checksums, confidence.size)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        if self.checksums is not None:
            self._leave_out_copies()

    def _leave_out_copies(self) -> None:
        """Keep the first of each group of cases with the same checksum and confidence.

        Short checksums may agree by chance, but then the confidences differ.
        """
        originals: dict[str, list[int]] = {}
        kept = []
        for number, checksum in enumerate(self.checksums or ()):
            known = originals.setdefault(checksum, [])
            same = (at for at in known if math.isclose(self.confidence[at], self.confidence[number], **_SAME))
            original = next(same, None) if checksum else None
            if original is None:
                kept.append(number)
                known.append(number)
            elif not math.isclose(self.loss[original], self.loss[number], **_SAME):
                one, other = (self.ids[at] if self.ids else f"case {at}" for at in (original, number))
                raise CaseValueError(
                    f"loss: {one!r} and {other!r} are copies of the same map (checksum {checksum}), but have "
                    f"the losses {self.loss[original]:.6g} and {self.loss[number]:.6g}. Check their ground "
                    "truth, and leave both of them out unless one is known to be wrong."
                )
        if len(kept) == self.n:
            return
        left_out = sorted(set(range(self.n)) - set(kept))
        copied = frozenset(self.ids[number] for number in left_out) if self.ids else frozenset()
        part = self.part(np.array(kept))
        for name in ("confidence", "loss", "patients", "ids", "checksums"):
            object.__setattr__(self, name, getattr(part, name))
        object.__setattr__(self, "copies", len(left_out))
        object.__setattr__(self, "copied_ids", copied)

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.confidence.size)

    @property
    def units(self) -> Any:
        """Number of each case's independent unit (its patient, or the case itself), counted from 0."""
        return np.arange(self.n) if self.patients is None else number_by_appearance(self.patients)

    @property
    def has_groups(self) -> bool:
        """Whether some patient has several cases, so that cases are not independent."""
        return self.patients is not None and bool(self.units.max() < self.n - 1)

    @property
    def used_ids(self) -> frozenset[str]:
        """Ids and checksums of all cases, copies included, as whatever learns from them keeps them."""
        return frozenset(self.ids or ()) | self.copied_ids | checksum_names(self.checksums)

    @property
    def keys(self) -> frozenset[str]:
        """What the cases are recognised by in `LookLog`: short hashes of their ids and checksums."""
        return case_keys((*(self.ids or ()), *self.copied_ids), self.checksums or ())

    @cached_property
    def digest(self) -> str:
        """Checksum of the table; it does not depend on the order of the rows or on the containers."""
        nothing = [None] * self.n
        names = nothing if self.ids is None else list(self.ids)
        patients = nothing if self.patients is None else self.patients.tolist()
        numbers = ((column + 0.0).tolist() for column in (self.confidence, self.loss))  # 0.0 for -0.0
        rows = sorted(map(json.dumps, zip(names, patients, *numbers, strict=True)))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    def part(self, chosen: Any) -> CalibrationCases:
        """Return some of the cases, by position or by a boolean array, with the same reference."""
        is_positions = isinstance(chosen, np.ndarray) and chosen.dtype.kind in "iu"
        positions = chosen if is_positions else np.arange(self.n)[chosen]
        part = copy(self)  # everything has been checked already
        part.__dict__.pop("digest", None)
        for name in ("confidence", "loss", "patients"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(part, name, frozen_copy(column[positions]))
        for name in ("ids", "checksums"):
            column = getattr(self, name)
            if column is not None:
                object.__setattr__(part, name, tuple(column[position] for position in positions))
        return part

    def random_order(self, seed: int, *, stream: int = 0) -> Any:
        """Return the positions of the cases in a random order that does not depend on their losses.

        Units stay together. Orders of different streams are independent of each other.
        """
        patients = None if self.patients is None else number_labels(self.patients, self.n, "patients")
        return shuffled_order(seed, self.confidence, units=patients, ids=self.ids, stream=stream)

    def shuffled(self, seed: int) -> CalibrationCases:
        """Return the cases in a random order that does not depend on their losses; units stay together."""
        return self.part(self.random_order(seed))

    def reject_seen(self, used_ids: Collection[str] | HashedIds) -> None:
        """Raise `SeenCasesError` if a case is among ``used_ids``, or an error if the cases have no ids."""
        reject_seen(self.ids, used_ids, self.n, checksums=self.checksums)

    refuse = renamed_attribute("refuse", "reject_seen")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the cases; ids are readable."""
        columns = {name: getattr(self, name) for name in (*_COLUMNS, "checksums")}
        values: dict[str, Any] = {
            name: None if column is None else [*column] if isinstance(column, tuple) else column.tolist()
            for name, column in columns.items()
        }
        copied = {"copies": self.copies, "copied_ids": sorted(self.copied_ids)}
        return values | copied | {"looks": self.looks.to_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "cases") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = without_format(saved)
        if isinstance(values, Mapping):
            values = {
                "checksums": None,
                "copies": 0,
                "copied_ids": [],
                "looks": LookLog().to_dict(),
                **values,
            }
        values = check_keys(values, (*_COLUMNS, *_LATER_COLUMNS), source)
        copies, copied_ids = values.pop("copies"), values.pop("copied_ids")
        with naming_errors(source):
            cases = cls(**{**values, "looks": LookLog.from_dict(values["looks"])})
            object.__setattr__(cases, "copies", check_count(copies, "copies", least=0))
            object.__setattr__(cases, "copied_ids", frozenset(ids_as_text(copied_ids) or ()))
            return cases

    def to_dataframe(self) -> DataFrame:
        """Return a pandas table, one row per case: its id and patient, if known, confidence and loss."""
        columns: dict[str, Any] = {} if self.ids is None else {"id": list(self.ids)}
        columns |= {} if self.patients is None else {"patient": self.patients}
        columns |= {"confidence": self.confidence, "loss": self.loss}
        return require("pandas", extra="tables").DataFrame(columns)

    def _shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"cases": self.n, "mean_loss": float(self.loss.mean())}
        if self.patients is not None:
            shown["patients"] = int(self.units.max()) + 1
        if self.reference is not None:
            shown["references"] = int(self.reference.size)
        shown |= {"copies": self.copies} if self.copies else {}
        return shown | ({"looks": len(self.looks)} if len(self.looks) else {})
