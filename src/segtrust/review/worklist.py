"""Which rows are shown, in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from segtrust.policy import Decision
from segtrust.review.deciding import Decisions
from segtrust.review.rows import Rows

__all__ = ["Query", "Sort", "VerdictFilter", "Verdicts", "select"]


class Sort(StrEnum):
    """By what rows are sorted; `WORKLIST` is deferred first, then the lowest confidence."""

    WORKLIST = "worklist"
    CASE = "case"
    CONFIDENCE = "confidence"
    DICE = "dice"
    SET = "set"
    GROUP = "group"
    VERDICT = "verdict"


class VerdictFilter(StrEnum):
    """Which rows are shown, by the verdict that holds."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    MINE = "mine"
    ACCEPT = "accept"
    REJECT = "reject"
    CORRECT = "correct"


@dataclass(frozen=True)
class Query:
    """What somebody wants to see.

    Attributes
    ----------
    sort, descending
        The order; rows that have no such value come last, and equal ones stay in the order of the table.
    set, group, structure, decision
        Rows that have this value; all where it is ``None``.
    verdict
        See `VerdictFilter`.
    search
        Rows whose case has this in its name, whatever the case of the letters.
    """

    sort: Sort = Sort.WORKLIST
    descending: bool = False
    set: str | None = None
    group: str | None = None
    structure: str | None = None
    decision: Decision | None = None
    verdict: VerdictFilter | None = None
    search: str = ""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What holds of each row.

    Attributes
    ----------
    names
        The last verdict of anybody; ``""`` where there is none.
    is_mine
        Whether one of the reviewer who asks holds.
    """

    names: Any
    is_mine: Any


def select(rows: Rows, decisions: Decisions, verdicts: Verdicts, query: Query) -> Any:
    """Give the places of the rows that are wanted, in their order."""
    wanted = np.flatnonzero(_is_wanted(rows, decisions, verdicts, query))
    keys = _sort_keys(rows, decisions, verdicts, query.sort)
    signed = [(-key if query.descending and turns else key)[wanted] for key, turns in keys]
    return wanted[np.lexsort(signed[::-1])]


def _is_wanted(rows: Rows, decisions: Decisions, verdicts: Verdicts, query: Query) -> Any:
    wanted = np.ones(rows.size, bool)
    for name in ("set", "group", "structure"):
        value = getattr(query, name)
        if value is not None:
            wanted &= rows.texts(name) == value
    if query.decision is not None:
        wanted &= decisions.names == str(query.decision)
    if query.verdict is not None:
        wanted &= _has_verdict(verdicts, query.verdict)
    if query.search:
        sought = query.search.casefold()
        wanted &= np.array([sought in case for case in rows.folded_cases], bool)
    return wanted


def _has_verdict(verdicts: Verdicts, wanted: VerdictFilter) -> Any:
    if wanted is VerdictFilter.MINE:
        return verdicts.is_mine
    if wanted is VerdictFilter.UNDECIDED:
        return verdicts.names == ""
    return verdicts.names != "" if wanted is VerdictFilter.DECIDED else verdicts.names == str(wanted)


_VERDICT_RANKS: Mapping[str, int] = {"accept": 0, "correct": 1, "reject": 2, "": 3}


def _sort_keys(rows: Rows, decisions: Decisions, verdicts: Verdicts, sort: Sort) -> list[tuple[Any, bool]]:
    """Give the keys of an order, the first one first, and whether each turns around with it."""
    if sort is Sort.WORKLIST:
        trusted = np.isin(decisions.names.astype(str), [str(Decision.ACCEPT), str(Decision.NO_FINDING)])
        urgent = np.where(np.isnan(rows.confidence), -np.inf, rows.confidence)
        return [(trusted.astype(np.int8), True), (urgent, True)]
    if sort in (Sort.CONFIDENCE, Sort.DICE):
        values = rows.confidence if sort is Sort.CONFIDENCE else rows.dice
        return [(np.isnan(values), False), (np.nan_to_num(values), True)]
    if sort is Sort.VERDICT:
        ranks = np.array([_VERDICT_RANKS[name] for name in verdicts.names.tolist()], np.int8)
        return [(verdicts.names == "", False), (ranks, True)]
    return [(rows.texts(str(sort)) == "", False), (rows.ranks[str(sort)], True)]
