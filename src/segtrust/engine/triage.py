"""Decisions of policies on the rows of a score table, and drift compared with the calibration cases."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
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
from segtrust.io import COLUMNS, ArrayRef, ScoreRow, Table, map_rows, stem_of, write_table
from segtrust.policy import Decision, Policy, PolicyStatus, StructurePolicies
from segtrust.selective import DriftTest, drift_test

__all__ = [
    "Guarantee",
    "Policies",
    "Triage",
    "are_calibration_cases",
    "calibration_cases_in",
    "check_drift",
    "check_structures",
    "decide_rows",
    "decisions_of_cases",
    "is_of_calibration",
    "load_policies",
    "question_about_calibration",
    "question_about_model",
]

Policies = Mapping[str, Policy]
"""Policies by structure; the name of one policy for all structures is empty."""
_FEWEST_FOR_DRIFT = 2
_NAMED = 5
"""Calibration cases that are named."""
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


class Guarantee(StrEnum):
    """Whether the guarantee of a policy covers a decision: certified, estimated (expected only), or none."""

    CERTIFIED = "certified"
    ESTIMATED = "estimated"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Triage:
    """Decisions on cases, and whether the guarantee of the policy applies to them.

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
    calibration_cases
        Names of the cases that the policies were calibrated with. They are not part of the drift tests, and
        no guarantee covers them.
    """

    table: ScoreTable
    decisions: Mapping[str, Decision]
    drift: Mapping[str, DriftTest]
    no_drift_test: str = ""
    calibration_cases: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: ScoreTable, *, alpha: float | None = 0.05, model: str = "") -> Triage:
        """Return the triage of a score table whose rows have decisions.

        Parameters
        ----------
        table
            Score table, with the policies that decided.
        alpha
            Probability of a false drift alarm; ``None`` for no drift test.
        model
            Name of the model that made the maps.
        """
        policies, why = table.policies, ""
        drift = {} if alpha is None else check_drift(table.rows, policies, alpha=alpha)
        if alpha is None:
            why = "it is made once per batch of cases"
        elif not any(policy.reference for policy in policies.values()):
            why = "the calibration confidences are not beside the policy"
        elif not drift:
            why = "it takes at least two new cases"
        seen = calibration_cases_in(table.rows, policies)
        asked = (question_about_model(model, policies), question_about_calibration(seen, table.cases))
        table = replace(table, questions=(*table.questions, *filter(None, asked)))
        decisions = decisions_of_cases(table.rows, [failure.case for failure in table.failures])
        return cls(table, decisions, drift, why, seen)

    @property
    def accepted(self) -> ScoreTable:
        """Rows of the accepted cases, the least confident first."""
        return self._chosen(Decision.ACCEPT)

    @property
    def deferred(self) -> ScoreTable:
        """Rows of the cases that a person must review, the most urgent first; failed cases have no rows."""
        return self._chosen(Decision.DEFER)

    def _chosen(self, decision: Decision) -> ScoreTable:
        rows = (row for row in self.table.rows if self.decisions[row["case"]] is decision)
        return replace(self.table, rows=tuple(sorted(rows, key=_margin)))

    def count(self, decision: Decision) -> int:
        """Return the number of cases with a decision."""
        return sum(made is decision for made in self.decisions.values())

    @property
    def alarm(self) -> bool:
        """Whether the cases differ from those that the policy was made with."""
        return any(test.alarm for test in self.drift.values())

    def guarantee_of(self, row: ScoreRow) -> Guarantee:
        """Return which guarantee covers a row: none if its case is not accepted, or if there is drift."""
        structure = row["structure"]
        name = structure if structure in self.table.policies else ""
        test, policy = self.drift.get(name), self.table.policies.get(name)
        is_covered = self.decisions[row["case"]] is Decision.ACCEPT and row["case"] not in self._seen
        if policy is None or not is_covered or (test is not None and test.alarm):
            return Guarantee.NONE
        return Guarantee(str(policy.status))

    def reason_of(self, row: ScoreRow) -> str:
        """Return why a row, or its case, is deferred; empty if it is not."""
        if self.decisions[row["case"]] is not Decision.DEFER:
            return ""
        if not row["decision"]:
            return "no policy for this structure"
        if row["decision"] != Decision.DEFER:
            return "another structure is deferred"
        if row["margin"] is None:
            return "no confidence"
        return "empty mask" if row.get("k") == 0 else "below the threshold"

    @cached_property
    def _seen(self) -> frozenset[str]:
        return frozenset(self.calibration_cases)

    @property
    def drift_text(self) -> str:
        """One sentence: whether drift was detected, and what that means."""
        if not self.drift:
            return f"No drift check: {self.no_drift_test}."
        drifted = {name: test for name, test in self.drift.items() if test.alarm}
        lowest = min(test.p_value for test in self.drift.values())
        tests = f"two-sample test{'s' if len(self.drift) > 1 else ''}, p = {lowest:.2g}"
        if not drifted:
            return f"No drift detected ({tests})."
        where = f" in {', '.join(drifted)}" if len(self.drift) > 1 else ""
        shift = ", ".join(dict.fromkeys(test.direction for test in drifted.values()))
        return (
            f"DRIFT DETECTED{where}: these cases do not look like the calibration cases ({tests}; {shift}). "
            "The guarantee does not apply."
        )

    @property
    def counts_text(self) -> str:
        """One line: accepted, for review, empty and failed."""
        accepted, deferred, nothing = (self.count(decision) for decision in Decision)
        empty = len({row["case"] for row in self.deferred.rows if self.reason_of(row) == "empty mask"})
        parts = [f"{empty} with an empty mask"] if empty else []
        failed = len({failure.case for failure in self.table.failures} & {*self.decisions})
        parts += [f"{failed} failed"] if failed else []
        of_these = f" (of these, {', '.join(parts)})" if parts else ""
        finding = f", {nothing} empty (no finding)" if nothing else ""
        return f"{accepted} accepted, {deferred} for review{of_these}{finding}."

    @property
    def guarantee_text(self) -> str:
        """What is guaranteed about the accepted cases, and whether it applies; one line per policy."""
        lines = []
        for name, policy in self.table.policies.items():
            test = self.drift.get(name)
            if test is not None and test.alarm:
                text = f"The guarantee does not apply (drift). Without drift: {policy.limits}."
            elif policy.status is not PolicyStatus.CERTIFIED:
                text = f"The guarantee does not apply: {policy.reason}. {policy.guarantee}"
            elif len(self.calibration_cases) >= self.table.cases:
                text = f"{policy.guarantee} It is about new cases, and there are none here."
            else:
                new = "the new cases" if self.calibration_cases else "these cases"
                text = f"{policy.guarantee} It applies to {new}."
            lines.append(f"{name}: {text}" if len(self.table.policies) > 1 else text)
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return questions about the input, the drift, the number of cases by decision, and the guarantee."""
        return "\n".join([*self.table.questions, self.drift_text, self.counts_text, self.guarantee_text])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def write(self, folder: Path, *, link: bool = False) -> None:
        """Write one list of cases per decision, and links to their maps if requested.

        Cases are sorted by margin, the lowest first; failed cases follow, with the reason.
        """
        failures = {failure.case: failure for failure in self.table.failures}
        internal = {column.name for column in COLUMNS.values() if column.is_internal}
        by_margin = sorted(self.table.rows, key=_margin)
        for decision in Decision:
            name = str(decision).replace(" ", "_")
            chosen = [row for row in by_margin if self.decisions[row["case"]] is decision]
            listed: list[ScoreRow] = [
                {
                    **{column: value for column, value in row.items() if column not in internal},
                    "guarantee": str(self.guarantee_of(row)),
                    **({"reason": self.reason_of(row)} if decision is Decision.DEFER else {}),
                }
                for row in chosen
            ]
            scored = {row["case"] for row in chosen}
            for case, made in self.decisions.items():
                if made is decision and case not in scored:
                    failure = failures.get(case)
                    why = {} if failure is None else {"file": failure.file, "reason": failure.reason}
                    listed.append(
                        {"case": case, "decision": str(decision), "guarantee": str(Guarantee.NONE), **why}
                    )
            write_table(folder / f"{name}.csv", Table.of(listed) if listed else Table(("case",), ()))
            if link:
                _write_links(folder / name, chosen)


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


