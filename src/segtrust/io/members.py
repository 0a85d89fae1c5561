"""The members of an ensemble, found by the name of their case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from segtrust.io.cases import CaseFiles, DataSet, Unpaired

__all__ = ["SEPARATOR", "with_members"]

SEPARATOR = ";"
"""Between the files of several members in a cell of a table."""


def with_members(found: DataSet, others: Sequence[tuple[Path, DataSet]]) -> DataSet:
    """Give each case its maps by the other members; one that lacks a map is left out, and told.

    Parameters
    ----------
    found
        Cases with the maps of the first member.
    others
        Folders of the other members, each with the cases that were found in it.
    """
    for folder, member in others:
        found = _with_member(found, folder, member)
    return found


def _with_member(found: DataSet, folder: Path, member: DataSet) -> DataSet:
    maps = {_key(case): case for case in member.cases}
    cases, told = [], list(member.unpaired)
    for case in found.cases:
        partner = maps.pop(_key(case), None)
        reason = _refusal(case, partner, folder)
        if partner is None or reason:
            told.append(Unpaired(case.name, str(case.probabilities), reason, case.folder, case.prefix))
        else:
            cases.append(replace(case, members=(*case.members, partner.probabilities)))
    left = {_key(each) for each in found.unpaired}
    told += [
        Unpaired(
            each.name, str(each.probabilities), "the map of a member without one of the first", each.folder
        )
        for key, each in maps.items()
        if key not in left
    ]
    return DataSet(tuple(cases), found.unpaired + tuple(told))


def _key(case: CaseFiles | Unpaired) -> tuple[str, str]:
    return case.folder, case.name


def _refusal(case: CaseFiles, partner: CaseFiles | None, folder: Path) -> str:
    """Say why a case does not get its member; nothing where it does."""
    if partner is None:
        return f"expected its map by the member {folder}, got no file of that name"
    if partner.probabilities in (case.probabilities, *case.members):
        return f"expected another map by the member {folder}, got the same file twice"
    if SEPARATOR in str(partner.probabilities):
        return (
            f"{partner.probabilities}: expected a path without {SEPARATOR!r}, which parts members in tables"
        )
    return ""
