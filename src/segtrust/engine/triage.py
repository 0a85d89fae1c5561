"""Decisions of policies on the rows of a score table, and drift compared with the calibration cases."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import checksum_name
from segtrust._files import read_json
from segtrust.engine.questions import checksum_of_row
from segtrust.engine.score_table import ScoreTable
from segtrust.errors import PolicyError
from segtrust.io import COLUMNS, ArrayRef, Failure, ScoreRow, Table, map_rows, stem_of, write_table
from segtrust.policy import Decision, Policy, StructurePolicies
from segtrust.selective import DriftTest, drift_test

__all__ = [
    "Policies",
    "Triage",
    "are_calibration_cases",
    "check_drift",
    "check_structures",
    "decide_rows",
    "decisions_of_cases",
    "is_of_calibration",
    "load_policies",
    "question_about_calibration",
    "write_lists",
]

Policies = Mapping[str, Policy]
"""Policies by structure; the name of one policy for all structures is empty."""
_FEWEST_FOR_DRIFT = 2
_SAME_CONFIDENCE = 1e-9
"""Relative difference up to which two confidences are the same; files keep them in full."""


def load_policies(policy: str | Path | Policy | StructurePolicies) -> Policies:
    """Return policies by structure: of a file, or those that are given."""
    if isinstance(policy, StructurePolicies):
        return policy.policies
    if isinstance(policy, Policy):
        return {policy.structure: policy}
    path = Path(policy)
    if not path.is_file():
        raise PolicyError(f"{path}: expected a policy, got no such file.")
    saved = read_json(path, error=PolicyError)
    if isinstance(saved, Mapping) and "policies" in saved:
        return StructurePolicies.load(path).policies
    single = Policy.load(path)
    return {single.structure: single}


def check_structures(policies: Policies, structures: Sequence[str]) -> None:
    """Raise an error if no policy is for any of these structures."""
    if "" in policies or not structures or any(name in policies for name in structures):
        return
    raise PolicyError(
        f"structure: expected one that the policy is for ({', '.join(policies)}), got "
        f"{', '.join(dict.fromkeys(structures))}. Choose by --region."
    )


def decide_rows(policies: Policies) -> Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]]:
    """Return the function that adds to each row the decision of its policy and the margin.

    The margin is the confidence minus the threshold: it can be compared between structures. A structure
    without a policy gets no decision; if no structure has one, that is an error.
    """

    def decide(row: ScoreRow) -> ScoreRow:
        policy = policies.get(row["structure"], policies.get(""))
        if policy is None:
            return row | {"decision": "", "margin": None, "policy": ""}
        confidence = row.get(policy.scoring.estimator)
        if confidence is None:  # scored without this estimator, and its files are gone
            return row | {"decision": str(Decision.DEFER), "margin": None, "policy": policy.fingerprint}
        decision = policy.decide(confidence, empty_mask=row["k"] == 0)
        margin = confidence - policy.threshold
        return row | {"decision": str(decision), "margin": margin, "policy": policy.fingerprint}

    def decide_all(rows: Sequence[ScoreRow]) -> Sequence[ScoreRow]:
        check_structures(policies, list(dict.fromkeys(row["structure"] for row in rows)))
        return map_rows(rows, decide)

    return decide_all


@dataclass(frozen=True, eq=False)
class Triage:
    """Decisions on cases.

    Attributes
    ----------
    table
        Score table with the decision of each row, its failures, and the policies as they hold for the cases.
    decisions
        By case; a case is deferred if any of its structures is, or if it failed.
    drift
        Drift tests by structure; empty if nothing can be compared.
    no_drift_test
        Why there is no drift test.
    """

    table: ScoreTable
    decisions: Mapping[str, Decision]
    drift: Mapping[str, DriftTest]
    no_drift_test: str = ""

    @property
    def accepted(self) -> ScoreTable:
        """Rows of the accepted cases, the least certain first."""
        return self._chosen(Decision.ACCEPT)

    @property
    def deferred(self) -> ScoreTable:
        """Rows of the cases that a person must review, the most urgent first; failed cases have no rows."""
        return self._chosen(Decision.DEFER)

    def _chosen(self, decision: Decision) -> ScoreTable:
        rows = (row for row in self.table.rows if self.decisions[row["case"]] is decision)
        return replace(self.table, rows=tuple(sorted(rows, key=_margin)))

    def __str__(self) -> str:
        """Return questions about the input, the drift, the number of cases by decision, and the guarantee."""
        drift = [f"{name}: {test.explain()}" if name else test.explain() for name, test in self.drift.items()]
        counts = ", ".join(f"{self.count(decision)} {decision}" for decision in Decision)
        return "\n".join([*self.table.questions, *drift, counts, *map(str, self.table.policies.values())])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def count(self, decision: Decision) -> int:
        """Return the number of cases with a decision."""
        return sum(made is decision for made in self.decisions.values())

    @property
    def alarm(self) -> bool:
        """Whether the cases differ from those that the policy was made with."""
        return any(test.alarm for test in self.drift.values())


def decisions_of_cases(rows: Sequence[ScoreRow], deferred: Sequence[str] = ()) -> dict[str, Decision]:
    """Return the decision on each case: defer if any structure is deferred, or if the case gave no result.

    Examples
    --------
    >>> rows = [{"case": "a", "decision": "accept"}, {"case": "a", "decision": "defer"}]
    >>> {case: str(decision) for case, decision in decisions_of_cases(rows, ["b"]).items()}
    {'a': 'defer', 'b': 'defer'}
    """
    by_case: dict[str, set[Decision]] = {}
    for row in rows:
        decision = Decision(row["decision"] or Decision.DEFER)  # a structure without a policy is deferred
        by_case.setdefault(row["case"], set()).add(decision)
    order = (Decision.DEFER, Decision.ACCEPT, Decision.NO_FINDING)
    decided = {case: next(each for each in order if each in made) for case, made in by_case.items()}
    return decided | dict.fromkeys(deferred, Decision.DEFER)


def check_drift(rows: Sequence[ScoreRow], policies: Policies, *, alpha: float = 0.05) -> dict[str, DriftTest]:
    """Compare the confidences of new cases with those of the calibration cases, by structure.

    Copies (equal checksums) count as one case. Cases that the policy was calibrated with are left out.
    """
    tests = {}
    for name, policy in policies.items():
        of_structure = [row for row in rows if name in ("", row["structure"])]
        is_seen = is_of_calibration(of_structure, policy)
        of_structure = [row for row, seen in zip(of_structure, is_seen, strict=True) if not seen]
        different = {
            (checksum_of_row(row) or number, row["structure"]): row for number, row in enumerate(of_structure)
        }
        new = [row[policy.scoring.estimator] for row in different.values()]
        known = () if policy.reference is None else policy.reference.confidences
        if min(len(known), len(new)) >= _FEWEST_FOR_DRIFT:
            tests[name] = drift_test(reference=known, new=new, alpha=alpha / len(policies))
    return tests


def write_lists(
    out: Path,
    rows: Sequence[ScoreRow],
    decisions: Mapping[str, Decision],
    *,
    link: bool,
    failures: Sequence[Failure] = (),
) -> None:
    """Write one list of cases per decision, and links to their files if requested.

    Cases are sorted by margin, the lowest first; cases without a result follow, with the reason.
    """
    reasons = {failure.case: {"file": failure.file, "reason": failure.reason} for failure in failures}
    internal = {column.name for column in COLUMNS.values() if column.is_internal}
    by_margin = sorted(rows, key=_margin)
    for decision in Decision:
        name = str(decision).replace(" ", "_")
        chosen = [row for row in by_margin if decisions[row["case"]] is decision]
        scored = {row["case"] for row in chosen}
        failed = [case for case, made in decisions.items() if made is decision and case not in scored]
        listed = [{name: value for name, value in row.items() if name not in internal} for row in chosen] + [
            {"case": case, "decision": str(decision), **reasons.get(case, {})} for case in failed
        ]
        write_table(out / f"{name}.csv", Table.of(listed) if listed else Table(("case",), ()))
        if link:
            _write_links(out / name, chosen)


def _margin(row: ScoreRow) -> float:
    return math.inf if row["margin"] is None else float(row["margin"])


def _write_links(folder: Path, rows: Sequence[ScoreRow]) -> None:
    """Fill a folder with links to the maps; links of an earlier run are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.is_symlink():
            old.unlink()
    for row in rows:
        path = ArrayRef.parse(row["file"]).path
        name, ending = row["case"].replace("/", "_"), path.name.removeprefix(stem_of(path))
        target = os.path.relpath(path.resolve(), folder.resolve())
        for number in count():  # a/b_c and a_b/c have the same name here
            link = folder / f"{name}{f'_{number}' if number else ''}{ending}"
            if link.is_symlink() and str(link.readlink()) == target:
                break
            if not link.is_symlink() and not link.exists():
                link.symlink_to(target)
                break


