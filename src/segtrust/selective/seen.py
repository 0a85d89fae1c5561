"""Cases that something has learned from, and who must not use them again."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SeenCasesError
from segtrust.saved import check_keys
from segtrust.selective.labels import text_of
from segtrust.selective.vectors import check_length

__all__ = ["HashedIds", "ids_of", "names_of", "refuse_seen", "used_names"]

_SHOWN = 3
_MISSING = ("<NA>", "NaT", "nan")
"""What pandas and NumPy write for a missing value."""


@dataclass(frozen=True)
class HashedIds:
    """Ids of cases that nobody can read off, but that can be compared with others.

    An id may be that of a patient, and what is kept is a salted SHA-256 of each. Whoever can guess an id can
    still test the guess: ids of a few digits are hidden from a reader, not from one who tries them all.

    Attributes
    ----------
    salt
        Put in front of each id, so that the same id looks different in each policy.
    hashes
        Of each id, in hexadecimal digits.

    Examples
    --------
    >>> hashed = HashedIds.of(["patient 7"], salt="x")
    >>> "patient 7" in hashed, "patient 8" in hashed, len(hashed)
    (True, False, 1)
    """

    salt: str = ""
    hashes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, ids: Iterable[Any], salt: str) -> HashedIds:
        """Hash ids."""
        return cls(salt, frozenset(_hashed(name, salt) for name in used_names(ids)))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "used_ids") -> HashedIds:
        """Make again what `to_dict` gave."""
        values = check_keys(saved, ("salt", "hashes"), source)
        return cls(values["salt"], values["hashes"])

    def __post_init__(self) -> None:
        """Check that there are hashes and nothing else."""
        hashes = self.hashes
        is_list = isinstance(hashes, Collection) and not isinstance(hashes, str)
        if not isinstance(self.salt, str) or not is_list or not all(map(_is_hash, hashes)):
            raise ParameterError("used_ids: expected a salt and hashes of 64 hexadecimal digits each.")
        object.__setattr__(self, "hashes", frozenset(hashes))

    def to_dict(self) -> dict[str, Any]:
        """Give what `from_dict` takes, ready for JSON."""
        return {"salt": self.salt, "hashes": sorted(self.hashes)}

    def __contains__(self, name: object) -> bool:
        """Whether an id is among them."""
        return _hashed(str(_name_of(name)), self.salt) in self.hashes

    def __len__(self) -> int:
        """Count them."""
        return len(self.hashes)


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _hashed(name: str, salt: str) -> str:
    return hashlib.sha256(f"{salt}\n{name}".encode()).hexdigest()


def ids_of(ids: Any) -> tuple[str, ...] | None:
    """Give ids as text, as they are compared: numbers and text are the same name, 7.0 is 7.

    Examples
    --------
    >>> ids_of([7, 8.0, "b"])
    ('7', '8', 'b')
    """
    if ids is None:
        return None
    unordered = isinstance(ids, str | bytes | set | frozenset) or not isinstance(ids, Iterable)
    if unordered or getattr(ids, "ndim", 1) != 1:
        raise CaseLengthError(f"ids: expected one a case, in their order, got {ids!r}.")
    names = [_name_of(each) for each in ids]
    if None in names:
        raise CaseValueError(f"ids: expected a name, got none for case {names.index(None)}.")
    return tuple(map(str, names))


def _name_of(value: Any) -> str | None:
    """Give an id as text; ``None`` where it is missing. What is no number may be anything, such as a path."""
    if value is None or isinstance(value, str | int | float):
        return text_of(value)
    text = text_of(value) or str(value)
    return None if text in _MISSING and not isinstance(value, np.str_) else text


def names_of(ids: Sequence[Any] | None, n: int) -> tuple[str, ...]:
    """Give the ids of ``n`` cases as text, each once; nothing where there are none.

    Examples
    --------
    >>> names_of([7, 8], 2)
    ('7', '8')
    """
    names = ids_of(ids)
    if names is None:
        return ()
    check_length(names, n, "ids")
    name, times = Counter(names).most_common(1)[0] if names else ("", 1)
    if times > 1:
        raise CaseValueError(f"ids: expected each case once, got {name!r} {times} times.")
    return names


def used_names(used_ids: Iterable[Any] | None) -> frozenset[str]:
    """Give ids that something has learned from as text.

    Examples
    --------
    >>> sorted(used_names([7, "b", None]))
    ['7', 'b']
    """
    if isinstance(used_ids, str | bytes) or not isinstance(used_ids, Iterable | None):
        raise ParameterError(f"used_ids: expected a collection of ids, got {used_ids!r}.")
    names = (_name_of(each) for each in (() if used_ids is None else used_ids))
    return frozenset(name for name in names if name is not None)


def refuse_seen(
    ids: Sequence[Any] | None, used_ids: Iterable[Any] | HashedIds | None, n: int
) -> tuple[str, ...]:
    """Give the ids of ``n`` cases as text, and refuse those that something has learned from already.

    Whatever certifies, bounds or watches calls it. Call it yourself before what knows only confidences, such
    as `drift_test`.

    Parameters
    ----------
    ids
        One a case, or ``None``: then nothing can be checked, and cases that were used make the answer wrong
        without a sign of it.
    used_ids
        What a fitted estimator, a recalibration of probabilities, the choice of a threshold or a conformal
        interval has learned from: the attribute ``used_ids`` of each of them.
    n
        Number of cases.

    Raises
    ------
    SeenCasesError
        Where a case is in both.

    Examples
    --------
    >>> refuse_seen(["a", "b"], ["c"], 2)
    ('a', 'b')
    """
    used = used_ids if isinstance(used_ids, HashedIds) else used_names(used_ids)
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
