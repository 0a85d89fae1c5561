"""What has to be fixed before a threshold is certified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.pvalues import get_p_value
from segtrust.selective.targets import Target
from segtrust.selective.vectors import check_fraction, check_seed

__all__ = ["FEWEST_REFERENCES", "Procedure", "procedure_of"]

SUITED = "suited"
FEWEST_REFERENCES = 10
"""Confidences below which a coverage cannot be told from them."""


@dataclass(frozen=True)
class Procedure:
    """How a threshold is sought; chosen before a loss is seen.

    Attributes
    ----------
    p_value
        ``"betting"``, ``"hoeffding-bentkus"``, ``"binomial"`` (for failure rates of single cases), or
        ``"suited"``: binomial where it applies, else betting.
    start_coverages
        Coverages at which a sequence starts; each of m of them is tested at level δ/m.
    step
        Distance of the coverages of two candidates.
    set_aside
        Share of the cases (patients) that only serve for candidates where there are no reference cases.
    seed
        Of the choice of those. Where none is given, the same cases are set aside each time if nearly all
        confidences differ, and others each time if many are equal; the certificate holds the seed, to repeat
        it. To try several is to choose by the losses, and voids the promise.

    Examples
    --------
    >>> Procedure(start_coverages=(0.9,), step=0.05).candidates(np.arange(100.0), 0.9)
    [10.0, 5.0, 0.0]
    """

    p_value: str = SUITED
    start_coverages: tuple[float, ...] = (0.5,)
    step: float = 0.01
    set_aside: float = 0.2
    seed: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.p_value != SUITED:
            get_p_value(self.p_value)
        check_fraction(self.step, "step", open_ends=True)
        check_fraction(self.set_aside, "set_aside", open_ends=True)
        if self.seed is not None:
            check_seed(self.seed)
        if isinstance(self.start_coverages, str) or not isinstance(self.start_coverages, Iterable):
            raise ParameterError(
                f"start_coverages: expected a tuple of numbers, such as (0.5,), got {self.start_coverages!r}."
            )
        starts = tuple(check_fraction(start, "start_coverages") for start in self.start_coverages)
        if not starts or 0.0 in starts:
            raise ParameterError(f"start_coverages: expected numbers in (0, 1], got {self.start_coverages}.")
        object.__setattr__(self, "start_coverages", starts)

    def p_value_for(self, target: Target, *, patients: bool) -> str:
        """Name of the p-value that tests a target; never a matter of the losses.

        Examples
        --------
        >>> Procedure().p_value_for(Target(0.1), patients=False)
        'betting'
        """
        if self.p_value != SUITED:
            return self.p_value
        return "binomial" if target.below_dice is not None and not patients else "betting"

    def candidates(self, reference: Any, start: float) -> list[float]:
        """Thresholds from the one of coverage ``start`` on to the one that accepts all reference cases."""
        descending = np.sort(reference)[::-1]
        coverages = np.append(np.arange(start, 1.0 - self.step / 2.0, self.step), 1.0)
        places = np.ceil(np.round(coverages * descending.size, 9)).astype(int) - 1
        return [float(each) for each in np.unique(descending[places])[::-1]]


def procedure_of(procedure: Procedure | None) -> Procedure:
    """Give the usual procedure where none is said; refuse what is none.

    Examples
    --------
    >>> procedure_of(None).step
    0.01
    """
    if not isinstance(procedure, Procedure | None):
        raise ParameterError(f"procedure: expected Procedure(...), got {procedure!r}.")
    return procedure or Procedure()