def are_calibration_cases(
    names: Sequence[Any],
    confidence: Any,
    policy: Policy,
    reference: Sequence[float] = (),
    *,
    checksums: Sequence[str] = (),
) -> Any:
    """Return for each case whether the policy was calibrated with it.

    A checksum that is known to the policy is enough. A name alone is not: ``1`` or ``case_001`` are in many
    data sets. So the confidence must also be that of a calibration case, if these are known. A new case with
    the name of one calibration case and the confidence of another, such as that of all empty masks, is still
    taken for a calibration case.

    Parameters
    ----------
    names, confidence
        Name and confidence of each case; NaN is never the confidence of a calibration case.
    policy
        A policy with the names of its cases, hashed. One without names recognises no case.
    reference
        Confidences of the calibration cases, as they are kept beside the policy; without them only names are
        compared.
    checksums
        Checksums of the maps, if they are known; empty for a case without one.

    Returns
    -------
    array of bool
        One value per case.

    Examples
    --------
    >>> from segtrust.selective import CalibrationCases
    >>> from segtrust.selective import certify
    >>> from segtrust.policy import Scoring
    >>> from segtrust.selective import Target
    >>> c = np.linspace(0, 1, 400)
    >>> cases = CalibrationCases(c, (1 - c) / 2, ids=range(400), reference=np.linspace(0, 0.99, 50))
    >>> policy = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
    >>> are_calibration_cases(["399", "399", "400"], [1.0, 0.1234, 1.0], policy, c).tolist()
    [True, False, False]
    >>> are_calibration_cases(["399", "400"], [0.1234, 1.0], policy).tolist()
    [True, False]
    """
    values = np.asarray(confidence, np.float64)
    seen = np.ones(values.size, bool)
    if len(reference):
        known = np.sort(np.asarray(reference, np.float64))
        place = np.searchsorted(known, values)
        below, above = (known[np.clip(at, 0, known.size - 1)] for at in (place - 1, place))
        seen = np.isclose(values, below, rtol=_SAME_CONFIDENCE, atol=0.0)
        seen |= np.isclose(values, above, rtol=_SAME_CONFIDENCE, atol=0.0)
    for case in map(int, np.flatnonzero(seen)):
        seen[case] = names[case] in policy.used_ids
    for case, checksum in enumerate(checksums):
        seen[case] |= bool(checksum) and checksum_name(checksum) in policy.used_ids
    return seen


