"""From a score table with losses to a policy, and whether policies hold for other tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import (
    check_format,
    check_keys,
    plain_values,
    read_json,
    write_json,
)
from segtrust.engine.losses import (
    DICE,
    check_no_text,
    check_unique_cases,
    loss_column,
    loss_name,
    loss_of_row,
    name_without_file,
    no_loss_message,
)
from segtrust.engine.questions import checksum_of_row
from segtrust.engine.score_table import DOUBT, PACKAGES, PREDICTOR
from segtrust.engine.triage import Policies
from segtrust.errors import ParameterError, PolicyError, SavedStateError, WrongContentError
from segtrust.io import FOREGROUND, ScoreRow, Table
from segtrust.policy import (
    OWN_VERSIONS,
    Policy,
    Reference,
    Scoring,
    StructurePolicies,
    certify_structures,
    rank_empty_last,
)
from segtrust.risks import find_risk
from segtrust.selective import CalibrationCases, Certificate, LookLog, Procedure, Target, plan_calibration

__all__ = [
    "Calibration",
    "calibrate_table",
    "check_policies",
    "check_reading",
    "fusion_of",
    "limits_within_reach",
    "looks_path",
    "make_policy",
    "policies_for_rows",
    "read_looks",
    "risk_of_all",
    "split_table",
    "structures_of",
    "write_looks",
]

_LOOKS = "segtrust-table-looks-1"
_READING = ("mask", "threshold", "channel", "labels", "decode", "fuse")
"""Options of reading on which confidences depend, besides the structure."""
_EARLIER_DEFAULTS = {"decode": "threshold", "fuse": None}
"""Options that files of earlier versions do not have, and what they were then."""


@dataclass(frozen=True)
class Calibration:
    """What is to be guaranteed, and for which column.

    Attributes
    ----------
    estimator
        Column of the confidence.
    targets
        Limits for the accepted cases.
    delta
        Probability that the guarantee is broken.
    loss
        Column of the loss, or the name of a risk; one minus the Dice if a table has no column ``loss``.
    by_patient
        Whether the column ``group`` names patients, who are then the units.
    predictor
        The model that made the maps; by default what the table says.
    reference
        Confidences of unlabelled cases by structure, for candidate thresholds.
    start_coverage
        Coverage at which the search for a threshold begins.
    drop_unjudged
        Whether rows without a loss are left out instead of being an error. The guarantee is then about cases
        that have one.
    seed
        Random seed, to repeat a draw; see `choose_seed`.
    """

    estimator: str
    targets: tuple[Target, ...]
    delta: float = 0.05
    loss: str = "loss"
    by_patient: bool = False
    predictor: str = ""
    reference: Mapping[str, Sequence[float]] = field(default_factory=dict)
    start_coverage: float = 0.5
    drop_unjudged: bool = False
    seed: int | None = None


def calibrate_table(
    table: Table, how: Calibration, looks: dict[str, LookLog] | None = None
) -> dict[str, tuple[Certificate, Scoring]]:
    """Certify a threshold for each structure of a table; return each with how its confidences were computed.

    Parameters
    ----------
    table
        Score table with losses.
    how
        What to certify.
    looks
        What was asked of the cases before, by structure (`read_looks`); this question is added.

    Examples
    --------
    >>> rows = [
    ...     {"case": str(i), "structure": "organ", "group": "", "sdc": i / 400, "dice": 0.5 + i / 800}
    ...     for i in range(400)
    ... ]
    >>> how = Calibration("sdc", (Target(0.2),))
    >>> certificate, scoring = calibrate_table(Table.of(rows), how)["organ"]
    >>> certificate.certified, scoring.estimator
    (True, 'sdc')
    """
    looks = {} if looks is None else looks
    scoring = scoring_of(table, how)
    empties_rank_last = scoring.empty == "paper"
    table.column("case")  # raises if there is none
    check_unique_cases(table)
    check_no_text(table, [how.estimator, how.loss, DICE])
    _check_losses(table, how)
    cases = {
        name: _cases(table, name, how, empties_rank_last, looks.setdefault(name, LookLog()))
        for name in dict.fromkeys(structures_of(table))
    }
    found = certify_structures(
        cases,
        [_with_loss(target, table, how) for target in how.targets],
        delta=how.delta,
        procedure=Procedure(start_coverages=(how.start_coverage,), seed=how.seed),
        used_ids=scoring.seen_ids,
    )
    return {name: (certificate, scoring) for name, certificate in found.items()}


_USUAL_DICE = 0.8
"""Dice below which a case counts as a failure, in a limit that is proposed."""
_HIGHEST_LIMIT = 0.5


def limits_within_reach(table: Table, structure: str, how: Calibration) -> tuple[Target, ...]:
    """Return the lowest limits that as many new cases as these would certify, with a chance of 90 %.

    One limit is on the mean loss, the other on the share of failures. They are found by simulation from the
    losses of the most confident cases, as the number of cases is that a refusal names; nothing is certified.
    """
    rows = [row for row in _rows_of(table, structure) if _has_loss(row, table, how)]
    if how.by_patient or len(rows) < 2:
        return ()
    column = loss_column(table.columns, how.loss)
    ranked = sorted(rows, key=lambda row: (row.get("k") == 0, -_number(row, how.estimator)))
    losses = np.array([_loss(row, column) for row in ranked])
    below = next((each.below_dice for each in how.targets if each.below_dice is not None), None)
    targets = [_lowest_limit(losses, how, None)]
    if below is not None or loss_name(table, how.loss) in (DICE, None):
        targets.append(_lowest_limit(losses, how, _USUAL_DICE if below is None else below))
    asked = {(each.risk, each.below_dice) for each in how.targets}
    return tuple(each for each in targets if each is not None and (each.risk, each.below_dice) not in asked)


def _lowest_limit(losses: Any, how: Calibration, below_dice: float | None) -> Target | None:
    """Return the lowest limit, in per cent, for which the number of cases is enough."""
    if below_dice is not None:
        losses = np.asarray(1.0 - losses < below_dice, np.float64)
    start = max(1, math.ceil(how.start_coverage * losses.size))
    accepted, near = losses[:start], losses[int(0.8 * start) : math.ceil(1.2 * start)]
    mean, spread = float(accepted.mean()), float(accepted.std())
    procedure = Procedure(start_coverages=(how.start_coverage,))

    def is_enough(percent: int) -> bool:
        plan = plan_calibration(
            Target(percent / 100.0, below_dice),
            mean,
            spread=None if below_dice is not None else spread,
            marginal_risk=max(mean, float(near.mean())),
            delta=how.delta,
            procedure=procedure,
        )
        return plan.without_reference is not None and plan.without_reference <= losses.size

    low, high = math.floor(100.0 * mean) + 1, round(100.0 * _HIGHEST_LIMIT)
    if low > high or not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return Target(low / 100.0, below_dice)


def risk_of_all(table: Table, structure: str, how: Calibration) -> float | None:
    """Return the risk of accepting every case, for the first target; ``None`` if a loss is not known."""
    column, below = loss_column(table.columns, how.loss), how.targets[0].below_dice
    losses = [loss_of_row(row, column) for row in _rows_of(table, structure)]
    known = [loss for loss in losses if loss is not None]
    if not known or (len(known) < len(losses) and not how.drop_unjudged):
        return None
    return float(np.mean([loss if below is None else 1.0 - loss < below for loss in known]))


def split_table(table: Table, fraction: float, seed: int, *, by_patient: bool = False) -> tuple[Table, Table]:
    """Split the cases of a table at random: the share that is calibrated with, and the rest.

    Copies (equal checksums), all structures of a case and, if they are the units, all cases of a patient stay
    together. The order of the rows does not matter.

    Examples
    --------
    >>> table = Table.of([{"case": str(i), "structure": "organ", "sdc": 0.5} for i in range(10)])
    >>> [len(part.rows) for part in split_table(table, 0.5, 0)]
    [5, 5]
    """
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    names = []
    for row in table.rows:
        name = f"case {row.get('set') or ''}/{row['case']}"
        names.append(name)
        shared = [checksum_of_row(row), f"patient {row['group']}" if by_patient and row.get("group") else ""]
        for other in filter(None, shared):
            parent[find(other)] = find(name)
    first: dict[str, str] = {}  # of each unit; its root depends on the order of the rows
    for name in names:
        root = find(name)
        first[root] = min(name, first.setdefault(root, name))
    units = sorted(first.values())
    order = np.random.default_rng(seed).permutation(len(units))
    chosen = {find(units[number]) for number in order[: round(fraction * len(units))]}
    flags = [find(name) in chosen for name in names]
    return tuple(  # type: ignore[return-value]
        replace(table, rows=tuple(row for row, flag in zip(table.rows, flags, strict=True) if flag is kept))
        for kept in (True, False)
    )


def scoring_of(table: Table, how: Calibration) -> Scoring:
    """Return how the confidences of a table were computed; other tables only tell the estimator."""
    estimators = table.about.get("estimators", {})
    if estimators and how.estimator not in estimators:
        raise ParameterError(
            f"estimator: expected one that was scored ({', '.join(estimators)}), got {how.estimator!r}."
        )
    parameters = dict(estimators.get(how.estimator, {}))
    read = table.about.get("read") or {}
    return Scoring(
        how.estimator,
        parameters,
        empty=parameters.get("empty", table.about.get("empty", "paper")),
        recalibration=table.about.get("scaling"),
        predictor=how.predictor or str(table.about.get(PREDICTOR, "")),
        decode=read.get("decode", "threshold"),
        threshold=read.get("threshold", 0.5),
    )


def structures_of(table: Table) -> list[str]:
    """Return the structure of each row; a table of another program may not name its only structure."""
    return [row.get("structure") or FOREGROUND for row in table.rows]


def _rows_of(table: Table, structure: str) -> list[ScoreRow]:
    return [row for row, each in zip(table.rows, structures_of(table), strict=True) if each == structure]


def _cases(
    table: Table, structure: str, how: Calibration, empties_rank_last: bool, looks: LookLog
) -> CalibrationCases:
    rows = [row for row in _rows_of(table, structure) if not how.drop_unjudged or _has_loss(row, table, how)]
    groups = [row.get("group") or "" for row in rows] if how.by_patient else None
    if groups is not None and not all(groups):
        raise WrongContentError("group: expected the patient of each case in this column, got none.")
    confidence: Any = [_number(row, how.estimator) for row in rows]
    loss = [_loss(row, loss_column(table.columns, how.loss)) for row in rows]
    if empties_rank_last:
        # Empty masks are never accepted. As their loss counts as 1, a threshold below their rank is certified
        # only if the other cases alone keep the limit, too.
        is_empty = [row.get("k") == 0 for row in rows]
        confidence = rank_empty_last(confidence, is_empty)
        pairs = zip(is_empty, loss, strict=True)
        loss = [1.0 if empty and 0.0 <= value <= 1.0 else value for empty, value in pairs]
    return CalibrationCases(
        confidence,
        loss,
        patients=groups,
        ids=[row["case"] for row in rows],
        reference=how.reference.get(structure),
        checksums=[checksum_of_row(row) for row in rows],
        looks=looks,
    )


def looks_path(table: Path) -> Path:
    """Return the path of the file that remembers what was asked of the cases of a score table.

    It is one file per folder: cases are recognised by their checksums, whichever table they are in.
    """
    return table.with_name("calibration-looks.json")


def read_looks(table: Path) -> dict[str, LookLog]:
    """Read what was asked of the cases of a score table before, by structure; nothing without a file."""
    path = looks_path(table)
    if not path.exists():
        return {}
    saved = read_json(path)
    check_format(saved, _LOOKS, str(path))
    structures = check_keys(saved, ("format", "structures"), str(path))["structures"]
    if not isinstance(structures, dict):
        raise SavedStateError(f"{path}: expected questions by structure, got {structures!r}.")
    return {name: LookLog.from_dict(log, source=f"{path}: {name}") for name, log in structures.items()}


def write_looks(table: Path, looks: Mapping[str, LookLog]) -> None:
    """Write what was asked of the cases of a score table, by structure."""
    structures = {name: log.to_dict() for name, log in looks.items()}
    write_json(looks_path(table), {"format": _LOOKS, "structures": structures}, indent=None)


def _with_loss(target: Target, table: Table, how: Calibration) -> Target:
    """Return a target that names its loss, unless that is the Dice's or has no name."""
    name = loss_name(table, how.loss)
    return target if name in (DICE, None) else replace(target, loss=name_without_file(str(name)))


