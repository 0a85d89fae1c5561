"""Labels of cases: patients, groups, ids. They are compared as text, however they came.

A table that has been through a file gives back ``7``, ``7.0`` or ``"7"`` for the same patient, so whole
numbers are written without a point and compared with text. Text and numbers within one column are refused:
somebody has mixed two ways of naming, and whether ``7`` and ``"7"`` are the same can only be guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from segtrust.errors import CaseLengthError, CaseValueError
from segtrust.selective.vectors import check_length

__all__ = ["labels_of", "text_of", "texts_of"]


def texts_of(values: Any, n: int, name: str, *, ids: Sequence[Any] | None = None) -> Any:
    """Give the label of each case as an array of text.

    Parameters
    ----------
    values
        Text or numbers, one a case: a sequence, array, or pandas column.
    n
        Number of cases.
    name, ids
        How errors name the labels, and a case; its place, counted from 0, where there are no ids.

    Examples
    --------
    >>> texts_of([7.0, 8], 2, "patients").tolist()
    ['7', '8']
    """
    found = _column(values, name)
    check_length(found, n, name)
    distinct, place = _distinct(found)
    texts = [text_of(each) for each in distinct]
    if None in texts:
        bad = texts.index(None)
        at = int(np.flatnonzero(place == bad)[0])
        case = at if ids is None else repr(ids[at])
        raise CaseValueError(
            f"{name}: expected text or a number, got {distinct[bad]!r} for case {case}. "
            "Give it a label, or leave the case out."
        )
    _check_alike(distinct, name)
    return np.array(texts, dtype=str)[place] if texts else np.zeros(0, dtype=str)


def labels_of(values: Any, n: int, name: str) -> Any:
    """Give the group (patient, structure, centre) of each case as numbers from 0 on.

    In the order of the numbers where all labels are whole ones, else in that of the text.

    Examples
    --------
    >>> labels_of(["b", "a", "b"], 3, "patients").tolist()
    [1, 0, 1]
    """
    names, place = np.unique(texts_of(values, n, name), return_inverse=True)
    try:
        order = np.lexsort((names, names.astype(np.int64)))
    except (ValueError, OverflowError):
        return place
    return np.argsort(order)[place]


def text_of(value: Any) -> str | None:
    """Give one label as text, whole numbers without a point; ``None`` for what is missing or no label.

    Examples
    --------
    >>> text_of("a"), text_of(1.0), text_of(np.int64(1)), text_of(0.5), text_of(float("nan")), text_of("")
    ('a', '1', '1', '0.5', None, None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    return str(value) or None if isinstance(value, str | int | float) else None


def _column(values: Any, name: str) -> Any:
    """Give an array that has not turned numbers into text, as NumPy does with a list of both."""
    if isinstance(values, str | bytes | set | frozenset | dict) or not isinstance(values, Iterable):
        raise CaseLengthError(f"{name}: expected one label a case, in their order, got {values!r}.")
    is_array = hasattr(values, "dtype")
    found = np.asarray(values) if is_array else np.array(_listed(values), dtype=object)
    if found.ndim != 1:
        raise CaseLengthError(f"{name}: expected one label a case, got an array of shape {found.shape}.")
    return found


def _listed(values: Iterable[Any]) -> Sequence[Any]:
    return values if isinstance(values, list | tuple) else list(values)


def _distinct(found: Any) -> tuple[list[Any], Any]:
    """Give the different values and the place of each case's among them; of objects, a kind counts too."""
    if found.dtype.kind in "USiufb":
        distinct, place = np.unique(found, return_inverse=True)
        return distinct.tolist(), place
    numbers: dict[Any, int] = {}
    places = [numbers.setdefault(_key(each), len(numbers)) for each in found.tolist()]
    _, first = np.unique(places, return_index=True)
    return [found[at] for at in first], np.array(places, dtype=np.intp)


def _key(value: Any) -> Any:
    """Tell values apart that Python takes for equal, such as 1 and True, or that have no hash."""
    return type(value).__name__, repr(value)


def _check_alike(distinct: Sequence[Any], name: str) -> None:
    kinds: dict[str, Any] = {}
    for each in distinct:
        kinds.setdefault(_kind(each), each)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise CaseValueError(
            f"{name}: expected labels of one kind, got {one} ({first!r}) and {other} ({second!r}). Write all "
            "of them as text, or all as numbers."
        )


def _kind(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return "truth values"
    return "text" if isinstance(plain, str) else "numbers"
