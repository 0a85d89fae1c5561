"""Areas by the published arithmetic of neighbours that cannot be installed from PyPI.

These are re-implementations after reading, not their packages: of fd-shifts ``rc_stats.py`` at 56276af and
``rc_stats_utils.py`` at 8ac4f6d, of ValUES ``aurc.py`` at 1294593. Every figure made with them is marked so.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _suffix_risks(confidence: Any, loss: Any, order: Any) -> Any:
    """Mean loss of what is left after the i least sure cases have gone, for i from 0 to n - 1."""
    left = np.arange(loss.size, 0, -1)
    return confidence[order], loss[order][::-1].cumsum()[::-1] / left, left / loss.size


def fd_shifts_areas(confidence: Any, loss: Any) -> tuple[float, float]:
    """AURC and AUGRC of fd-shifts: a point where the confidence changes, the last risk held to coverage 0."""
    c, risks, coverages = _suffix_risks(confidence, loss, np.argsort(confidence))
    new = np.r_[True, c[1:] != c[:-1]]
    coverage, risk = np.r_[coverages[new], 0.0], risks[new]
    selective = -np.trapezoid(np.r_[risk, risk[-1]], coverage)
    return float(selective), float(-np.trapezoid(np.r_[risk, 0.0] * coverage, coverage))


def values_aurc(confidence: Any, loss: Any) -> float:
    """AURC of ValUES: trapezoid down to coverage 1/n, a block of ties cut after its first member."""
    n = loss.size
    c, risks, coverages = _suffix_risks(confidence, loss, np.argsort(confidence))
    removed = np.arange(n - 1)
    starts = removed[(removed == 0) | (c[removed] != c[removed - 1])]
    points = np.r_[0, starts + 1]
    coverage, risk = coverages[points], risks[points]
    if points[-1] < n - 1:  # the last block is tied: its risk is held, and its weight is what was left over
        coverage, risk = np.r_[coverage, 1.0 / n], np.r_[risk, risk[-1]]
    return float(-np.trapezoid(risk, coverage))


def values_e_aurc(confidence: Any, loss: Any) -> float:
    """E-AURC of ValUES: its trapezoid less a mean over the n risks of the sorted losses."""
    oracle = np.mean(np.sort(loss).cumsum() / np.arange(1, loss.size + 1))
    return values_aurc(confidence, loss) - float(oracle)
