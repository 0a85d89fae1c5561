"""Areas under a risk-coverage curve: one number for a ranking, under each convention in use.

All conventions agree where there are many cases and no ties; with thirty cases they differ by more than
estimators do. So an area is compared only with areas of the same convention, and the references (the oracle
and a confidence that knows nothing) follow the convention as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segtrust.errors import UnknownNameError

__all__ = ["CONVENTIONS", "Areas", "areas_of", "check_convention", "normalise"]

CONVENTIONS = ("paper", "plugin", "trapezoid-from-first")
"""Names of the conventions; `segtrust.selective.curve.RiskCoverageCurve.area` explains them."""

NO_GAP = 1e-12
"""Part of the random area below which the gap between random and oracle is rounding."""


@dataclass(frozen=True)
class Areas:
    """Areas under one curve.

    Attributes
    ----------
    paper
        Trapezoid from coverage 0 to 1.
    plugin
        Each step of coverage times the risk at its end.
    from_first
        Trapezoid from the first tie block to 1.
    generalised
        Trapezoid of coverage × risk from (0, 0): the AUGRC.
    """

    paper: float
    plugin: float
    from_first: float
    generalised: float

    def by(self, convention: str) -> float:
        """Area under the selective risk by the name of its convention."""
        check_convention(convention)
        return dict(zip(CONVENTIONS, (self.paper, self.plugin, self.from_first), strict=True))[convention]


def areas_of(coverages: Any, risks: Any) -> Areas:
    """Integrate a curve whose first point is at coverage 0."""
    from segtrust.selective.loops import integrate

    trapezoid, steps, generalised = integrate(coverages, risks)
    first = float(coverages[1] * risks[1])  # the stretch before the first block is flat
    return Areas(trapezoid, steps, trapezoid - first, generalised)


def check_convention(convention: str) -> None:
    """Refuse a convention that does not exist, and list those that do."""
    if convention not in CONVENTIONS:
        raise UnknownNameError(f"Unknown convention {convention!r}; available: {', '.join(CONVENTIONS)}.")


def normalise(area: float, oracle: float, random: float) -> float:
    """Place an area between the oracle's, 0, and that of a confidence that knows nothing, 1.

    Where all losses are equal no ranking is better than another and the answer is 0.

    Examples
    --------
    >>> normalise(0.2, oracle=0.1, random=0.5)
    0.25
    >>> normalise(0.3, oracle=0.3, random=0.3)
    0.0
    """
    gap = random - oracle
    return 0.0 if gap <= NO_GAP * random else (area - oracle) / gap