def is_of_calibration(rows: Sequence[ScoreRow], policy: Policy) -> list[bool]:
    """Return for each row whether the policy was calibrated with its case, as far as is known."""
    reference = () if policy.reference is None else policy.reference.confidences
    names = [row.get("case", "") for row in rows]
    confidence = [row[policy.scoring.estimator] for row in rows]
    checksums = [checksum_of_row(row) for row in rows]
    found = are_calibration_cases(names, confidence, policy, reference, checksums=checksums)
    return [bool(each) for each in found]


def question_about_calibration(rows: Sequence[ScoreRow], policies: Policies) -> str:
    """Return a sentence about the cases that the policies were calibrated with; empty if there are none."""
    seen: dict[str, None] = {}
    for name, policy in policies.items():
        of_structure = [row for row in rows if name in ("", row["structure"])]
        flags = is_of_calibration(of_structure, policy)
        seen |= dict.fromkeys(row["case"] for row, flag in zip(of_structure, flags, strict=True) if flag)
    if not seen:
        return ""
    total = len({row["case"] for row in rows})
    return (
        f"{len(seen)} of {total} cases, such as {next(iter(seen))}, are calibration cases of the policy, or "
        "copies of them (equal checksums, or the same name and confidence). They are left out of the drift "
        "test, and the guarantee is about new cases only."
    )
