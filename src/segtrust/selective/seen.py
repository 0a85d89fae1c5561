"""Cases that something has learned from, and who must not use them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from segtrust.errors import CaseValueError, ParameterError, SeenCasesError
from segtrust.selective.vectors import check_length

__all__ = ["names_of", "refuse_seen"]

_SHOWN = 3


def names_of(ids: Sequence[Any] | None, n: int) -> tuple[str, ...]:
    """Give the ids of ``n`` cases as text, each once; nothing where there are none.

    Examples
    --------
    >>> names_of([7, 8], 2)
    ('7', '8')
    """
    if ids is None:
        return ()
    check_length(ids, n, "ids")
    names = tuple(str(each) for each in ids)
    name, times = Counter(names).most_common(1)[0] if names else ("", 1)
    if times > 1:
        raise CaseValueError(f"ids: expected each case once, got {name!r} {times} times.")
    return names


def refuse_seen(ids: Sequence[Any] | None, used_ids: Iterable[Any] | None, n: int) -> tuple[str, ...]:
    """Give the ids of ``n`` cases as text, and refuse those that something has learned from already.

    Parameters
    ----------
    ids
        One a case, or ``None``: then nothing can be checked, and cases that were used make the answer wrong
        without a sign of it.
    used_ids
        What a fitted estimator, a recalibration of probabilities (``seen_ids``) or the choice of a threshold
        has used.
    n
        Number of cases.

    Examples
    --------
    >>> refuse_seen(["a", "b"], ["c"], 2)
    ('a', 'b')
    """
    used = frozenset(str(each) for each in used_ids or ())
    if used and ids is None:
        raise ParameterError("ids: expected the id of each case, to be compared with used_ids; got none.")
    names = names_of(ids, n)
    seen = [name for name in names if name in used]
    if seen:
        shown = ", ".join(map(repr, seen[:_SHOWN])) + (", …" if len(seen) > _SHOWN else "")
        raise SeenCasesError(
            f"{len(seen)} of {n} cases have been used already ({shown}). Give cases that neither a fitted "
            "estimator, a recalibration nor the choice of the threshold has seen."
        )
    return names
