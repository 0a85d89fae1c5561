"""What an estimator may ask of a map's uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["UncertaintyNeeds"]


@dataclass(frozen=True)
class UncertaintyNeeds:
    """Which statistics of the uncertainty somebody will read.

    Attributes
    ----------
    entropies
        Σ u.
    doubt_limit
        Σ u and count of the pixels with more doubt than this; infinite for neither.
    side
        Largest Σ u over a box of this side; ``None`` for none.
    median
        The middle doubts.
    """

    entropies: bool = False
    doubt_limit: float = math.inf
    side: int | None = None
    median: bool = False
