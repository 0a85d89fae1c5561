"""What is promised of the accepted cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.pvalues import get_p_value
from segtrust.selective.vectors import check_fraction

__all__ = ["Observed", "Target", "targets_of"]

_SLACK = 1e-12
"""A Dice of exactly the cut-off is no failure, whichever way its loss was rounded."""


@dataclass(frozen=True)
class Observed:
    """What cases have of a quantity that is limited.

    Attributes
    ----------
    target
        The limit.
    risk
        Their mean loss, or share of failures.
    low, high
        Interval of its expectation, which holds for any number of independent cases.
    """

    target: Target
    risk: float
    low: float
    high: float

    @property
    def is_kept(self) -> bool:
        """Whether these cases are within the limit."""
        return self.risk <= self.target.risk


@dataclass(frozen=True)
class Target:
    """A limit on the mean loss, or on the share of failures, of the accepted cases.

    Attributes
    ----------
    risk
        The limit, in [0, 1].
    below_dice
        Where given, a case counts as a failure, with loss 1, if its Dice (one minus the loss) is below this,
        and as a success, with loss 0, otherwise.

    Examples
    --------
    >>> str(Target(0.10)), str(Target(0.05, below_dice=0.8))
    ('mean loss at most 0.1', 'a Dice below 0.8 in at most 0.05 of the cases')
    """

    risk: float
    below_dice: float | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        object.__setattr__(self, "risk", check_fraction(self.risk, "target_risk"))
        if self.below_dice is not None:
            object.__setattr__(self, "below_dice", check_fraction(self.below_dice, "below_dice"))

    def losses(self, loss: Any) -> Any:
        """Losses that the target is about."""
        return loss if self.below_dice is None else (loss > 1.0 - self.below_dice + _SLACK) * 1.0

    def observed(self, loss: Any, level: float = 0.95) -> Observed:
        """See what cases, at least one, have of it.

        Examples
        --------
        >>> found = Target(0.2, below_dice=0.8).observed([0.1, 0.05, 0.3, 0.1])
        >>> found.risk, round(found.low, 3), round(found.high, 3), found.is_kept
        (0.25, 0.006, 0.806, False)
        """
        losses = self.losses(np.asarray(loss, np.float64))
        risk, n = float(losses.mean()), losses.size
        is_share = self.below_dice is not None
        ends = clopper_pearson(int(losses.sum()), n, level) if is_share else chernoff_interval(risk, n, level)
        return Observed(self, risk, *ends)

    def p_value(self, losses: Any, name: str, level: float) -> float:
        """P-value, by its name, of "the risk is above the limit"; ``losses`` are those of `losses`."""
        if self.risk in (0.0, 1.0):  # no finite number of cases shows 0, and losses are never above 1
            return 1.0 - self.risk
        return get_p_value(name)(losses, self.risk, level)

    def __str__(self) -> str:
        """Say it in words."""
        if self.below_dice is None:
            return f"mean loss at most {self.risk:g}"
        return f"a Dice below {self.below_dice:g} in at most {self.risk:g} of the cases"


def targets_of(targets: Any, name: str = "targets") -> tuple[Target, ...]:
    """Refuse what is no sequence of targets, at least one.

    Examples
    --------
    >>> targets_of([Target(0.1)])
    (Target(risk=0.1, below_dice=None),)
    """
    if not isinstance(targets, Sequence) or isinstance(targets, str):
        raise ParameterError(
            f"{name}: expected a list of Target, such as [Target(0.1)], got {type(targets).__name__} "
            f"({targets})."
        )
    if not targets:
        raise ParameterError(f"{name}: expected at least one, got none.")
    for each in targets:
        if not isinstance(each, Target):
            raise ParameterError(
                f"{name}: expected Target(risk), or Target(risk, below_dice=...), got {each!r}."
            )
    return tuple(targets)
