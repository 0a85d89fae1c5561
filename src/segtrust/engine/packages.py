"""Packages that cases cannot be read without: told once, before the work begins, and not of each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from segtrust._optional import install_hint
from segtrust.errors import MissingExtraError
from segtrust.io import CaseFiles, Failure, missing_package

__all__ = ["check_packages", "split_missing"]


def check_packages(cases: Sequence[CaseFiles]) -> None:
    """Refuse cases of which none can be read for lack of a package; the first that can be ends the search.

    Raises
    ------
    MissingExtraError
        If there is no other.
    """
    lacking: Counter[str] = Counter()
    for case in cases:
        missing = _missing(case)
        if not missing:
            return
        lacking[missing] += 1
    if lacking:
        told = ", ".join(f"{count} without {name!r}" for name, count in lacking.items())
        raise MissingExtraError(
            f"{cases[0].probabilities}: expected cases that can be read here, got {told}, and no others. "
            f"Run {install_hint('io')}."
        )


def _missing(case: CaseFiles) -> str:
    """Name a package that one of the files of a case needs and that is not there; empty where all are."""
    places = (*case.maps, case.mask, case.truth)
    return next(filter(None, (missing_package(place) for place in places if place is not None)), "")


def split_missing(failures: Iterable[Failure]) -> tuple[list[Failure], dict[str, int]]:
    """Part failures from those for lack of a package; of these give what each lack costs, in cases.

    Examples
    --------
    >>> lacks = [
    ...     Failure(name, f"{name}.nii", "MissingExtraError", f"{name}.nii: This needs x.") for name in "ab"
    ... ]
    >>> split_missing(lacks)
    ([], {'This needs x.': 2})
    """
    others: list[Failure] = []
    lacking: Counter[str] = Counter()
    for failure in failures:
        if failure.kind == MissingExtraError.__name__:
            lacking[failure.reason.removeprefix(f"{failure.file}: ")] += 1
        else:
            others.append(failure)
    return others, dict(lacking)