def calibration_cases_in(rows: Sequence[ScoreRow], policies: Policies) -> tuple[str, ...]:
    """Return the names of the cases that the policies were calibrated with, or copies of them."""
    seen: dict[str, None] = {}
    for name, policy in policies.items():
        of_structure = [row for row in rows if name in ("", row["structure"])]
        flags = is_of_calibration(of_structure, policy)
        seen |= dict.fromkeys(row["case"] for row, flag in zip(of_structure, flags, strict=True) if flag)
    return tuple(seen)


def question_about_calibration(seen: Sequence[str], cases: int) -> str:
    """Return a sentence that names the cases that a policy was calibrated with; empty if there are none."""
    if not seen:
        return ""
    others = f" and {len(seen) - _NAMED} more" if len(seen) > _NAMED else ""
    are = "is a calibration case" if len(seen) == 1 else "are calibration cases"
    return (
        f"{len(seen)} of {cases} cases {are} of the policy, or copies of them (equal checksums, or the same "
        f"name and confidence): {', '.join(seen[:_NAMED])}{others}. They are left out of the drift test, and "
        "no guarantee covers them."
    )


def question_about_model(model: str, policies: Policies) -> str:
    """Return a question if the name of a model is nearly that of a policy, for which its guarantee holds.

    Examples
    --------
    >>> from segtrust.selective import certify_threshold
    >>> from segtrust.policy import Scoring
    >>> c = np.linspace(0, 1, 400)
    >>> certificate = certify_threshold(c, (1 - c) / 2, target_risk=0.2, reference=np.linspace(0, 0.99, 50))
    >>> policy = Policy.from_certificate(certificate, Scoring("sdc", predictor="fold 0"))
    >>> question_about_model("Fold_0", {"": policy})
    "The policy was made with the model 'fold 0', not with 'Fold_0'. Did you mean 'fold 0'?"
    """
    names = {policy.scoring.predictor for policy in policies.values()} - {""}
    if not model or model in names:
        return ""
    plain = {_letters(name): name for name in sorted(names)}
    meant = plain.get(_letters(model)) or next(iter(get_close_matches(model, plain.values(), n=1)), None)
    if meant is None:
        return ""
    return f"The policy was made with the model {meant!r}, not with {model!r}. Did you mean {meant!r}?"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
