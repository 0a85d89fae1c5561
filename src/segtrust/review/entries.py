"""Entries of the log of verdicts, and what holds after all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from segtrust.review.rows import Key

__all__ = ["Entry", "Seen", "Standings", "Verdict", "on_map"]


class Verdict(StrEnum):
    """What a reviewer says of a segmentation."""

    ACCEPT = "accept"
    REJECT = "reject"
    CORRECT = "correct"


@dataclass(frozen=True)
class Seen:
    """What a reviewer was shown when a verdict was given.

    Attributes
    ----------
    policy
        Fingerprint of what had decided; empty where nothing had.
    digest
        Fingerprint of the map, and of the mask where one was delivered; empty where none is known.
    confidence, decision
        Of the case, as they were; ``None`` and empty where there was none.
    """

    policy: str = ""
    digest: str = ""
    confidence: float | None = None
    decision: str = ""


@dataclass(frozen=True)
class Entry:
    """A row of the log.

    Attributes
    ----------
    id
        Its number; later entries have higher ones.
    time
        With its zone.
    reviewer
        Who.
    set, case, structure
        What it is about.
    verdict, comment
        What was said; empty for an undo.
    seen
        What it was said of.
    undoes
        The verdict that is taken back, or ``None``.
    """

    id: int
    time: str
    reviewer: str
    set: str
    case: str
    structure: str
    verdict: str
    comment: str
    seen: Seen = Seen()
    undoes: int | None = None

    @property
    def key(self) -> Key:
        """What it is about."""
        return self.set, self.case, self.structure


def on_map(entries: Iterable[Entry], digest: str) -> list[Entry]:
    """Keep what was said of the map and mask of this fingerprint: others have not been looked at yet.

    Where one of both is not known they are taken for the same.
    """
    return [entry for entry in entries if not digest or entry.seen.digest in ("", digest)]


@dataclass
class Standings:
    """What holds: the last verdict on each row of each reviewer that is not taken back.

    Examples
    --------
    >>> said = Entry(1, "", "ann", "", "a", "organ", "accept", "")
    >>> undo = Entry(2, "", "ann", "", "a", "organ", "", "", undoes=1)
    >>> found = Standings()
    >>> found.take([said])
    >>> [each.id for each in found.holding(said.key)]
    [1]
    >>> found.take([undo])
    >>> found.holding(said.key)
    []
    """

    last_id: int = 0
    _history: dict[Key, list[Entry]] = field(default_factory=dict)
    _undone: set[int] = field(default_factory=set)
    _reviewers: dict[str, None] = field(default_factory=dict)

    def take(self, entries: Iterable[Entry]) -> None:
        """Take in further entries, in their order."""
        for entry in entries:
            self._history.setdefault(entry.key, []).append(entry)
            self._reviewers[entry.reviewer] = None
            if entry.undoes is not None:
                self._undone.add(entry.undoes)
            self.last_id = max(self.last_id, entry.id)

    @property
    def reviewers(self) -> list[str]:
        """Who has ever said something, in the order of their first entry."""
        return list(self._reviewers)

    def history(self, key: Key) -> list[Entry]:
        """Give all entries on a row, oldest first."""
        return list(self._history.get(key, ()))

    def holding(self, key: Key) -> list[Entry]:
        """Give what holds of a row, one entry a reviewer, the latest last."""
        last = {
            entry.reviewer: entry
            for entry in self._history.get(key, ())
            if entry.undoes is None and entry.id not in self._undone
        }
        return sorted(last.values(), key=lambda entry: entry.id)

    def all_holding(self) -> Iterator[tuple[Key, list[Entry]]]:
        """Give what holds of each row on which anything does."""
        for key in self._history:
            found = self.holding(key)
            if found:
                yield key, found
