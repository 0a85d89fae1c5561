"""What is fixed before any loss is seen: the guarantee requested (`Target`) and the method (`Procedure`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust._arguments import check_fraction, check_seed
from segtrust._types import PValueName, SearchName
from segtrust.errors import ParameterError
from segtrust.selective.intervals import chernoff_interval, clopper_pearson
from segtrust.selective.pvalues import P_VALUES
from segtrust.selective.vectors import is_failure, without_tensors


@dataclass(frozen=True)
class Observed:
    """Observed risk of some cases, compared with the limit of a target.

    Attributes
    ----------
    target
        The target that sets the limit.
    risk
        Mean loss of the cases, or their share of failures.
    low, high
        Confidence interval of the expected risk, valid for any number of independent cases.
    """

    target: Target
    risk: float
    low: float
    high: float

    @property
    def is_kept(self) -> bool:
        """Whether the observed risk is within the limit."""
        return self.risk <= self.target.risk


@dataclass(frozen=True)
class Target:
    """A limit on the mean loss, or on the share of failures, of the accepted cases.

    Attributes
    ----------
    risk
        The limit, in [0, 1].
    below_dice
        If given, the target is about failures: a case whose Dice (one minus its loss) is below this value
        counts as a failure with loss 1, any other case as a success with loss 0.
    loss
        Name of the loss that is limited, such as ``"iou"`` or ``"hamming"``; empty if it is one minus the
        Dice or has no name.

    Examples
    --------
    >>> str(Target(0.10)), str(Target(0.05, below_dice=0.8))
    ('the mean loss of accepted cases is at most 0.1', 'at most 5 % of accepted cases have a Dice below 0.8')
    >>> str(Target(0.05, loss="hamming"))
    'the mean loss (Hamming loss) of accepted cases is at most 0.05'
    """

    risk: float
    below_dice: float | None = None
    loss: str = ""

    def __post_init__(self) -> None:
        """Check the ranges."""
        object.__setattr__(self, "risk", check_fraction(self.risk, "target_risk"))
        if self.below_dice is not None:
            object.__setattr__(self, "below_dice", check_fraction(self.below_dice, "below_dice"))
        if not isinstance(self.loss, str):
            raise ParameterError(f"loss: expected the name of a loss, such as 'iou', got {self.loss!r}.")
        if self.below_dice is not None and self.loss not in ("", "dice"):
            raise ParameterError(
                f"below_dice: counts cases by their Dice, got the loss {self.loss!r}. Limit its mean instead."
            )

    def losses(self, loss: Any) -> Any:
        """Return the losses that the target limits: those given, or 1 for a failure and 0 for a success."""
        return loss if self.below_dice is None else is_failure(loss, self.below_dice) * 1.0

    def observed(self, loss: Any = None, level: float = 0.95, *, dice: Any = None) -> Observed:
        """Return the observed risk of one or more cases with its confidence interval.

        Parameters
        ----------
        loss
            Loss of each case, in [0, 1].
        level
            Confidence level of the interval.
        dice
            Dice of each case, in [0, 1], instead of the loss.

        Examples
        --------
        >>> seen = Target(0.2, below_dice=0.8).observed([0.1, 0.05, 0.3, 0.1])
        >>> seen.risk, round(seen.low, 3), round(seen.high, 3), seen.is_kept
        (0.25, 0.006, 0.806, False)
        """
        if (loss is None) == (dice is None):
            raise ParameterError("loss, dice: expected exactly one of them. The loss is 1 - Dice.")
        if loss is None:
            loss = 1.0 - np.asarray(without_tensors(dice), np.float64)
        losses = self.losses(np.asarray(without_tensors(loss), np.float64))
        risk = float(losses.mean())
        if self.below_dice is None:
            return Observed(self, risk, *chernoff_interval(risk, losses.size, level))
        return Observed(self, risk, *clopper_pearson(int(losses.sum()), losses.size, level))

    def p_value(self, losses: Any, name: str, level: float) -> float:
        """Return the p-value of "the risk is above the limit".

        Parameters
        ----------
        losses
            Losses that the target limits, as `losses` returns them.
        name
            Name of the test: a key of `P_VALUES`.
        level
            Level of the test.
        """
        if self.risk == 0.0:
            return 1.0  # no finite number of cases proves a risk of 0
        if self.risk == 1.0:
            return 0.0  # no loss is above 1
        return P_VALUES[name](losses, self.risk, level)

    @property
    def quantity(self) -> str:
        """What is limited, in a few words: the mean loss, with its name, or the share of failures.

        Examples
        --------
        >>> Target(0.05, loss="hamming").quantity, Target(0.05, below_dice=0.8).quantity
        ('mean loss (Hamming loss)', 'share below Dice 0.8')
        """
        if self.below_dice is not None:
            return f"share below Dice {self.below_dice:g}"
        from segtrust.risks import describe_loss

        return f"mean loss ({describe_loss(self.loss)})" if self.loss else "mean loss"

    def __str__(self) -> str:
        """Return the limit in words."""
        if self.below_dice is None:
            return f"the {self.quantity} of accepted cases is at most {self.risk:g}"
        return f"at most {100.0 * self.risk:g} % of accepted cases have a Dice below {self.below_dice:g}"


def describe_limits(targets: Iterable[Target], *, patients: bool) -> str:
    """Return in words what holds for the accepted cases.

    Parameters
    ----------
    targets
        The limits; all of them hold together.
    patients
        Whether patients are the units, so that each patient counts once.

    Examples
    --------
    >>> describe_limits([Target(0.1)], patients=True)
    'the mean loss of accepted cases is at most 0.1 (each patient counts once)'
    """
    return " and ".join(map(str, targets)) + (" (each patient counts once)" if patients else "")


def describe_confidence(delta: float) -> str:
    """Return 1 - δ in words, rounded down to four decimals: rounding up would guarantee too much.

    Examples
    --------
    >>> describe_confidence(0.05), describe_confidence(0.05 / 3), describe_confidence(1e-12)
    ('95 % confidence', '98.3333 % confidence', '99.9999 % confidence')
    """
    millionths = math.floor(round(1e6 * (1.0 - delta), 3))  # 1 - δ itself may be rounded
    return f"{min(millionths, 999_999) / 1e4:g} % confidence"


def describe_coverage(coverage: float, interval: tuple[float, float], of: str, *, patients: bool) -> str:
    """Return in one sentence which share of the cases is accepted, with its interval.

    Examples
    --------
    >>> describe_coverage(0.72, (0.665, 0.77), "300 cases", patients=False)
    '72.0 % of 300 cases are accepted (interval 66.5 % to 77.0 %).'
    """
    share, low, high = (f"{100.0 * value:.1f} %" for value in (coverage, *interval))
    weighting = "each patient counts once; " if patients else ""
    return f"{share} of {of} are accepted ({weighting}interval {low} to {high})."


def check_targets(targets: Any, name: str = "targets") -> tuple[Target, ...]:
    """Check for one target or a list of targets, and return a tuple.

    Examples
    --------
    >>> check_targets(Target(0.1)) == check_targets([Target(0.1)])
    True
    """
    if isinstance(targets, Target):
        return (targets,)
    if not isinstance(targets, Sequence) or isinstance(targets, str):
        raise ParameterError(
            f"{name}: expected a Target or a list of them, such as [Target(0.1)], got "
            f"{type(targets).__name__} ({targets})."
        )
    if not targets:
        raise ParameterError(f"{name}: expected at least one, got an empty list.")
    for target in targets:
        if not isinstance(target, Target):
            raise ParameterError(
                f"{name}: expected Target(risk), or Target(risk, below_dice=...), got {target!r}."
            )
    return tuple(targets)


_MOST_ADAPTIVE = 5000
"""Number of cases up to which adaptive stakes are used: at every rank, their time grows with its square."""


@dataclass(frozen=True)
class Procedure:
    """How a threshold is searched for; chosen before any loss is seen.

    Attributes
    ----------
    p_value
        Name of the test that computes p-values: ``"adaptive-betting"``, ``"betting"`` (fixed stakes),
        ``"hoeffding-bentkus"``, ``"binomial"`` (for failure rates of single cases), or ``"suited"``: binomial
        if it applies, else adaptive betting; fixed stakes for more than 5,000 cases, and for several targets
        at every rank.
    start_coverages
        Coverages at which a sequence of tests starts; with m sequences, each is tested at level δ/m.
    step
        Difference in coverage between two candidate thresholds, if these come from other cases.
    set_aside
        Share of the cases (or patients) that only provide candidate thresholds, if there are no reference
        cases and not every rank is tested.
    seed
        Seed of all random numbers: ties are broken, adaptive stakes get their order and cases are set aside
        by them. Without a seed, the same cases get the same random numbers each time if nearly all
        confidences differ, and different ones if many are equal; the certificate keeps the seed, so that it
        can be repeated. A seed of your own must be drawn at random for this data set: with few different
        confidences and no ids, a guarantee does not hold for every single seed, only on average over them.
        Trying several seeds means choosing by the losses, and invalidates the guarantee.
    search
        Which thresholds are tested: ``"ranks"``, the confidence of every calibration case below the start;
        ``"candidates"``, thresholds from reference cases or from cases that are set aside; or ``"suited"``:
        every rank, but candidates if there are reference cases or patients with several cases.

    Examples
    --------
    >>> Procedure(start_coverages=(0.9,), step=0.05).candidates(np.arange(100.0), 0.9)
    [10.0, 5.0, 0.0]
    """

    p_value: PValueName = "suited"
    start_coverages: tuple[float, ...] = (0.5,)
    step: float = 0.01
    set_aside: float = 0.2
    seed: int | None = None
    search: SearchName = "suited"

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, known in (("p_value", P_VALUES), ("search", ("ranks", "candidates"))):
            if getattr(self, name) not in ("suited", *known):
                names = ", ".join(["suited", *known])
                raise ParameterError(f"{name}: expected one of {names}, got {getattr(self, name)!r}.")
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

    def tests_for(
        self, targets: Sequence[Target], n: int, *, grouped: bool, by_rank: bool
    ) -> tuple[PValueName, ...]:
        """Return the name of the test for each target; it never depends on the losses.

        Parameters
        ----------
        targets
            The targets to be tested.
        n
            Number of cases.
        grouped
            Whether some patients have several cases; a patient's share of failures is then not 0 or 1.
        by_rank
            Whether every rank is tested.

        Examples
        --------
        >>> targets = [Target(0.1), Target(0.1, below_dice=0.8)]
        >>> Procedure().tests_for(targets, 300, grouped=False, by_rank=True)
        ('betting', 'binomial')
        """
        if self.p_value != "suited":
            return (self.p_value,) * len(targets)
        is_fixed = n > _MOST_ADAPTIVE or (by_rank and len(targets) > 1)
        betting: PValueName = "betting" if is_fixed else "adaptive-betting"
        return tuple(
            "binomial" if target.below_dice is not None and not grouped else betting for target in targets
        )

    def search_for(self, targets: Sequence[Target], *, grouped: bool, has_reference: bool) -> str:
        """Return which thresholds are tested, ``"ranks"`` or ``"candidates"``, for cases of this kind.

        With several targets at every rank, only a test whose chance of passing falls with the share of worse
        cases is known to be valid: binomial, or betting with fixed stakes.
        """
        is_ordered = len(targets) == 1 or self.p_value in ("suited", "betting", "binomial")
        if self.search == "ranks":
            if grouped:
                raise ParameterError(
                    "search: every rank can be tested if cases are independent, got patients with several "
                    "cases. Use search='suited', which takes candidate thresholds from other patients."
                )
            if not is_ordered:
                raise ParameterError(
                    f"search: with several targets, every rank can be tested by betting or binomial, got the "
                    f"p-value {self.p_value!r}. Use p_value='suited', or search='candidates'."
                )
            if has_reference:
                raise ParameterError(
                    "search: testing every rank takes no reference cases, got some. Leave them out, or use "
                    "search='candidates'."
                )
            return "ranks"
        by_rank = self.search == "suited" and is_ordered and not grouped and not has_reference
        return "ranks" if by_rank else "candidates"

    def candidates(self, reference: Any, start: float) -> list[float]:
        """Return candidate thresholds, highest first.

        They accept a share of ``start`` of the reference cases, then ``step`` more each, up to all of them.
        """
        descending = np.sort(reference)[::-1]
        coverages = np.append(np.arange(start, 1.0 - self.step / 2.0, self.step), 1.0)
        last_accepted = np.ceil(np.round(coverages * descending.size, 9)).astype(int) - 1
        return [float(threshold) for threshold in np.unique(descending[last_accepted])[::-1]]


def check_procedure(procedure: Procedure | None) -> Procedure:
    """Check that this is a procedure, and return it; the default one for ``None``."""
    if not isinstance(procedure, Procedure | None):
        raise ParameterError(f"procedure: expected Procedure(...), got {procedure!r}.")
    return procedure or Procedure()