def _check_losses(table: Table, how: Calibration) -> None:
    """Raise an error for a table without the loss, and for a limit on the Dice of cases with other losses."""
    column, name = loss_column(table.columns, how.loss), loss_name(table, how.loss)
    is_computed = find_risk(column) is not None and column not in table.columns
    if is_computed and all(loss_of_row(row, column) is None for row in table.rows):
        raise ParameterError(no_loss_message(table.source, column))
    if any(target.below_dice is not None for target in how.targets) and name not in (DICE, None):
        raise ParameterError(
            f"below-dice: expected losses that are one minus the Dice, got those of {name}. Limit their mean "
            "(--target-risk alone), or judge by the Dice."
        )


def _has_loss(row: Mapping[str, Any], table: Table, how: Calibration) -> bool:
    return loss_of_row(row, loss_column(table.columns, how.loss)) is not None


def _loss(row: Mapping[str, Any], column: str) -> float:
    found = loss_of_row(row, column)
    return _number(row, column) if found is None else found


def _number(row: Mapping[str, Any], column: str) -> float:
    if row.get(column) is None:
        raise WrongContentError(
            f"{row['case']}: expected a number in the column {column!r}, got none. Losses come from "
            "`segtrust score --truth` or `segtrust evaluate`, or from a column of your own (--loss-column); "
            "--drop-unjudged leaves out rows without one."
        )
    return float(row[column])


