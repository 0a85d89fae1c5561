"""Ids of cases, and the rejection of cases that something has already learned from.

A guarantee, an interval or an estimate is only valid on cases that nothing else was chosen with: not a
fitted estimator, not a recalibration of the probabilities, not a threshold. Whatever learns from cases
keeps their ids (``used_ids``), and whatever relies on fresh cases compares ids first (`reject_seen`). Ids
are compared as text: 7, 7.0 and "7" are the same id. The same image may come back under another name, so
checksums are kept and compared too, as ``checksum:...`` among the ids.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust._arguments import checksum_name
from segtrust._files import check_keys
from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SeenCasesError
from segtrust.selective.vectors import check_length, format_label

_MISSING = ("<NA>", "NaT", "nan")
"""How pandas and NumPy print a missing value."""


@dataclass(frozen=True)
class HashedIds:
    """Ids of cases that cannot be read, but can be compared with other ids.

    An id may identify a patient, so only a salted SHA-256 of each id is kept. An id that can be guessed can
    still be tested: ids of a few digits are hidden from a reader, but not from someone who tries them all.

    Attributes
    ----------
    salt
        Text put in front of each id, so that the same id has a different hash in each policy.
    hashes
        Hash of each id, in hexadecimal digits.

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
        return cls(salt, frozenset(_hash(name, salt) for name in used_ids_as_text(ids)))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], *, source: str = "used_ids") -> HashedIds:
        """Rebuild what `to_dict` returned; errors name the source."""
        values = check_keys(saved, ("salt", "hashes"), source)
        return cls(values["salt"], values["hashes"])

    def __post_init__(self) -> None:
        """Check that there are hashes and nothing else."""
        hashes = self.hashes
        is_list = isinstance(hashes, Collection) and not isinstance(hashes, str)
        if (
            not isinstance(self.salt, str)
            or not is_list
            or not all(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) for value in hashes)
        ):
            raise ParameterError("used_ids: expected a salt and hashes of 64 hexadecimal digits each.")
        object.__setattr__(self, "hashes", frozenset(hashes))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` rebuilds the ids."""
        return {"salt": self.salt, "hashes": sorted(self.hashes)}

    def __contains__(self, name: object) -> bool:
        """Whether an id is among them."""
        return _hash(str(id_as_text(name)), self.salt) in self.hashes

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self.hashes)


def _hash(name: str, salt: str) -> str:
    return hashlib.sha256(f"{salt}\n{name}".encode()).hexdigest()


def ids_as_text(ids: Any) -> tuple[str, ...] | None:
    """Return ids as text; ``None`` if there are none.

    Examples
    --------
    >>> ids_as_text([7, 8.0, "b"])
    ('7', '8', 'b')
    """
    if ids is None:
        return None
    unordered = isinstance(ids, str | bytes | set | frozenset) or not isinstance(ids, Iterable)
    if unordered or getattr(ids, "ndim", 1) != 1:
        raise CaseLengthError(f"ids: expected one per case, in the order of the cases, got {ids!r}.")
    names = [id_as_text(value) for value in ids]
    if None in names:
        raise CaseValueError(f"ids: expected one for every case, got none for case {names.index(None)}.")
    return tuple(map(str, names))


def id_as_text(value: Any) -> str | None:
    """Return an id as text; ``None`` if it is missing. Other objects, such as paths, are ids too."""
    if value is None or isinstance(value, str | int | float):
        return format_label(value)
    text = format_label(value) or str(value)
    return None if text in _MISSING and not isinstance(value, np.str_) else text


def checksum_names(checksums: Iterable[Any] | None) -> frozenset[str]:
    """Return checksums in the form in which ``used_ids`` contains them; missing ones are left out.

    Examples
    --------
    >>> sorted(checksum_names(["crc32:352441c2", ""]))
    ['checksum:crc32:352441c2']
    """
    values = [] if checksums is None else list(checksums)
    return frozenset(map(checksum_name, check_checksums(values, len(values)))) - {""}


def check_checksums(checksums: Any, n: int) -> tuple[str, ...]:
    """Check for one checksum for each of ``n`` cases, and return texts; empty for a missing one.

    Examples
    --------
    >>> check_checksums(["crc32:352441c2", None], 2)
    ('crc32:352441c2', '')
    """
    if checksums is None:
        return ("",) * n
    if isinstance(checksums, str) or not isinstance(checksums, Iterable):
        raise CaseLengthError(f"checksums: expected one per case, got {checksums!r}.")
    values = list(checksums)
    check_length(values, n, "checksums")
    return tuple(id_as_text(value) or "" for value in values)


def check_ids(ids: Sequence[Any] | None, n: int) -> tuple[str, ...]:
    """Check that ``n`` cases have different ids, and return them as text; an empty tuple for ``None``.

    Examples
    --------
    >>> check_ids([7, 8], 2)
    ('7', '8')
    """
    names = ids_as_text(ids)
    if names is None:
        return ()
    check_length(names, n, "ids")
    name, times = Counter(names).most_common(1)[0] if names else ("", 1)
    if times > 1:
        raise CaseValueError(f"ids: expected a different id for each case, got {name!r} {times} times.")
    return names


def used_ids_as_text(used_ids: Iterable[Any] | None) -> frozenset[str]:
    """Return the ids that something has learned from as text; missing ones are left out.

    Examples
    --------
    >>> sorted(used_ids_as_text([7, "b", None]))
    ['7', 'b']
    """
    if isinstance(used_ids, str | bytes) or not isinstance(used_ids, Iterable | None):
        raise ParameterError(f"used_ids: expected a collection of ids, got {used_ids!r}.")
    names = (id_as_text(value) for value in (() if used_ids is None else used_ids))
    return frozenset(name for name in names if name is not None)


def reject_seen(
    ids: Sequence[Any] | None,
    used_ids: Iterable[Any] | HashedIds | None,
    n: int,
    *,
    checksums: Iterable[Any] | None = None,
) -> tuple[str, ...]:
    """Return the ids of ``n`` cases as text; reject cases that something has already learned from.

    Everything that certifies, bounds or monitors calls it. Call it yourself before functions that see only
    confidences, such as `drift_test`.

    Parameters
    ----------
    ids
        Id of each case, or ``None``: then nothing can be checked, and cases that were used before make the
        answer wrong without any sign of it.
    used_ids
        Ids that a fitted estimator, a recalibration of probabilities, the choice of a threshold or a
        conformal interval has learned from: the attribute ``used_ids`` of each of these.
    n
        Number of cases.
    checksums
        Checksum of each case's map, or ``None``; empty for a case without one. A copy of a used case under
        another name is recognised by it, if its checksum was known when it was used.

    Raises
    ------
    SeenCasesError
        If a case was used before.

    Examples
    --------
    >>> reject_seen(["a", "b"], ["c"], 2)
    ('a', 'b')
    """
    used = used_ids if isinstance(used_ids, HashedIds) else used_ids_as_text(used_ids)
    sums = check_checksums(checksums, n)
    if used and ids is None and not any(sums):
        raise ParameterError("ids: expected the id of each case, to be compared with used_ids; got none.")
    names = check_ids(ids, n)
    seen = [name for name in names if name in used]
    for number, checksum in enumerate(sums):
        name = names[number] if names else f"case {number}"
        if checksum and name not in seen and checksum_name(checksum) in used:
            seen.append(name)
    if seen:
        examples = ", ".join(map(repr, seen[:3])) + (", …" if len(seen) > 3 else "")
        raise SeenCasesError(
            f"{len(seen)} of {n} cases have been used already ({examples}). Use cases that neither a fitted "
            "estimator, a recalibration nor the choice of the threshold has seen."
        )
    return names
