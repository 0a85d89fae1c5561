"""Looks: what has been asked of the same calibration cases.

A guarantee at δ = 0.05 is about one question that was fixed before the losses were seen. Whoever asks again,
with another target, start, estimator or with some more cases, and keeps the answer that pleases, spends δ
again: after three questions at 0.05, all answers hold together with probability at least 0.85 (union bound).
So every question is recorded, and later answers state what is left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
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


class LookLog(Displayed, Storable):
    """Record of the questions that have been asked of calibration cases.

    `CalibrationCases` has one; the command line keeps one per structure in a file beside the score table.

    Examples
    --------
    >>> log = LookLog()
    >>> log.record(["a", "b"], Look("mean loss at most 0.1", "3f", 0.05, 0, "2026-01-01T00:00:00+00:00"))
    >>> [look.asked for look in log.earlier(["b", "c"], "other question")]
    ['mean loss at most 0.1']
    >>> log.earlier(["b", "c"], "3f"), log.earlier(["d"], "other question")  # the same question; other cases
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

    def earlier(self, cases: Collection[str], question: str) -> tuple[Look, ...]:
        """Return the other questions that were asked of any of these cases.

        Parameters
        ----------
        cases
            Names of the cases, see `CalibrationCases.keys`.
        question
            Checksum of the question that is asked now. Asking the same again is not another look.
        """
        keys = set(map(_short, cases))
        return tuple(look for look, asked_of in self._looks if look.question != question and asked_of & keys)

    def find(self, question: str) -> Look | None:
        """Return the look at which this question was asked before, or ``None``."""
        return next((look for look, _ in self._looks if look.question == question), None)

    def record(self, cases: Collection[str], look: Look) -> None:
        """Add a question about cases, unless it was asked before."""
        if self.find(look.question) is None:
            self._looks.append((look, frozenset(map(_short, cases))))

    def _shown(self) -> dict[str, Any]:
        return {"looks": len(self), "delta": sum(look.delta for look in self.looks)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; cases are stored as short hashes, and equal sets of them once."""
        sets = list(dict.fromkeys(cases for _, cases in self._looks))
        looks = [{**asdict(look), "cases": sets.index(cases)} for look, cases in self._looks]
        return {"looks": looks, "cases": [sorted(cases) for cases in sets]}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "looks") -> Self:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(without_format(saved), ("looks", "cases"), source)
        log = cls()
        with naming_errors(source):
            sets = [frozenset(map(str, cases)) for cases in values["cases"]]
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