def make_policy(found: Mapping[str, tuple[Certificate, Scoring]], table: Table) -> Policy | StructurePolicies:
    """Return the policy of one structure, or the policies of several, with what is known of the cases.

    Policies are estimated, without a guarantee, if the table says why its cases certify nothing.

    Parameters
    ----------
    found, table
        The result of `calibrate_table`, in which all are certified, and its table.
    """
    masks = tuple(sorted({row["mask"] for row in table.rows if row.get("mask")}))
    members = tuple(_member_counts(table.rows))
    policies = {}
    for name, (certificate, scoring) in found.items():
        policy = _with_packages(Policy.from_certificate(certificate, scoring, structure=name), table)
        if table.about.get(DOUBT):
            policy = policy.estimated(str(table.about[DOUBT]))
        confidences = tuple(sorted(row[scoring.estimator] for row in _rows_of(table, name)))
        reference = Reference(confidences, table.about.get("read") or {}, masks, members)
        policies[name] = replace(policy, reference=reference)
    return StructurePolicies(policies) if len(policies) > 1 else next(iter(policies.values()))


def _with_packages(policy: Policy, table: Table) -> Policy:
    """Add the package of a plug-in estimator to the versions of a policy, as the table names it."""
    packages = table.about.get(PACKAGES, {}).get(policy.scoring.estimator, {})
    own = {name: policy.versions[name] for name in OWN_VERSIONS}
    return replace(policy, versions={**own, **packages}) if packages else policy


