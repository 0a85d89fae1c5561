"""From a score table with losses to a policy, and the confidences that later ones are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segtrust.engine.judging import DICE, loss_name, refuse_doubles, refuse_text
from segtrust.engine.outcomes import Row
from segtrust.errors import ParameterError, PolicyError, WrongContentError
from segtrust.io.losses import as_loss
from segtrust.io.structures import FOREGROUND
from segtrust.io.tables import Table
from segtrust.saved import check_format, plain, read_json, write_json
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certificate import Certificate
from segtrust.selective.policy import Policy
from segtrust.selective.procedure import Procedure
from segtrust.selective.scoring import Scoring
from segtrust.selective.structures import StructurePolicies, certify_structures
from segtrust.selective.targets import Target

__all__ = [
    "Calibration",
    "calibrate_table",
    "check_reading",
    "other_masks",
    "read_reference",
    "reference_beside",
    "save_policies",
    "structures_of",
]

_REFERENCE = "segtrust-reference-1"
_READING = ("mask", "threshold", "channel", "labels")
"""Of the options of reading those on which confidences depend, beside the structure."""


@dataclass(frozen=True)
class Calibration:
    """What is promised, and of which rows it is learned.

    Attributes
    ----------
    estimator
        Column of the confidence.
    targets
        What the accepted cases shall keep.
    delta
        Probability that a promise is broken.
    loss
        Column of the loss; one minus the column ``dice`` where there is none.
    by_patient
        Whether the column ``group`` names patients, who are the units.
    predictor
        Which model made the maps, in words.
    reference
        Confidences of unlabelled cases by structure, for candidate thresholds.
    start_coverage
        Coverage at which the search for a threshold begins.
    drop_unjudged
        Whether rows without a loss are left out, instead of being an error. The promise is then about cases
        that have one.
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


