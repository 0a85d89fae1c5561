"""Numbers as people say them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["UNNAMED", "counted", "is_or_are", "listed", "percent", "set_name", "set_title"]

UNNAMED = "cases"
"""Name of a set that has none."""
_SHOWN, _SAME = 0.0005, 1e-9


def counted(number: int, what: str) -> str:
    """Give a number of things.

    Examples
    --------
    >>> counted(1, "case"), counted(20000, "case")
    ('1 case', '20,000 cases')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def is_or_are(number: int) -> str:
    """Give the verb of so many things.

    Examples
    --------
    >>> is_or_are(1), is_or_are(0)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def set_name(name: str) -> str:
    """Name a set in a sentence.

    Examples
    --------
    >>> set_name("ID"), set_name(UNNAMED)
    ('ID', 'these cases')
    """
    return "these cases" if name == UNNAMED else name


def set_title(name: str, cases: int) -> str:
    """Give the title of a set.

    Examples
    --------
    >>> set_title("ID", 81), set_title(UNNAMED, 81)
    ('ID, 81 cases', '81 cases')
    """
    return counted(cases, "case") if name == UNNAMED else f"{name}, {counted(cases, 'case')}"


def percent(share: float) -> str:
    """Give a share in percent; what is not all is not rounded to all, nor some to none.

    Examples
    --------
    >>> percent(0.4567), percent(1.0), percent(0.9999), percent(0.0001)
    ('45.7 %', '100 %', '> 99.9 %', '< 0.1 %')
    """
    if _SAME < share < _SHOWN:
        return "< 0.1 %"
    if 1.0 - _SHOWN < share < 1.0 - _SAME:
        return "> 99.9 %"
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