def check_reading(policies: Policies, read: Mapping[str, Any]) -> None:
    """Raise an error if cases are read in another way than the calibration cases of policies.

    Another threshold, mask or channel gives other confidences, for which the guarantee does not apply.
    """
    saved = _reading_of(policies)
    made_with = {**_EARLIER_DEFAULTS, **saved} if saved else {}
    asked = plain_values({name: {**_EARLIER_DEFAULTS, **read}.get(name) for name in _READING}, "read")
    usual = {"fuse": "mean-probability"}
    changes = [
        f"{name} {made_with[name] or usual.get(name)!r}, not {asked[name] or usual.get(name)!r}"
        for name in _READING
        if name in made_with and made_with[name] != asked[name]
    ]
    if changes:
        raise PolicyError(
            f"policy: it was made with cases that were read with {'; '.join(changes)}. Read the new ones in "
            "the same way, or calibrate again."
        )


def fusion_of(policies: Policies) -> str | None:
    """Return how the maps of members were fused for policies; ``None`` for the default."""
    fusion = _reading_of(policies).get("fuse")
    return None if fusion is None else str(fusion)


def _reading_of(policies: Policies) -> Mapping[str, Any]:
    """Return how the calibration cases of policies were read; nothing if it is not known."""
    references = [policy.reference for policy in policies.values() if policy.reference is not None]
    return references[0].read if references else {}


def check_policies(policies: Policies, table: Table) -> None:
    """Raise an error if the confidences of a table were computed in another way than those of the policies.

    What a table does not say is not compared.
    """
    if table.about.get("read"):
        check_reading(policies, table.about["read"])
    for policy in policies.values():
        if table.about.get("estimators"):
            scoring = scoring_of(table, Calibration(policy.scoring.estimator, (Target(1.0),)))
            if policy.scoring.threshold == 0.5 or not table.about.get("read"):
                # Policies of release 0.1.0 do not state their threshold; the reference beside them does.
                scoring = replace(scoring, threshold=policy.scoring.threshold)
            policy.check_scoring(scoring)


def policies_for_rows(policies: Policies, rows: Sequence[ScoreRow]) -> Policies:
    """Return the policies as they hold for rows: certified only for the kind of masks they were made with.

    Parameters
    ----------
    policies
        By structure, as they hold for the model.
    rows
        Rows on which they are used.
    """
    members, masks = _member_counts(rows), {row["mask"] for row in rows if row.get("mask")}
    held = {}
    for name, policy in policies.items():
        reference = policy.reference
        if reference is None or not reference.masks or not reference.read:
            why = "how the cases it was made with were read is not known"
        elif masks - set(reference.masks):
            others = ", ".join(sorted(masks - set(reference.masks)))
            why = f"made with masks of another kind than used ({others})"
        elif reference.read.get("resample") == "map" and any(row.get("dice") is None for row in rows):
            why = "made with maps resampled to the ground truth, used with cases without ground truth"
        elif set(members) - set(reference.members):
            counts = (_format_counts(each) for each in (reference.members, members))
            why = "made with {} per case, used with {}".format(*counts)
        else:
            why = ""
        held[name] = policy.estimated(why) if why else policy
    return held


def _member_counts(rows: Sequence[ScoreRow]) -> list[int]:
    """Return the numbers of maps that cases are fused of; 1 without fusion."""
    return sorted({int(row.get("members") or 1) for row in rows})


def _format_counts(members: Sequence[int]) -> str:
    return " or ".join("one map" if count == 1 else f"{count} maps" for count in members)
