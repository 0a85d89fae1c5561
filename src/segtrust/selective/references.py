"""Reference confidences, from which candidate thresholds are taken: enough of them, and of other cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.selective.procedure import FEWEST_REFERENCES
from segtrust.selective.vectors import vector

__all__ = ["references_of"]

_TELLING = 10
"""Unlike values that two sets have in common by copying only."""

_CHANCE = 1e-6

_DIGITS_LOST = 1e-6
"""Distance of a value to its copy in single precision or with six decimals, as a share of the largest."""


def references_of(reference: Any, confidence: Any) -> Any:
    """Check confidences of unlabelled cases: finite, enough, and not those of the calibration cases.

    A threshold taken from the calibration confidences has seen the cases that it is tested on, and the
    promise is lost without a sign of it. So a reference is refused that is the calibration confidences, in
    any order, or a part of them, or has them as a part. Coarse confidences share values by chance; only
    values that do not repeat count as evidence.

    Examples
    --------
    >>> references_of(np.arange(10) / 10, np.arange(10) / 9).size
    10
    """
    found = vector(reference, "reference", fewest=0)
    if found.size < FEWEST_REFERENCES:
        raise TooFewCasesError(
            f"reference: expected confidences of at least {FEWEST_REFERENCES} unlabelled cases, got "
            f"{found.size}. Give more, or none: a share of the labelled cases is then set aside instead."
        )
    copied = found is confidence or _same(found, confidence) or _shared(found, confidence)
    if copied or _shared(_snapped(found, confidence), confidence):
        raise ParameterError(
            "reference: expected confidences of other cases, got those of the calibration cases, all or a "
            "part of them. Leave the reference out to have a share of the labelled cases set aside instead."
        )
    return found


def _snapped(found: Any, confidence: Any) -> Any:
    """Put values where a confidence is, if that is nearly there: copies may have lost digits in a file."""
    ordered = np.sort(confidence)
    right = np.clip(np.searchsorted(ordered, found), 1, ordered.size - 1)
    below, above = ordered[right - 1], ordered[right]
    nearest = np.where(found - below <= above - found, below, above)
    lost = _DIGITS_LOST * np.abs(ordered[[0, -1]]).max()
    # About the chance that a value of another case is that near to one of these.
    crowded = np.mean(np.diff(ordered) <= 2.0 * lost)
    if crowded**found.size > _CHANCE:
        return found
    return np.where(np.abs(found - nearest) <= lost, nearest, found)


def _same(found: Any, confidence: Any) -> bool:
    """Whether the vectors agree case by case, and would hardly do so by chance."""
    if not np.array_equal(found, confidence):
        return False
    shares = np.unique(found, return_counts=True)[1] / found.size
    return bool(np.sum(shares**2) ** found.size < _CHANCE)


def _shared(found: Any, confidence: Any) -> bool:
    """Whether one is part of the other, by values of which enough occur once only in the larger one."""
    smaller, larger = sorted((found, confidence), key=len)
    values, counts = np.unique(larger, return_counts=True)
    own, times = np.unique(smaller, return_counts=True)
    at = np.minimum(np.searchsorted(values, own), values.size - 1)
    if not np.all((values[at] == own) & (times <= counts[at])):
        return False
    is_whole = smaller.size == larger.size
    return bool((own.size if is_whole else np.count_nonzero(counts[at] == 1)) >= _TELLING)
