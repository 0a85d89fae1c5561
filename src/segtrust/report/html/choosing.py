"""Which cases are shown as pictures: the best and the worst of those accepted, and of those deferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.engine import loss_of_row
from segtrust.policy import Decision
from segtrust.report.html.run import ReportedRun

__all__ = ["MOST_CASES", "Choice", "choices_of", "kept_and_deferred"]

Row = dict[str, Any]
MOST_CASES = 48
"""That are opened again for one page."""
_MOST_OF_KIND = 2


@dataclass(frozen=True)
class Choice:
    """Cases of one kind, to be shown.

    Attributes
    ----------
    title, why
        Which they are, and what that means.
    rows
        The first is the most telling one.
    """

    title: str
    why: str
    rows: tuple[Row, ...]


def kept_and_deferred(rows: Sequence[Row], run: ReportedRun) -> tuple[list[Row], list[Row]]:
    """Part rows by their decision; where nobody decides, into the surer half and the other."""
    if any(row.get("decision") for row in rows):
        return (
            [row for row in rows if row.get("decision") not in _DEFERRED],
            [row for row in rows if row.get("decision") in _DEFERRED],
        )
    middle = float(np.median([row[run.main] for row in rows]))
    return (
        [row for row in rows if row[run.main] >= middle],
        [row for row in rows if row[run.main] < middle],
    )


_DEFERRED = (str(Decision.DEFER), "", None)
"""Where no policy is for a structure, somebody has to look at it."""


def choices_of(rows: Sequence[Row], run: ReportedRun) -> list[Choice]:
    """Choose cases of one set and structure; kinds of which there is no case are left out.

    Cases with a truth are the best and worst by their loss, others by their confidence. Those whose truth is
    empty are not among them where they do not count.
    """
    if run.how.drop_empty:
        rows = [row for row in rows if row.get("truth_ratio") != 0.0]
    if not rows:
        return []
    most = max(1, min(_MOST_OF_KIND, MOST_CASES // (4 * len(run.groups))))
    parts = kept_and_deferred(rows, run)
    is_decided = any(row.get("decision") for row in rows)
    words = _WORDS[is_decided, _is_judged(rows)]
    names = _NAMES[is_decided]
    if not is_decided and not parts[1]:
        names, words = ("of all cases", ""), (_EQUAL, _EQUAL)
    found = []
    for name, part, kinds in zip(names, parts, words, strict=True):
        for is_worst, (kind, why) in zip((True, False), kinds, strict=True):
            chosen = _ends(part, run, most, is_worst)
            if chosen:
                found.append(Choice(f"{kind} {name}", why, chosen))
    return _each_once(found)


def _is_judged(rows: Sequence[Row]) -> bool:
    """Tell whether some cases are better than others, by their losses."""
    losses = [loss for row in rows if (loss := loss_of_row(row)) is not None]
    return len(set(losses)) > 1


_NAMES = {True: ("accepted", "deferred"), False: ("of the surer half", "of the less sure half")}
_EQUAL = (("Worst", "all are equally sure"), ("Best", "all are equally sure"))
_WORDS = {
    (True, True): (
        (("Worst", "slips through unseen"), ("Best", "passes unseen")),
        (("Worst", "is held back"), ("Best", "is held back all the same")),
    ),
    (True, False): (
        (("Least sure", "just trusted"), ("Surest", "trusted without doubt")),
        (("Least sure", "look at these first"), ("Surest", "just held back")),
    ),
    (False, True): (
        (("Worst", "ranked too high"), ("Best", "rightly ranked high")),
        (("Worst", "rightly ranked low"), ("Best", "ranked too low")),
    ),
    (False, False): (
        (("Least sure", "near the middle"), ("Surest", "surest of all")),
        (("Least sure", "least sure of all"), ("Surest", "near the middle")),
    ),
}
"""By whether a policy decides and cases are judged, of those kept and those not: the worst and the best."""


def _ends(rows: Sequence[Row], run: ReportedRun, most: int, worst: bool) -> tuple[Row, ...]:
    def badness(row: Row) -> tuple[float, float]:
        loss = loss_of_row(row)
        return (0.0 if loss is None else loss, -float(row[run.main]))

    return tuple(sorted(rows, key=badness, reverse=worst)[:most])


def _each_once(choices: Sequence[Choice]) -> list[Choice]:
    """Show no case twice: of few cases the best are among the worst."""
    seen: set[tuple[Any, Any]] = set()
    found = []
    for choice in choices:
        new = tuple(row for row in choice.rows if (row["case"], row["structure"]) not in seen)
        seen |= {(row["case"], row["structure"]) for row in new}
        if new:
            found.append(Choice(choice.title, choice.why, new))
    return found
