"""Vectors over cases, checked once: the door through which confidences and losses come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from segtrust._arguments import (
    check_count as check_count,
    check_delta as check_delta,
    check_fraction as check_fraction,
    check_number as check_number,
    check_seed as check_seed,
    describe as described,
)
from segtrust.errors import CaseLengthError, CaseValueError, TooFewCasesError

__all__ = [
    "check_all",
    "check_count",
    "check_delta",
    "check_fraction",
    "check_length",
    "check_number",
    "check_seed",
    "check_sum",
    "confidences_of",
    "dices_of",
    "kept",
    "losses_of",
    "vector",
    "weights_of",
]


def vector(
    values: Any, name: str, *, ids: Sequence[Any] | None = None, fewest: int = 1, n: int | None = None
) -> Any:
    """Give finite float64 numbers, one a case; a new array only where one is needed.

    Parameters
    ----------
    values
        A sequence, array, or pandas column.
    name
        How errors name the vector.
    ids
        How errors name a case; its place, counted from 0, where there are none.
    fewest
        Number of cases below which nothing can be said.
    n
        Number of cases that there are, where it is known.

    Examples
    --------
    >>> vector([1, 0.5], "confidence").tolist()
    [1.0, 0.5]
    """
    found = _as_floats(values, name)
    if found.ndim != 1:
        raise CaseLengthError(f"{name}: expected one number a case, got an array of shape {found.shape}.")
    if found.size < fewest:
        raise TooFewCasesError(f"{name}: expected at least {fewest} cases, got {found.size}.")
    if n is not None:
        check_length(found, n, name)
    if ids is not None:
        check_length(ids, found.size, "ids")
    check_all(np.isfinite(found), found, name, "a finite number", ids)
    return found


def _as_floats(values: Any, name: str) -> Any:
    if np.ma.is_masked(values):
        raise CaseValueError(f"{name}: expected a number for every case, got masked ones. Drop them first.")
    try:
        found = np.asarray(values)
        if found.dtype.kind not in "biufO":
            raise TypeError("text, dates and complex numbers have no rank")
        return found.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise CaseValueError(f"{name}: expected numbers, got {described(values)}.") from error


def check_all(good: Any, values: Any, name: str, expected: str, ids: Sequence[Any] | None = None) -> None:
    """Raise for the first case whose value is not what is expected, and say how many there are."""
    if good.all():
        return
    bad = np.flatnonzero(~good)
    case = bad[0] if ids is None else repr(ids[int(bad[0])])
    more = f" and {bad.size - 1} more" if bad.size > 1 else ""
    raise CaseValueError(
        f"{name}: expected {expected}, got {values[bad[0]]!s} for case {case}{more}. "
        "Mend or drop such cases first; they are never ranked."
    )


def confidences_of(values: Any, *, ids: Sequence[Any] | None = None, fewest: int = 1) -> Any:
    """Check confidences: finite, of any scale."""
    return vector(values, "confidence", ids=ids, fewest=fewest)


def losses_of(values: Any, n: int, *, ids: Sequence[Any] | None = None, unit: bool = False) -> Any:
    """Check losses of ``n`` cases: at least 0, and with ``unit`` at most 1."""
    found = vector(values, "loss", ids=ids, n=n)
    good = (found >= 0.0) & (found <= (1.0 if unit else np.inf))
    check_all(good, found, "loss", "a loss in [0, 1]" if unit else "a loss of at least 0", ids)
    check_sum(found, "loss")
    return found


def dices_of(values: Any, n: int, *, ids: Sequence[Any] | None = None) -> Any:
    """Check Dice coefficients, or other scores that are better the nearer they are to 1, of ``n`` cases."""
    found = vector(values, "dice", ids=ids, n=n)
    check_all((found >= 0.0) & (found <= 1.0), found, "dice", "a number in [0, 1]", ids)
    return found


def weights_of(values: Any, n: int) -> Any:
    """Check weights of ``n`` cases: at least 0, not all 0; ones where there are none."""
    if values is None:
        return np.ones(n)
    found = vector(values, "weights", n=n)
    check_all(found >= 0.0, found, "weights", "a weight of at least 0")
    if not found.any():
        raise CaseValueError("weights: expected at least one above 0, got only zeros.")
    check_sum(found, "weights")
    return found


def check_sum(values: Any, name: str) -> None:
    """Refuse numbers that are finite, but so large that their sum is not."""
    with np.errstate(over="ignore"):
        total = values.sum()
    if not np.isfinite(total):
        raise CaseValueError(
            f"{name}: expected a finite sum, got numbers up to {values.max():g} whose sum is beyond all "
            "floats. Divide all of them by the same number."
        )


def kept(values: Any) -> Any:
    """Copy an array so that nobody can change it."""
    copy = values.copy()
    copy.flags.writeable = False
    return copy


def check_length(values: Any, n: int, name: str) -> None:
    """Refuse a vector over other cases."""
    if len(values) != n:
        raise CaseLengthError(f"{name}: expected {n} values, one for each confidence, got {len(values)}.")
