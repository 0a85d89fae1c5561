"""The answer of a certification."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from segtrust.errors import ParameterError
from segtrust.selective.plan import Need
from segtrust.selective.procedure import Procedure
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_count, check_fraction, check_number

__all__ = ["Certificate", "Evidence", "Operation", "Step"]


@dataclass(frozen=True)
class Step:
    """One candidate that was tested.

    Attributes
    ----------
    threshold
        Cases with at least this confidence are accepted.
    accepted
        Calibration cases that it accepts.
    p_value
        Largest over the targets; the candidate is certified where it is at most ``level``.
    level
        At which it was tested.
    """

    threshold: float
    accepted: int
    p_value: float
    level: float

    @property
    def passed(self) -> bool:
        """Whether the promise can be made at this threshold."""
        return self.p_value <= self.level


@dataclass(frozen=True)
class Evidence:
    """What a threshold was tested on.

    Attributes
    ----------
    n, units
        Cases, those set aside not counted, and how many independent units they are: patients, or the cases
        themselves.
    patients
        Whether patients are the units: the promise is then about the mean in which each patient counts once.
    references, set_aside
        Confidences that candidates were taken from, and how many of them are of labelled cases set aside.
    digest
        Fingerprint of the calibration table.
    used_ids
        Ids of all cases that took part, where they have any; nothing else may be promised on them.
    """

    n: int
    units: int
    patients: bool
    references: int
    set_aside: int
    digest: str
    used_ids: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        """Check that the numbers can belong together."""
        n, units = check_count(self.n, "n"), check_count(self.units, "units")
        if not isinstance(self.patients, bool):
            raise ParameterError(f"patients: expected True or False, got {self.patients!r}.")
        if units > n or not (self.patients or units == n):
            raise ParameterError(f"units: expected those of {n} cases, got {units}.")
        references = check_count(self.references, "references")
        if check_count(self.set_aside, "set_aside", least=0) > references:
            raise ParameterError(f"set_aside: expected at most {references}, got {self.set_aside}.")
        if not isinstance(self.digest, str) or not re.fullmatch("[0-9a-f]{64}", self.digest):
            raise ParameterError(f"digest: expected 64 hexadecimal digits, got {self.digest!r}.")


@dataclass(frozen=True)
class Operation:
    """A threshold in use.

    Attributes
    ----------
    threshold
        Cases with at least this confidence are accepted.
    coverage, coverage_interval
        Share of the calibration cases that it accepts, and its interval (Clopper-Pearson; Chernoff where
        patients are the units, each of whom then counts once), as if the threshold had been chosen before
        they were seen.
    risks
        Observed selective risk, one a target; ``None`` where no calibration case is accepted, which only a
        target of 1, kept by any threshold, allows.
    """

    threshold: float
    coverage: float
    coverage_interval: tuple[float, float]
    risks: tuple[float | None, ...]

    def __post_init__(self) -> None:
        """Check the ranges."""
        object.__setattr__(self, "threshold", check_number(self.threshold, "threshold"))
        coverage = check_fraction(self.coverage, "coverage")
        low, high = _fractions(self.coverage_interval, "coverage_interval", 2)
        if not low <= coverage <= high:
            raise ParameterError(
                f"coverage_interval: expected ends on both sides of the coverage {coverage:g}, got "
                f"({low:g}, {high:g})."
            )
        risks = tuple(
            None if each is None else check_fraction(each, "risks") for each in _items(self.risks, "risks")
        )
        for name, value in {"coverage": coverage, "coverage_interval": (low, high), "risks": risks}.items():
            object.__setattr__(self, name, value)


def _items(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise ParameterError(f"{name}: expected a sequence of numbers, got {values!r}.")
    return tuple(values)


def _fractions(values: Any, name: str, count: int) -> tuple[float, ...]:
    found = tuple(check_fraction(each, name) for each in _items(values, name))
    if len(found) != count:
        raise ParameterError(f"{name}: expected {count} numbers, got {len(found)}.")
    return found


@dataclass(frozen=True)
class Certificate:
    """A certified threshold, or the honest answer that there is none.

    Attributes
    ----------
    operation
        The threshold and what comes with it; ``None`` where nothing can be promised.
    need
        Where nothing is certified: how many cases would do.
    targets, delta
        What holds for the accepted cases, all of it together, with probability at least ``1 - delta`` over
        the draw of the calibration cases.
    evidence
        What it was tested on.
    procedure
        What was fixed beforehand.
    steps
        All tests, in their order.
    """

    operation: Operation | None
    need: Need | None
    targets: tuple[Target, ...]
    delta: float
    evidence: Evidence
    procedure: Procedure
    steps: tuple[Step, ...] = field(repr=False)

    @property
    def n(self) -> int:
        """Cases that were tested on."""
        return self.evidence.n

    @property
    def digest(self) -> str:
        """Fingerprint of the calibration table."""
        return self.evidence.digest

    @property
    def certified(self) -> bool:
        """Whether there is a threshold."""
        return self.operation is not None

    @property
    def threshold(self) -> float | None:
        """Confidence from which on cases are accepted; ``None`` where nothing can be promised."""
        return None if self.operation is None else self.operation.threshold

    @property
    def coverage(self) -> float | None:
        """Share of the calibration cases that are accepted."""
        return None if self.operation is None else self.operation.coverage

    def __str__(self) -> str:
        """Say it in a sentence."""
        promise = " and ".join(map(str, self.targets))
        if self.operation is None:
            return f"Not certifiable with these {self.n} cases: {promise} (δ = {self.delta:g}). {self.need}"
        low, high = self.operation.coverage_interval
        once = ", each patient counting once" if self.evidence.patients else ""
        return (
            f"Accept cases with confidence of at least {self.operation.threshold:.6g}: {promise}{once}, with "
            f"probability {1.0 - self.delta:g}. {self.operation.coverage:.1%} of {self.n} cases are accepted "
            f"({low:.1%} to {high:.1%}{once})."
        )
