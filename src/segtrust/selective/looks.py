"""Looks: what has been asked of the same calibration cases.

A guarantee at δ = 0.05 is about one question that was fixed before the losses were seen. Whoever asks again,
with another target, start, estimator or with some more cases, and keeps the answer that pleases, spends δ
again: after three questions at 0.05, all answers hold together with probability at least 0.85 (union bound).
So every question is recorded, and later answers state what is left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from segtrust._arguments import check_fraction, check_seed
from segtrust._display import Displayed
from segtrust._files import check_keys, naming_errors, rebuild
from segtrust._storage import Storable, without_format
from segtrust.errors import ParameterError

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_KEY_DIGITS = 16


@dataclass(frozen=True)
class Look:
    """One question that was asked of calibration cases.

    Attributes
    ----------
    asked
        The question in words.
    question
        Checksum of everything that the answer depends on, except the random seed.
    delta
        Probability that was spent on it.
    seed
        Seed of the random numbers that were drawn for it; asking the same question again uses it again.
    made
        Time with its zone.
    """

    asked: str
    question: str
    delta: float
    seed: int | None
    made: str

    def __post_init__(self) -> None:
        """Check values that may come from a file."""
        for name in ("asked", "question", "made"):
            if not isinstance(getattr(self, name), str):
                raise ParameterError(f"{name}: expected a text, got {getattr(self, name)!r}.")
        check_fraction(self.delta, "delta")
        if self.seed is not None:
            check_seed(self.seed)


@dataclass(frozen=True)
class CaseKeys:
    """What cases are recognised by: short hashes of the checksums of their maps and of their ids.

    Attributes
    ----------
    checksums, ids
        Hashes; empty if the cases have none.

    Examples
    --------
    >>> CaseKeys.of(ids=["a", "b"]).overlap(CaseKeys.of(ids=["b", "c"]))
    True
    >>> CaseKeys.of(["x"], ids=["a"]).overlap(CaseKeys.of(["y"], ids=["a"]))  # the same name, another map
    False
    """

    checksums: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()

    @classmethod
    def of(cls, checksums: Iterable[str] = (), ids: Iterable[str] = ()) -> CaseKeys:
        """Hash checksums and ids; empty checksums are left out."""
        return cls(frozenset(map(_short, filter(None, checksums))), frozenset(map(_short, ids)))

    def overlap(self, other: CaseKeys) -> bool:
        """Return whether a case is in both; true if that cannot be known.

        Checksums decide if both have some: the maps of another model are other cases, with other losses.
        """
        if self.checksums and other.checksums:
            return bool(self.checksums & other.checksums)
        if self.ids and other.ids:
            return bool(self.ids & other.ids)
        return True

    def __or__(self, other: CaseKeys) -> CaseKeys:
        """Return the keys of both."""
        return CaseKeys(self.checksums | other.checksums, self.ids | other.ids)


class LookLog(Displayed, Storable):
    """Record of the questions that have been asked of calibration cases.

    `CalibrationCases` has one; the command line keeps one per structure in a file beside the score tables.

    Examples
    --------
    >>> log = LookLog()
    >>> look = Look("mean loss at most 0.1", "3f", 0.05, 0, "2026-01-01T00:00:00+00:00")
    >>> log.record(CaseKeys.of(ids=["a", "b"]), look)
    >>> [look.asked for look in log.earlier(CaseKeys.of(ids=["b", "c"]), "other question")]
    ['mean loss at most 0.1']
    >>> log.earlier(CaseKeys.of(ids=["b", "c"]), "3f"), log.earlier(CaseKeys.of(ids=["d"]), "other question")
    ((), ())
    """

    _format = "segtrust-looks-1"

    def __init__(self) -> None:
        self._looks: list[tuple[Look, CaseKeys]] = []

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._looks)

    @property
    def looks(self) -> tuple[Look, ...]:
        """All questions, in their order."""
        return tuple(look for look, _ in self._looks)

    def earlier(self, cases: CaseKeys, question: str) -> tuple[Look, ...]:
        """Return the other questions that were asked of any of these cases.

        Parameters
        ----------
        cases
            What the cases are recognised by, see `CalibrationCases.keys`.
        question
            Checksum of the question that is asked now. Asking the same again is not another look.
        """
        return tuple(
            look for look, asked_of in self._looks if look.question != question and asked_of.overlap(cases)
        )

    def find(self, question: str) -> Look | None:
        """Return the look at which this question was asked before, or ``None``."""
        return next((look for look, _ in self._looks if look.question == question), None)

    def record(self, cases: CaseKeys, look: Look) -> None:
        """Add a question about cases; if it was asked before, the cases are added to it."""
        for number, (known, asked_of) in enumerate(self._looks):
            if known.question == look.question:
                self._looks[number] = known, asked_of | cases
                return
        self._looks.append((look, cases))

    def _shown(self) -> dict[str, Any]:
        return {"looks": len(self), "delta": sum(look.delta for look in self.looks)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; equal sets of cases are stored once."""
        sets = list(dict.fromkeys(cases for _, cases in self._looks))
        looks = [{**asdict(look), "cases": sets.index(cases)} for look, cases in self._looks]
        keys = [{"checksums": sorted(cases.checksums), "ids": sorted(cases.ids)} for cases in sets]
        return {"looks": looks, "cases": keys}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "looks") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(without_format(saved), ("looks", "cases"), source)
        log = cls()
        with naming_errors(source):
            sets = []
            for cases in values["cases"]:
                keys = check_keys(cases, ("checksums", "ids"), source)
                sets.append(CaseKeys(frozenset(keys["checksums"]), frozenset(keys["ids"])))
            for look in values["looks"]:
                rest = {name: value for name, value in look.items() if name != "cases"}
                number = look.get("cases")
                if not isinstance(number, int) or not 0 <= number < len(sets):
                    raise ParameterError(f"cases: expected the number of a set of cases, got {number!r}.")
                log._looks.append((rebuild(Look, rest, source), sets[number]))
        return log


def _short(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:_KEY_DIGITS]


def now() -> str:
    """Return the current time with its zone, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe_look(number: int) -> str:
    """Return which look at the cases this is.

    Examples
    --------
    >>> describe_look(3), describe_look(12)
    ('third look at these cases', 'look number 12 at these cases')
    """
    if number <= len(_ORDINALS):
        return f"{_ORDINALS[number - 1]} look at these cases"
    return f"look number {number} at these cases"


def spent(looks: Iterable[Look]) -> float:
    """Return the probability that was spent on some questions, at most 1."""
    return min(1.0, sum((look.delta for look in looks), 0.0))
