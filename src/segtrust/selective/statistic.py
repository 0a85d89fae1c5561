"""The numbers of a risk-coverage curve that can be resampled, as values."""

from __future__ import annotations

from dataclasses import dataclass

from segtrust.errors import UnknownNameError
from segtrust.selective.curve import check_target

__all__ = ["STATISTICS", "Statistic", "coverage_at_risk", "get_statistic"]


@dataclass(frozen=True)
class Statistic:
    """A number of a risk-coverage curve that can be resampled.

    Attributes
    ----------
    name
        In results and tables.
    kind
        What the compiled walk computes.
    target
        Risk that the coverage is asked at.
    beyond_oracle
        Whether the value of the oracle is taken off.
    smooth
        Whether a small change of the cases makes a small change of the number. The jackknife needs that.
    """

    name: str
    kind: str
    target: float = 0.0
    beyond_oracle: bool = False
    smooth: bool = True


STATISTICS = {
    each.name: each
    for each in (
        Statistic("aurc", "aurc"),
        Statistic("augrc", "augrc"),
        Statistic("e_aurc", "aurc", beyond_oracle=True),
    )
}
"""Statistics by name; `coverage_at_risk` makes another for each target."""


def coverage_at_risk(target: float) -> Statistic:
    """Give the statistic "largest coverage whose risk is at most the target".

    A resample in which no threshold reaches the target counts as coverage 0.

    Examples
    --------
    >>> coverage_at_risk(0.1).name
    'coverage_at_risk(0.1)'
    """
    target = check_target(target)
    return Statistic(f"coverage_at_risk({target:g})", "coverage_at_risk", target, smooth=False)


def get_statistic(statistic: str | Statistic) -> Statistic:
    """Look a statistic up by its name; an unknown name lists the known ones."""
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str) or statistic not in STATISTICS:
        known = ", ".join([*STATISTICS, "or coverage_at_risk(target)"])
        raise UnknownNameError(f"Unknown statistic {statistic!r}; available: {known}.")
    return STATISTICS[statistic]
