"""Lines of a diary that cannot be read: of which cases they were, as far as that can be told."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from segtrust.io import Failure

__all__ = ["DamagedLine"]

_CASE = re.compile(rb'"case": ("(?:[^"\\]|\\.)*")')
"""A name, as JSON spells it; within a text its quotes would have backslashes before them."""
_START = b'{"pid": '
"""Of a line that tells of a start of the run, and of no case."""
_PRINTED = bytes(range(0x20, 0x7F))
"""All that JSON with escapes is made of."""
_FEW = 16
"""Bytes of noise in which no line can hide: the shortest is longer."""


@dataclass(frozen=True)
class DamagedLine:
    """A line that cannot be read.

    Attributes
    ----------
    number, at
        Of the line, from 1, and the byte that it begins with.
    cases
        Whose names can still be read in it.
    may_hide_more
        Whether it may have told of others too: noise may stand where the ends of several lines were.

    Examples
    --------
    >>> DamagedLine.of(b'{"stamp": [], "case": "a", "rows": [{"case": "a", "s#c: 1}]}', 3, at=200)
    DamagedLine(number=3, at=200, cases=('a',), may_hide_more=False)
    >>> DamagedLine.of(bytes(4096), 3, at=200)
    DamagedLine(number=3, at=200, cases=(), may_hide_more=True)
    """

    number: int
    at: int
    cases: tuple[str, ...]
    may_hide_more: bool

    @classmethod
    def of(cls, line: bytes, number: int, at: int) -> DamagedLine:
        """Read what can be read."""
        names = [_spoken(each) for each in _CASE.findall(line)]
        noise = len(line.rstrip(b"\n").translate(None, delete=_PRINTED))
        is_told = None not in names and (names or line.startswith(_START))
        cases = tuple(dict.fromkeys(name for name in names if name is not None))
        return cls(number, at, cases, noise > _FEW or not is_told)

    def is_made_good(self, places: Mapping[str, int]) -> bool:
        """Tell whether all that it told of is known for sure: later lines, which begin there, say it anew."""
        return not self.may_hide_more and not self.lost(places)

    def lost(self, places: Mapping[str, int]) -> list[str]:
        """Give the cases whose last outcome was in it; what earlier lines say of them is out of date."""
        return [case for case in self.cases if places.get(case, -1) < self.at]

    def failure(self, diary: str) -> Failure:
        """Say what is lost with it, and what to do."""
        of_cases = f" of {', '.join(self.cases)}" if self.cases else ""
        more = ", and perhaps of others" if self.may_hide_more and self.cases else ""
        reason = (
            f"{diary}, line {self.number}: expected what became of a case, got a damaged line{of_cases}"
            f"{more}. Where its files are there it is scored again; where they were moved away, put them "
            "back. Delete the line when nothing is missing from the table."
        )
        return Failure(self.cases[0] if self.cases else f"line {self.number}", diary, "DamagedLine", reason)


def _spoken(text: bytes) -> str | None:
    """Give a name as it was before JSON spelled it; ``None`` where it is damaged itself."""
    try:
        return str(json.loads(text))
    except ValueError:
        return None
