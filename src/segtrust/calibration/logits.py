"""Logits of pixels, and their counts: all that a scaling is fitted to.

Of maps in whole numbers each code is counted. Logits of floats are counted in bins of 1/1024 of a unit, and
each bin stands for the mean of its logits: the likelihood of a bin then differs from that of its pixels by
less than 1e-7 of its curvature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.calibration.pixels import codes_of, labelled_blocks, on_host
from segtrust.maps import Case

__all__ = ["LogitCounts", "Points", "is_end", "limit_of", "logits_of"]

_FLOAT_LIMIT = 55.0 * math.log(2.0)
"""Largest logit that is told apart: that of 1 - 2^-55."""
_PER_UNIT = 1024
_HALF = math.ceil(_FLOAT_LIMIT * _PER_UNIT) + 1
_BINS = 2 * _HALF + 1


def limit_of(dtype: Any, ends: str) -> float:
    """Give the largest logit of a type of map.

    With ``ends="clip"`` that of 1 - ε, where ε is a quarter of the type's step below 1: in the middle of
    what is rounded to 1 (and, for whole numbers, to 0).

    Examples
    --------
    >>> round(limit_of(np.dtype("uint8"), "clip"), 3)  # ε = 1 / 1020
    6.927
    """
    if ends == "keep":
        return _FLOAT_LIMIT
    quarter = (np.finfo(dtype).epsneg if dtype.kind == "f" else 1.0 / np.iinfo(dtype).max) / 4.0
    return min(_FLOAT_LIMIT, math.log1p(-quarter) - math.log(quarter))


def logits_of(p: Any, limit: float) -> Any:
    """Give log(p / (1 - p)), at most ``limit`` in size."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -limit, limit)


def is_end(p: Any) -> Any:
    """Tell which probabilities are exactly 0 or 1."""
    return (p == 0.0) | (p == 1.0)


@dataclass(frozen=True, eq=False)
class Points:
    """Logits with the weights of background and foreground pixels that have them."""

    logits: Any
    background: Any
    foreground: Any


@dataclass(eq=False)
class LogitCounts:
    """Counts that cases are added to one at a time.

    Attributes
    ----------
    ends
        ``"keep"`` leaves out pixels at exactly 0 and 1, ``"clip"`` counts them at the limit.
    band_px
        Only pixels this near to the predicted boundary, or all.
    weigh
        ``"pixels"`` or ``"cases"``: whether all pixels weigh the same, or all cases.
    """

    ends: str
    band_px: float | None
    weigh: str
    _tables: dict[str, Any] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        """Count the pixels of one case."""
        case = on_host(case)
        kind = case.prediction.probabilities.dtype.newbyteorder("=")
        table = self._codes(case, kind) if kind.kind == "u" else self._bins(case, limit_of(kind, self.ends))
        total = table[:2].sum()
        if total:
            name = kind.name if kind.kind == "u" else "float"
            share = table / total if self.weigh == "cases" else table
            self._tables[name] = self._tables.get(name, 0.0) + share

    def points(self) -> Points:
        """Give all that was counted, without the logits that no pixel has."""
        parts = [self._points(name, table) for name, table in sorted(self._tables.items())]
        columns = np.concatenate(parts, axis=1) if parts else np.zeros((3, 0))
        return Points(*columns[:, columns[1] + columns[2] > 0.0])

    def _codes(self, case: Case, kind: Any) -> Any:
        """Count background and foreground pixels of each code; two rows."""
        size = np.iinfo(kind).max + 1
        flat = np.zeros(2 * size)
        for codes, labels in labelled_blocks(case, self.band_px):
            flat += np.bincount(labels * size + codes, minlength=2 * size)
        table = flat.reshape(2, size)
        if self.ends == "keep":
            table[:, [0, -1]] = 0.0
        return table

    def _bins(self, case: Case, limit: float) -> Any:
        """Count background and foreground pixels of each bin, and add up their logits; four rows."""
        table = np.zeros(4 * _BINS)
        for p, labels in labelled_blocks(case, self.band_px):
            inner = ~is_end(p) if self.ends == "keep" else slice(None)
            logits = logits_of(p[inner], limit)
            place = labels[inner] * _BINS + np.rint(logits * _PER_UNIT).astype(np.intp) + _HALF
            table[: 2 * _BINS] += np.bincount(place, minlength=2 * _BINS)
            table[2 * _BINS :] += np.bincount(place, logits, minlength=2 * _BINS)
        return table.reshape(4, _BINS)

    def _points(self, name: str, table: Any) -> Any:
        """Give logit, background and foreground weight of each code, or of each bin and side."""
        if name != "float":
            kind = np.dtype(name)
            return np.stack([logits_of(codes_of(kind), limit_of(kind, self.ends)), *table])
        counts, sums = table[:2].ravel(), table[2:].ravel()
        means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0.0)
        sides = np.repeat([[1.0, 0.0], [0.0, 1.0]], _BINS, axis=1)
        return np.stack([means, *(sides * counts)])
