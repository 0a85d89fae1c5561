"""Checks of arguments that are single numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from segtrust.errors import ParameterError
from segtrust.kernels.array_checks import as_array as as_array, check_array as check_array

__all__ = [
    "check_fraction",
    "check_number",
    "check_weight",
    "check_whole",
    "described",
]

_LONGEST = 60
_LARGEST = float(np.finfo(float).max)
_HEAVIEST = 1e20
"""Weight up to which expectations are exact. Doubles would do for 1e100; but where a device has only singles,
their range ends at 1e38, and the weight is multiplied by 1e8 and by the sum of the probabilities."""


def described(value: Any) -> str:
    """Say in a few words what came instead of what was expected.

    Examples
    --------
    >>> described("0.5"), described([0.5]), described(np.zeros(3))
    ("the text '0.5'", 'list [0.5]', 'ndarray of shape (3,)')
    """
    kind = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "shape"):
        return f"{kind} of shape {value.shape}"
    shown = " ".join(repr(value).split())
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    return f"the text {shown}" if isinstance(value, str) else f"{kind} {shown}"


def check_number(
    value: Any,
    name: str,
    expected: str = "a finite number of at least 0",
    *,
    most: float = math.inf,
    remedy: str = "Choose a number within these limits.",
) -> None:
    """Refuse what is not one finite number from 0 to ``most``."""
    if not isinstance(value, float | Real):  # float first, because it is quick
        raise ParameterError(
            f"{name}: expected {expected}, got {described(value)}. "
            "Pass one number; float(value) makes one of a text or of an array with one element."
        )
    try:
        number = float(value)
    except OverflowError:  # whole numbers and fractions may be of any size
        came = "a number too large for a float"
        raise ParameterError(f"{name}: expected {expected}, got {came}. {remedy}") from None
    if not 0.0 <= number <= min(most, _LARGEST):
        raise ParameterError(f"{name}: expected {expected}, got {value!r}. {remedy}")


def check_fraction(value: Any, name: str) -> None:
    """Refuse what is not one number from 0 to 1, such as a decision threshold."""
    remedy = "Divide a percentage by 100 and an 8-bit level by 255; of a logit take the sigmoid."
    check_number(value, name, "a number in [0, 1]", most=1.0, remedy=remedy)


def check_weight(value: Any, name: str) -> None:
    """Refuse what is not one number from 0 to 1e20, such as the weight of a false negative."""
    check_number(value, name, f"a finite number of at least 0 and at most {_HEAVIEST:g}", most=_HEAVIEST)


def check_whole(value: Any, name: str, *, least: int = 0, most: int | None = None) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``.

    Examples
    --------
    >>> check_whole(0, "trees", least=1)
    Traceback (most recent call last):
    ...
    segtrust.errors.ParameterError: trees: expected a whole number of at least 1, got 0.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ParameterError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
    if most is not None and int(value) > most:
        raise ParameterError(f"{name}: expected a whole number of at most {most}, got {value!r}.")
