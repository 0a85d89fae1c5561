"""Numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["UNNAMED", "counted", "listed", "percent", "set_title"]

UNNAMED = "cases"
"""Name of a set that has none."""


def counted(number: int, what: str) -> str:
    """Give a number of things.

    Examples
    --------
    >>> counted(1, "case"), counted(20000, "case")
    ('1 case', '20,000 cases')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def set_title(name: str, cases: int) -> str:
    """Give the title of a set.

    Examples
    --------
    >>> set_title("ID", 81), set_title(UNNAMED, 81)
    ('ID, 81 cases', '81 cases')
    """
    return counted(cases, "case") if name == UNNAMED else f"{name}, {counted(cases, 'case')}"


def percent(share: float) -> str:
    """Give a share in percent.

    Examples
    --------
    >>> percent(0.4567), percent(1.0)
    ('45.7 %', '100 %')
    """
    return f"{100.0 * share:.1f}".removesuffix(".0") + " %"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Give names as a list, some of them if there are many.

    Examples
    --------
    >>> listed(["a", "b"]), listed(list("abcdef"), 2)
    ('a and b', 'a, b and 4 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
