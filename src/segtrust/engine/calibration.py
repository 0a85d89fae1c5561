"""From a score table with losses to a policy, and the file beside it with the calibration confidences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from segtrust._files import (
    atomic_write_all,
    check_format,
    check_keys,
    format_json,
    naming_errors,
    plain_values,
    read_json,
    remove_stale_drafts_of,
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
from segtrust.engine.score_table import DOUBT, PACKAGES, PREDICTOR
from segtrust.engine.triage import Policies, checksum_of_row
from segtrust.errors import ParameterError, PolicyError, SavedStateError, WrongContentError
from segtrust.io import FOREGROUND, ScoreRow, Table
from segtrust.policy import (
    OWN_VERSIONS,
    Policy,
    Scoring,
    StructurePolicies,
    certify_structures,
    rank_empty_last,
)
from segtrust.risks import find_risk
from segtrust.selective import CalibrationCases, Certificate, LookLog, Procedure, Target

__all__ = [
    "Calibration",
    "calibrate_table",
    "check_policies",
    "check_reading",
    "fusion_of",
    "looks_path",
    "policies_for_rows",
    "read_looks",
    "read_reference",
    "reference_path",
    "save_policies",
    "structures_of",
    "write_looks",
]

_REFERENCE = "segtrust-reference-1"
_LOOKS = "segtrust-table-looks-1"
_IN_REFERENCE = {"digests": dict, "confidences": dict, "read": dict, "masks": list, "members": list}
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


def save_policies(path: Path, found: Mapping[str, tuple[Certificate, Scoring]], table: Table) -> str:
    """Write the policy of one or several structures, and beside it the calibration confidences.

    Policies are estimated, without a guarantee, if the table says why its cases certify nothing.

    Parameters
    ----------
    path
        A JSON file.
    found, table
        The result of `calibrate_table`, and its table.

    Returns
    -------
    str
        The guarantee in words.
    """
    policies = {
        name: _with_packages(Policy.from_certificate(certificate, scoring, structure=name), table)
        for name, (certificate, scoring) in found.items()
    }
    if table.about.get(DOUBT):
        policies = {name: each.estimated(str(table.about[DOUBT])) for name, each in policies.items()}
    whole = StructurePolicies(policies) if len(policies) > 1 else next(iter(policies.values()))
    confidences = {
        name: sorted(row[scoring.estimator] for row in _rows_of(table, name))
        for name, (_, scoring) in found.items()
    }
    digests = {policy.structure: policy.digest for policy in policies.values()}
    values = {
        "digests": digests,
        "confidences": confidences,
        "read": table.about.get("read", {}),
        "masks": sorted({row["mask"] for row in table.rows if row.get("mask")}),
        "members": _member_counts(table.rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale_drafts_of(path)
    with atomic_write_all(path, reference_path(path)) as (policy_draft, reference_draft):
        policy_draft.write_text(format_json(whole.to_dict()), encoding="utf-8")
        reference_draft.write_text(format_json({"format": _REFERENCE, **values}), encoding="utf-8")
    return str(whole)


def _with_packages(policy: Policy, table: Table) -> Policy:
    """Add the package of a plug-in estimator to the versions of a policy, as the table names it."""
    packages = table.about.get(PACKAGES, {}).get(policy.scoring.estimator, {})
    own = {name: policy.versions[name] for name in OWN_VERSIONS}
    return replace(policy, versions={**own, **packages}) if packages else policy


def reference_path(policy: Path) -> Path:
    """Return the path of the file with the calibration confidences and how the cases were read."""
    return policy.with_name(f"{policy.stem}.reference.json")


def _saved_reference(path: Path) -> Any:
    """Read the file beside a policy; ``None`` if there is none."""
    if not path.exists():
        return None
    saved = read_json(path)
    check_format(saved, _REFERENCE, str(path))
    for name, kind in _IN_REFERENCE.items():
        value = saved.get(name) or kind()
        is_plain = kind is dict or (
            isinstance(value, list) and all(isinstance(item, str | int) for item in value)
        )
        if not (isinstance(value, kind) and is_plain):
            raise SavedStateError(f"{path}: expected a {kind.__name__} of {name}, got {saved[name]!r}.")
    return saved


def check_reading(path: Path, read: Mapping[str, Any]) -> None:
    """Raise an error if cases are read in another way than the calibration cases of a policy.

    Another threshold, mask or channel gives other confidences, for which the guarantee does not apply.
    """
    saved = (_saved_reference(path) or {}).get("read")
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
            f"{path}: the policy was made with cases that were read with {'; '.join(changes)}. Read the new "
            "ones in the same way, or calibrate again."
        )


def fusion_of(path: Path) -> str | None:
    """Return how the maps of members were fused for a policy; ``None`` for the default.

    ``path`` is that of the file beside the policy, see `reference_path`.
    """
    fusion = ((_saved_reference(path) or {}).get("read") or {}).get("fuse")
    return None if fusion is None else str(fusion)


def check_policies(policies: Policies, path: Path, table: Table) -> None:
    """Raise an error if the confidences of a table were computed in another way than those of the policies.

    ``path`` is that of the file beside the policies, see `reference_path`. What a table does not say is not
    compared.
    """
    if table.about.get("read"):
        check_reading(path, table.about["read"])
    for policy in policies.values():
        if table.about.get("estimators"):
            scoring = scoring_of(table, Calibration(policy.scoring.estimator, (Target(1.0),)))
            if policy.scoring.threshold == 0.5 or not table.about.get("read"):
                # Policies of release 0.1.0 do not state their threshold; the reference beside them does.
                scoring = replace(scoring, threshold=policy.scoring.threshold)
            policy.check_scoring(scoring)


def policies_for_rows(policies: Policies, path: Path, rows: Sequence[ScoreRow]) -> Policies:
    """Return the policies as they hold for rows: certified only for the kind of masks they were made with.

    Parameters
    ----------
    policies
        By structure, as they hold for the model.
    path
        The file beside the policies, see `reference_path`.
    rows
        Rows on which they are used.
    """
    saved = _saved_reference(path) or {}
    members, calibrated_members = _member_counts(rows), saved.get("members") or [1]
    other_masks = {row["mask"] for row in rows if row.get("mask")} - set(saved.get("masks") or ())
    if not saved.get("masks") or not saved.get("read"):
        why = "how the cases it was made with were read is not known"
    elif other_masks:
        why = f"made with masks of another kind than used ({', '.join(sorted(other_masks))})"
    elif set(members) - set(calibrated_members):
        why = f"made with {_format_counts(calibrated_members)} per case, used with {_format_counts(members)}"
    else:
        return policies
    return {name: policy.estimated(why) for name, policy in policies.items()}


def _member_counts(rows: Sequence[ScoreRow]) -> list[int]:
    """Return the numbers of maps that cases are fused of; 1 without fusion."""
    return sorted({int(row.get("members") or 1) for row in rows})


def _format_counts(members: Sequence[int]) -> str:
    return " or ".join("one map" if count == 1 else f"{count} maps" for count in members)


def read_reference(path: Path, policies: Policies) -> dict[str, list[float]]:
    """Read the confidences of the calibration cases; nothing if there is no such file."""
    saved = _saved_reference(path)
    if saved is None:
        return {}
    digests = saved.get("digests") or {}
    if any(digests.get(name) != policy.digest for name, policy in policies.items()):
        raise ParameterError(
            f"{path}: expected the confidences that the policy was made with, got those of another. Keep "
            "both files together, or calibrate again."
        )
    with naming_errors(str(path)):
        found = saved.get("confidences") or {}
        return {name: [float(value) for value in values] for name, values in found.items()}