def calibrate_table(table: Table, how: Calibration) -> dict[str, tuple[Certificate, Scoring]]:
    """Certify a threshold for each structure of a table, with what their confidences were made by.

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
    scoring = scoring_of(table, how)
    table.column("case")  # or say that there is none
    refuse_doubles(table)
    refuse_text(table, [how.estimator, how.loss, DICE])
    _refuse_other_losses(table, how)
    cases = {name: _cases(table, name, how) for name in dict.fromkeys(structures_of(table))}
    found = certify_structures(
        cases,
        how.targets,
        delta=how.delta,
        procedure=Procedure(start_coverages=(how.start_coverage,)),
        used_ids=scoring.seen_ids,
    )
    return {name: (certificate, scoring) for name, certificate in found.items()}


def scoring_of(table: Table, how: Calibration) -> Scoring:
    """Say how the confidences of a table were made; of a table from elsewhere only the estimator is known."""
    estimators = table.about.get("estimators", {})
    if estimators and how.estimator not in estimators:
        raise ParameterError(
            f"estimator: expected one that was scored ({', '.join(estimators)}), got {how.estimator!r}."
        )
    parameters = dict(estimators.get(how.estimator, {}))
    return Scoring(
        how.estimator,
        parameters,
        empty=parameters.get("empty", table.about.get("empty", "paper")),
        recalibration=table.about.get("scaling"),
        predictor=how.predictor,
    )


def structures_of(table: Table) -> list[str]:
    """Give the structure of each row; a table from elsewhere may tell of one alone, and not name it."""
    return [row.get("structure") or FOREGROUND for row in table.rows]


def _rows_of(table: Table, structure: str) -> list[Row]:
    return [row for row, each in zip(table.rows, structures_of(table), strict=True) if each == structure]


def _cases(table: Table, structure: str, how: Calibration) -> CalibrationCases:
    rows = [row for row in _rows_of(table, structure) if not how.drop_unjudged or _has_loss(row, table, how)]
    groups = [row.get("group") or "" for row in rows] if how.by_patient else None
    if groups is not None and not all(groups):
        raise WrongContentError("group: expected the patient of each case in this column, got none.")
    return CalibrationCases(
        [_number(row, how.estimator) for row in rows],
        [_loss(row, _loss_column(table, how)) for row in rows],
        patients=groups,
        ids=[row["case"] for row in rows],
        reference=how.reference.get(structure),
    )


def _refuse_other_losses(table: Table, how: Calibration) -> None:
    """Refuse to promise a Dice of cases that were judged by something else."""
    name = loss_name(table, how.loss)
    if any(target.below_dice is not None for target in how.targets) and name not in (DICE, None):
        raise ParameterError(
            f"below-dice: expected losses that are one minus the Dice, got those of {name}. Limit their mean "
            "(--target-risk alone), or judge by the Dice."
        )


def _loss_column(table: Table, how: Calibration) -> str:
    """Give the column of the loss: one for all rows, or the risk would be that of a mixture."""
    return DICE if how.loss == "loss" and "loss" not in table.columns else how.loss


def _has_loss(row: Mapping[str, Any], table: Table, how: Calibration) -> bool:
    return row.get(_loss_column(table, how)) is not None


def _loss(row: Mapping[str, Any], column: str) -> float:
    found = as_loss(row.get(column), column)
    return _number(row, column) if found is None else found


def _number(row: Mapping[str, Any], column: str) -> float:
    if row.get(column) is None:
        raise WrongContentError(
            f"{row['case']}: expected a number in the column {column!r}, got none. Losses come from "
            "`segtrust evaluate`, or from a column of your own (--loss-column); --drop-unjudged leaves out "
            "rows without one."
        )
    return float(row[column])


def save_policies(path: Path, found: Mapping[str, tuple[Certificate, Scoring]], table: Table) -> str:
    """Write the policy of a structure, or of several, and beside it what it was made with.

    Returns
    -------
    str
        What it promises, in words.
    """
    policies = {
        name: Policy.from_certificate(certificate, scoring, structure=name)
        for name, (certificate, scoring) in found.items()
    }
    whole = StructurePolicies(policies) if len(policies) > 1 else next(iter(policies.values()))
    path.parent.mkdir(parents=True, exist_ok=True)
    whole.save(path)
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
    }
    write_json(reference_beside(path), {"format": _REFERENCE, **values})
    return str(whole)


def reference_beside(policy: Path) -> Path:
    """Where the confidences of the calibration cases are, without names, and how the cases were read."""
    return policy.with_name(f"{policy.stem}.reference.json")


def _saved_reference(path: Path) -> Any:
    if not path.exists():
        return None
    saved = read_json(path)
    check_format(saved, _REFERENCE, str(path))
    return saved


def check_reading(path: Path, read: Mapping[str, Any]) -> None:
    """Refuse to read cases otherwise than those that a policy was made with, where the reference tells.

    Another threshold, mask or channel gives other confidences, of which nothing is promised.
    """
    made_with = (_saved_reference(path) or {}).get("read") or {}
    asked = plain({name: read[name] for name in _READING}, "read")
    told = [
        f"{name} {made_with[name]!r}, not {asked[name]!r}"
        for name in _READING
        if name in made_with and made_with[name] != asked[name]
    ]
    if told:
        raise PolicyError(
            f"{path}: the policy was made with cases that were read with {'; '.join(told)}. Read the new "
            "ones in the same way, or calibrate anew."
        )


def other_masks(path: Path, rows: Sequence[Row]) -> set[str] | None:
    """Give the kinds of masks that were scored but not calibrated with: they have other confidences.

    ``None`` where nothing tells how the calibration cases were read.
    """
    saved = _saved_reference(path) or {}
    if not saved.get("masks") or not saved.get("read"):
        return None
    return {row["mask"] for row in rows if row.get("mask")} - set(saved["masks"])


def read_reference(path: Path, policies: Mapping[str, Policy]) -> dict[str, list[float]]:
    """Read the confidences that policies were made with; nothing where the file is not there."""
    saved = _saved_reference(path)
    if saved is None:
        return {}
    if any(saved["digests"].get(name) != policy.digest for name, policy in policies.items()):
        raise ParameterError(
            f"{path}: expected the confidences that the policy was made with, got those of another. Keep "
            "both files together, or calibrate anew."
        )
    return {name: [float(value) for value in values] for name, values in saved["confidences"].items()}
