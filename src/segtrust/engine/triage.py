"""Who is accepted and who is deferred: lists, links, and whether the promise still stands."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from segtrust.engine.decisions import Policies
from segtrust.engine.outcomes import Failure, Row
from segtrust.io.names import stem_of
from segtrust.io.places import Place
from segtrust.io.tables import Table, write_table
from segtrust.policy import Decision
from segtrust.selective import DriftTest, drift_test

__all__ = ["Triage", "check_drift", "decisions_of_cases", "write_lists"]

_FEWEST = 2
"""New cases from which on drift can be seen at all."""


@dataclass(frozen=True)
class Triage:
    """Decisions on cases.

    Attributes
    ----------
    decisions
        By case; a case is deferred if any of its structures is.
    drift
        Tests by structure; none where nothing can be compared.
    undrifted
        Why there is no test.
    """

    decisions: Mapping[str, Decision]
    drift: Mapping[str, DriftTest]
    undrifted: str = ""

    def count(self, decision: Decision) -> int:
        """How many cases have a decision."""
        return sum(each is decision for each in self.decisions.values())

    @property
    def alarm(self) -> bool:
        """Whether the cases differ from those that the policy was made with."""
        return any(test.alarm for test in self.drift.values())


def decisions_of_cases(rows: Sequence[Row], deferred: Sequence[str] = ()) -> dict[str, Decision]:
    """Decide on cases from the decisions on their structures; cases that gave no result are deferred.

    Examples
    --------
    >>> rows = [{"case": "a", "decision": "accept"}, {"case": "a", "decision": "defer"}]
    >>> {case: str(each) for case, each in decisions_of_cases(rows, ["b"]).items()}
    {'a': 'defer', 'b': 'defer'}
    """
    found: dict[str, list[Decision]] = {}
    for row in rows:
        decision = row["decision"] or Decision.DEFER  # no policy is for this structure
        found.setdefault(row["case"], []).append(Decision(decision))
    decided = {case: _together(each) for case, each in found.items()}
    return decided | dict.fromkeys(deferred, Decision.DEFER)


def _together(decisions: Sequence[Decision]) -> Decision:
    for decision in (Decision.DEFER, Decision.ACCEPT):
        if decision in decisions:
            return decision
    return Decision.NO_FINDING


def check_drift(
    rows: Sequence[Row], policies: Policies, reference: Mapping[str, Sequence[float]], *, alpha: float = 0.05
) -> dict[str, DriftTest]:
    """Compare the confidences of new cases with those that the policies were made with."""
    found = {}
    for name, policy in policies.items():
        column = policy.scoring.estimator
        new = [row[column] for row in rows if name in ("", row["structure"])]
        if len(reference.get(name, ())) >= _FEWEST and len(new) >= _FEWEST:
            found[name] = drift_test(reference=reference[name], new=new, alpha=alpha / len(policies))
    return found


def write_lists(
    out: Path,
    rows: Sequence[Row],
    decisions: Mapping[str, Decision],
    *,
    link: bool,
    failures: Sequence[Failure] = (),
) -> None:
    """Write a list of cases for each decision, and links to their files if wanted.

    Those whose confidence is farthest below their threshold, or least above it, come first; then those that
    gave no result, with the reason.
    """
    reasons = {each.case: {"file": each.file, "reason": each.reason} for each in failures}
    by_margin = sorted(rows, key=lambda row: math.inf if row["margin"] is None else row["margin"])
    for decision in Decision:
        name = str(decision).replace(" ", "_")
        cases = [case for case, each in decisions.items() if each is decision]
        chosen = [row for row in by_margin if decisions[row["case"]] is decision]
        known = {row["case"] for row in chosen}
        lost = [case for case in cases if case not in known]
        listed = chosen + [
            {"case": each, "decision": str(decision), **reasons.get(each, {})} for each in lost
        ]
        write_table(out / f"{name}.csv", Table.of(listed) if listed else Table(("case",), ()))
        if link:
            _link(out / name, chosen)


def _link(folder: Path, rows: Sequence[Row]) -> None:
    """Fill a folder with links to the maps; what is there from an earlier run is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.is_symlink():
            old.unlink()
    for row in rows:
        path = Place.of(row["file"]).path
        name, ending = row["case"].replace("/", "_"), path.name.removeprefix(stem_of(path))
        target = os.path.relpath(path.resolve(), folder.resolve())
        names = (f"{name}{(number and f'_{number}') or ''}{ending}" for number in count())
        free = next(each for each in names if not _is_other(folder / each, target))
        if not (folder / free).is_symlink():
            (folder / free).symlink_to(target)


def _is_other(link: Path, target: str) -> bool:
    """Tell whether a name is taken by the map of another case: ``a/b_c`` and ``a_b/c`` are called alike."""
    return link.exists() if not link.is_symlink() else str(link.readlink()) != target
