"""Argument checks: each returns the checked value, or raises a `ParameterError` that names the argument."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from segtrust.errors import ParameterError, SegtrustWarning

__all__ = [
    "check_count",
    "check_delta",
    "check_fraction",
    "check_nonnegative",
    "check_number",
    "check_seed",
    "check_threshold",
    "check_weight",
    "check_whole",
    "describe",
    "is_number",
    "renamed_attribute",
    "warn_caller",
]

_LONGEST = 60
_LARGEST_WEIGHT = 1e20
"""Weight up to which expectations are exact. Doubles would do for 1e100; but where a device has only singles,
their range ends at 1e38, and the weight is multiplied by 1e8 and by the sum of the probabilities."""
_SMALLEST_DELTA = 1e-12
_LARGEST_USUAL_DELTA = 0.5


def renamed_attribute(old: str, new: str) -> property:
    """Return a property that keeps an old name of an attribute or method working, with a warning."""

    def read(self: Any) -> Any:
        warn_caller(f"{type(self).__name__}.{old} was renamed: use {new}.", DeprecationWarning)
        return getattr(self, new)

    return property(read, doc=f"Deprecated name of `{new}`.")


def describe(value: Any) -> str:
    """Describe in a few words what was received instead of what was expected.

    Examples
    --------
    >>> describe("0.5"), describe([0.5]), describe(np.zeros(3))
    ("the text '0.5'", 'list [0.5]', 'ndarray of shape (3,)')
    """
    kind = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if hasattr(value, "shape"):
        return f"{kind} of shape {value.shape}"
    text = " ".join(repr(value).split())
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"the text {text}" if isinstance(value, str) else f"{kind} {text}"


def _show(value: Any) -> str:
    """Describe a value; a number is shown as it is."""
    if not isinstance(value, Real):
        return describe(value)
    try:
        float(value)
    except OverflowError:  # Python does not even print integers of more than 4300 digits
        return "a number too large for a float"
    return repr(value)


def check_nonnegative(
    value: Any,
    name: str,
    expected: str = "a finite number of at least 0",
    *,
    most: float = math.inf,
    remedy: str = "Choose a number within these limits.",
) -> float:
    """Check for one finite number from 0 to ``most``, of any real type.

    Examples
    --------
    >>> check_nonnegative(2, "beta")
    2.0
    """
    if not isinstance(value, float | Real):  # float first, because it is quick
        raise ParameterError(
            f"{name}: expected {expected}, got {describe(value)}. "
            "Pass one number; float(value) converts a text or an array with one element."
        )
    try:
        number = float(value)
    except OverflowError:  # integers and fractions may be of any size
        number = math.inf
    if not 0.0 <= number <= most or number == math.inf:
        raise ParameterError(f"{name}: expected {expected}, got {_show(value)}. {remedy}")
    return number


def check_threshold(value: Any, name: str) -> float:
    """Check for one number from 0 to 1 of any real type, such as a decision threshold.

    Examples
    --------
    >>> check_threshold(1, "threshold")
    1.0
    """
    remedy = "Divide a percentage by 100 and an 8-bit level by 255; take the sigmoid of a logit."
    return check_nonnegative(value, name, "a number in [0, 1]", most=1.0, remedy=remedy)


def check_weight(value: Any, name: str) -> float:
    """Check for one number from 0 to 1e20, such as the weight of a false negative."""
    expected = f"a finite number of at least 0 and at most {_LARGEST_WEIGHT:g}"
    return check_nonnegative(value, name, expected, most=_LARGEST_WEIGHT)


def check_number(value: Any, name: str, *, finite: bool = True) -> float:
    """Check for one number of Python or NumPy, which bool is not; never NaN, and infinity only if allowed.

    Examples
    --------
    >>> check_number(np.float32(0.5), "confidence")
    0.5
    """
    number = math.nan
    if is_number(value):
        try:
            number = float(value)
        except OverflowError:  # an integer beyond all floats
            number = math.inf
    if math.isnan(number) or (finite and math.isinf(number)):
        raise ParameterError(f"{name}: expected a {'finite ' * finite}number, got {_show(value)}.")
    return number


def check_fraction(value: Any, name: str, *, open_ends: bool = False) -> float:
    """Check for one number of Python or NumPy in [0, 1], or in (0, 1) with ``open_ends``.

    Examples
    --------
    >>> check_fraction(0.05, "delta", open_ends=True)
    0.05
    """
    inside = is_number(value) and (0.0 < value < 1.0 if open_ends else 0.0 <= value <= 1.0)
    if not inside:
        interval = "(0, 1)" if open_ends else "[0, 1]"
        raise ParameterError(f"{name}: expected a number in {interval}, got {_show(value)}.")
    return float(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy, which bool is not."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


def check_delta(delta: Any) -> float:
    """Check for an error probability in (0, 1) that is not too close to its ends to be computed with.

    One above 0.5 is accepted with a warning: it is probably 1 - δ.

    Examples
    --------
    >>> check_delta(0.05)
    0.05
    """
    number = check_fraction(delta, "delta", open_ends=True)
    if not _SMALLEST_DELTA <= number <= 1.0 - _SMALLEST_DELTA:
        raise ParameterError(
            f"delta: expected a number in [{_SMALLEST_DELTA:g}, 1 - {_SMALLEST_DELTA:g}], got {number!r}."
        )
    if number > _LARGEST_USUAL_DELTA:
        warn_caller(
            f"delta: {number:g} is the probability that the guarantee does not hold. For a guarantee with "
            f"probability {number:g}, pass delta={1.0 - number:.4g}."
        )
    return number


def check_whole(value: Any, name: str, *, least: int = 0, most: int | None = None) -> int:
    """Check for an integer from ``least`` to ``most``.

    Examples
    --------
    >>> check_whole(0, "trees", least=1)
    Traceback (most recent call last):
    ...
    segtrust.errors.ParameterError: trees: expected a whole number of at least 1, got 0.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ParameterError(f"{name}: expected a whole number of at least {least}, got {_show(value)}.")
    if most is not None and int(value) > most:
        raise ParameterError(f"{name}: expected a whole number of at most {most}, got {_show(value)}.")
    return int(value)


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """Check for a number of things: an integer of at least 1, or of at least ``least``.

    Examples
    --------
    >>> check_count(np.int64(3), "n")
    3
    """
    return check_whole(value, name, least=least)


def check_seed(seed: Any) -> np.random.Generator:
    """Return the random generator of a seed, which must be an integer: every random result has one."""
    return np.random.default_rng(check_whole(seed, "seed"))


def checksum_name(checksum: str) -> str:
    """Return a checksum in the form in which ``used_ids`` contains it beside ids; empty if it is empty.

    Examples
    --------
    >>> checksum_name("crc32:352441c2")
    'checksum:crc32:352441c2'
    """
    return f"checksum:{checksum}" if checksum else ""


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return a question that names the closest of the known names; nothing if none is close.

    Examples
    --------
    >>> suggestion("sdk", ["sdc", "amsp"]), suggestion("x", ["sdc"])
    (" Did you mean 'sdc'?", '')
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
    return f" Did you mean {close[0]!r}?" if close else ""


def warn_caller(message: str, category: type[Warning] = SegtrustWarning) -> None:
    """Warn about input that looks wrong; the warning points at the line outside segtrust that passed it.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("p: this looks like a mask.")
    >>> caught[0].category.__name__
    'SegtrustWarning'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "segtrust":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
