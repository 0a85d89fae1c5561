"""Looks: what has been asked of the same calibration cases.

A guarantee at δ = 0.05 is about one question that was fixed before the losses were seen. Whoever asks again,
with another target, start, estimator or with some more cases, and keeps the best answer, spends δ
again: after three questions at 0.05, all answers hold together with probability at least 0.85 (union bound).
So every question is recorded, and later answers state what is left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Self

from segtrust._arguments import check_fraction, check_seed, checksum_name
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


class LookLog(Displayed, Storable):
    """Record of the questions that have been asked of calibration cases.

    `CalibrationCases` has one; the command line keeps one per structure in a file beside the score tables.

    Examples
    --------
    >>> log = LookLog()
    >>> look = Look("mean loss at most 0.1", "3f", 0.05, 0, "2026-01-01T00:00:00+00:00")
    >>> log.record(case_keys(["a", "b"]), look)
    >>> [look.asked for look in log.earlier(case_keys(["b", "c"]), "other question")]
    ['mean loss at most 0.1']
    >>> log.earlier(case_keys(["b", "c"]), "3f"), log.earlier(case_keys(["d"]), "other question")
    ((), ())
    """

    _format = "segtrust-looks-1"

    def __init__(self) -> None:
        self._looks: list[tuple[Look, frozenset[str]]] = []

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._looks)

    @property
    def looks(self) -> tuple[Look, ...]:
        """All questions, in their order."""
        return tuple(look for look, _ in self._looks)

    def earlier(self, cases: frozenset[str], question: str) -> tuple[Look, ...]:
        """Return the other questions that were asked of any of these cases.

        Parameters
        ----------
        cases
            What the cases are recognised by, see `case_keys`. If it is empty, now or for an earlier question,
            that question counts: whether it was about the same cases cannot be known.
        question
            Checksum of the question that is asked now. Asking the same again is not another look.
        """
        return tuple(
            look
            for look, asked_of in self._looks
            if look.question != question and (not cases or not asked_of or asked_of & cases)
        )

    def find(self, question: str) -> Look | None:
        """Return the look at which this question was asked before, or ``None``."""
        return next((look for look, _ in self._looks if look.question == question), None)

    def record(self, cases: frozenset[str], look: Look) -> None:
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
        return {"looks": looks, "cases": [sorted(cases) for cases in sets]}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "looks") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(without_format(saved), ("looks", "cases"), source)
        log = cls()
        with naming_errors(source):
            for name, kind in (("looks", dict), ("cases", list)):
                entries = values[name]
                if not isinstance(entries, list) or not all(isinstance(entry, kind) for entry in entries):
                    raise ParameterError(f"{name}: expected a list of them, got {entries!r}.")
            sets = [frozenset(map(str, keys)) for keys in values["cases"]]
            for look in values["looks"]:
                rest = {name: value for name, value in look.items() if name != "cases"}
                number = look.get("cases")
                if not isinstance(number, int) or not 0 <= number < len(sets):
                    raise ParameterError(f"cases: expected the number of a set of cases, got {number!r}.")
                log._looks.append((rebuild(Look, rest, source), sets[number]))
        return log


def case_keys(ids: Iterable[str] = (), checksums: Iterable[str] = ()) -> frozenset[str]:
    """Return what cases are recognised by: short hashes of their ids and of the checksums of their maps.

    A shared id or a shared checksum makes a shared case: a renamed copy is recognised, and so is a map that
    was saved again. Empty checksums are left out.
    """
    names = [*(f"id:{name}" for name in ids), *map(checksum_name, checksums)]
    return frozenset(hashlib.sha256(name.encode()).hexdigest()[:_KEY_DIGITS] for name in names if name)


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
