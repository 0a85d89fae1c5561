"""How well confidences rank the errors of a data set, and of others: the numbers of the paper's tables.

Rows of score tables in, tidy rows out; whatever made the confidences and the losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.engine import checksum_of_row
from segtrust.errors import CaseValueError, TooFewCasesError, WrongContentError
from segtrust.selective import (
    Bootstrap,
    RiskCoverageCurve,
    compare_rankings,
    coverage_at_risk,
    resampled_interval,
    trace_curve,
)

Row = dict[str, Any]
REFERENCES = {"oracle": 0.0, "random": 1.0}
"""What every confidence lies between, with their normalised AURC."""
ALL_STRUCTURES = "all structures"
"""Name of the mean over the structures of a case."""
_FEWEST = 2


@dataclass(frozen=True, eq=False)
class EvaluatedSet:
    """One structure of one set of cases.

    Attributes
    ----------
    name, structure
        Which.
    rows
        Of the cases that count.
    left_out
        Cases that do not, because their truth is empty.
    confidences, losses
        One a case; confidences by estimator.
    patients
        Unit of each case in intervals: its patient, or its checksum if there are copies; else ``None``.
    """

    name: str
    structure: str
    rows: tuple[Row, ...]
    left_out: int
    confidences: Mapping[str, Any]
    losses: Any
    patients: Any = None

    @property
    def curves(self) -> dict[str, RiskCoverageCurve]:
        """Risk-coverage curve by estimator, with the oracle's and that of knowing nothing."""
        found = {name: trace_curve(each, self.losses) for name, each in self.confidences.items()}
        first = next(iter(found.values()))
        return {**found, "oracle": first.oracle, "random": first.random}

    @property
    def full_risk(self) -> float:
        """Mean loss of all cases."""
        return float(np.mean(self.losses))


@dataclass(frozen=True)
class EvaluationSettings:
    """How rows are judged.

    Attributes
    ----------
    estimators
        Columns that hold confidences.
    loss
        Column that holds the loss of each case.
    drop_empty
        Whether cases with an empty truth are left out, as in the paper's tables.
    by_patient
        Whether the column ``group`` names patients, who are drawn as wholes.
    bootstrap
        Of the intervals.
    against
        The estimator that others are compared with; the first where it is not among them.
    """

    estimators: tuple[str, ...]
    loss: str = "loss"
    drop_empty: bool = False
    by_patient: bool = False
    bootstrap: Bootstrap = field(default_factory=lambda: Bootstrap(resamples=2000))
    against: str = "sdc"

    @property
    def reference(self) -> str:
        """The estimator that the others are compared with."""
        return self.against if self.against in self.estimators else self.estimators[0]


def evaluate_rows(sets: Mapping[str, Sequence[Row]], how: EvaluationSettings) -> dict[str, list[Row]]:
    """Give the tables of an evaluation by name.

    Parameters
    ----------
    sets
        Rows of each set by its name, that of the known distribution first: its mean loss is the risk at which
        the coverage of all is read off.
    how
        What is judged.

    Returns
    -------
    dict
        ``"sets"`` (cases, sizes, mean loss), ``"areas"`` (AURC with its interval, AUGRC, normalised AURC),
        ``"coverages"`` (the largest coverage at the risk of the first set), ``"comparisons"`` (paired) and
        ``"bounds"`` (how far SDC and IDC can be apart).
    """
    return evaluate_sets(evaluated_sets(sets, how), how)


def evaluate_sets(found: Sequence[EvaluatedSet], how: EvaluationSettings) -> dict[str, list[Row]]:
    """Give the tables of sets that are sorted already, see `evaluate_rows`."""
    first = {each.structure: each.full_risk for each in found if each.name == found[0].name}
    return {
        "sets": [_about(each) for each in found],
        "areas": [row for each in found for row in _areas(each, how)],
        "coverages": [
            row for each in found if each.structure in first for row in _coverages(each, first, how)
        ],
        "comparisons": [row for each in found for row in _comparisons(each, how)],
        "bounds": [_bounds(each) for each in found if each.structure != ALL_STRUCTURES],
    }


def evaluated_sets(sets: Mapping[str, Sequence[Row]], how: EvaluationSettings) -> list[EvaluatedSet]:
    """Sort the rows of each set by structure; several structures also give their mean."""
    return [_evaluated(*each, how) for each in _structures_of(sets, how)]


def rankable_sets(
    sets: Mapping[str, Sequence[Row]], how: EvaluationSettings
) -> tuple[list[EvaluatedSet], list[str]]:
    """Sort rows as `evaluated_sets` does; what has too few cases to rank is left out, and told in words.

    Examples
    --------
    >>> row = {"case": "a", "structure": "organ", "sdc": 0.9, "loss": 0.1, "k": 5}
    >>> rankable_sets({"ID": [row]}, EvaluationSettings(("sdc",)))
    ([], ['ID, organ: expected at least 2 cases to rank, got 1.'])
    """
    found, told = [], []
    for each in _structures_of(sets, how):
        try:
            found.append(_evaluated(*each, how))
        except TooFewCasesError as error:
            told.append(str(error))
    return found, told


def _structures_of(
    sets: Mapping[str, Sequence[Row]], how: EvaluationSettings
) -> Iterator[tuple[str, str, Sequence[Row]]]:
    for name, rows in sets.items():
        structures = list(dict.fromkeys(row["structure"] for row in rows))
        for structure in structures:
            yield name, structure, [row for row in rows if row["structure"] == structure]
        if len(structures) > 1:
            yield name, ALL_STRUCTURES, over_structures(rows, how)


def _evaluated(name: str, structure: str, rows: Sequence[Row], how: EvaluationSettings) -> EvaluatedSet:
    kept = [row for row in rows if not (how.drop_empty and row.get("truth_ratio") == 0.0)]
    left_out = len(rows) - len(kept)
    if len(kept) < _FEWEST:
        was = "was" if left_out == 1 else "were"
        raise TooFewCasesError(
            f"{name}, {structure}: expected at least {_FEWEST} cases to rank, got {len(kept)}"
            f"{f' after {left_out} with an empty truth {was} left out' if left_out else ''}."
        )
    patients = [row["group"] for row in kept] if how.by_patient else _copies_as_units(kept)
    if how.by_patient and not all(patients or ()):
        raise CaseValueError(f"{name}: expected the patient of each case in the column 'group', got none.")
    if patients is not None and len(set(patients)) < _FEWEST:
        unit = "patients" if how.by_patient else "different maps"
        raise TooFewCasesError(f"{name}, {structure}: expected at least {_FEWEST} {unit} to rank, got 1.")
    return EvaluatedSet(
        name,
        structure,
        tuple(kept),
        left_out,
        {each: _numbers(kept, each) for each in how.estimators},
        _numbers(kept, how.loss),
        patients,
    )


def _copies_as_units(rows: Sequence[Row]) -> list[str] | None:
    """Return a unit per case, the same for copies (equal checksums); ``None`` if there are no copies."""
    units = [checksum_of_row(row) or f"case {number}" for number, row in enumerate(rows)]
    return units if len(set(units)) < len(units) else None


def _numbers(rows: Sequence[Row], column: str) -> Any:
    missing = next((row["case"] for row in rows if row.get(column) is None), None)
    if missing is not None:
        raise WrongContentError(f"{missing}: expected a number in the column {column!r}, got none.")
    return np.array([row[column] for row in rows], np.float64)


def over_structures(rows: Sequence[Row], how: EvaluationSettings) -> list[Row]:
    """Give one row a case: the mean confidence of the structures in its mask, the mean loss of those there.

    A structure is there if the mask or the truth has it. Where none is, all of them count.
    """
    cases: dict[str, list[Row]] = {}
    for row in rows:
        cases.setdefault(row["case"], []).append(row)
    return [_over(group, how) for group in cases.values()]


def _over(group: Sequence[Row], how: EvaluationSettings) -> Row:
    predicted = [row for row in group if row["k"] > 0] or group
    there = [row for row in group if row["k"] > 0 or (row.get("truth_ratio") or 0.0) > 0] or group
    ratios = [row["truth_ratio"] for row in group if row.get("truth_ratio") is not None]
    return {
        "case": group[0]["case"],
        "structure": ALL_STRUCTURES,
        "group": group[0].get("group", ""),
        "checksum": group[0].get("checksum", ""),
        "file": group[0].get("file", ""),
        "k": sum(row["k"] for row in group),
        **{name: float(np.mean(_numbers(predicted, name))) for name in how.estimators},
        how.loss: float(np.mean(_numbers(there, how.loss))),
        "truth_ratio": max(ratios) if ratios else None,
    }


def _key(found: EvaluatedSet) -> Row:
    return {"set": found.name, "structure": found.structure}


def _about(found: EvaluatedSet) -> Row:
    shapes = sorted({row["shape"] for row in found.rows if row.get("shape")})
    ratios = [row["truth_ratio"] for row in found.rows if row.get("truth_ratio") is not None]
    return {
        **_key(found),
        "cases": len(found.rows),
        "left_out_empty_truth": found.left_out,
        "shape": shapes[0] if len(shapes) == 1 else f"{len(shapes)} shapes" if shapes else "",
        "foreground_ratio": float(np.mean(ratios)) if ratios else None,
        "empty_masks": sum(row["k"] == 0 for row in found.rows),
        "mean_loss": found.full_risk,
    }


def _areas(found: EvaluatedSet, how: EvaluationSettings) -> Iterator[Row]:
    for name, curve in found.curves.items():
        row = {**_key(found), "estimator": name, "aurc": curve.aurc, "low": None, "high": None}
        if name in found.confidences:
            interval = resampled_interval(
                found.confidences[name], found.losses, patients=found.patients, bootstrap=how.bootstrap
            )
            row |= {"low": interval.low, "high": interval.high}
        yield row | {"augrc": curve.augrc, "normalised_aurc": _normalised(curve, name)}


def _normalised(curve: RiskCoverageCurve, name: str) -> float | None:
    if name in REFERENCES:
        return REFERENCES[name]
    return curve.normalised_aurc


def _coverages(found: EvaluatedSet, risks: Mapping[str, float], how: EvaluationSettings) -> Iterator[Row]:
    target = risks[found.structure]
    for name, curve in found.curves.items():
        row = {**_key(found), "estimator": name, "target_risk": target}
        row |= {"coverage": curve.coverage_at_risk(target), "low": None, "high": None}
        if name in found.confidences:
            interval = resampled_interval(
                found.confidences[name],
                found.losses,
                coverage_at_risk(target),
                patients=found.patients,
                bootstrap=how.bootstrap,
            )
            row |= {"low": interval.low, "high": interval.high}
        yield row


def _comparisons(found: EvaluatedSet, how: EvaluationSettings) -> Iterator[Row]:
    for name in how.estimators:
        if name == how.reference:
            continue
        ours, other = (found.confidences[each] for each in (how.reference, name))
        made = compare_rankings(ours, other, found.losses, patients=found.patients, bootstrap=how.bootstrap)
        yield {
            **_key(found),
            "estimator": how.reference,
            "against": name,
            "difference": made.difference,
            "low": made.low,
            "high": made.high,
            "p_value": made.p_value,
        }


def _bounds(found: EvaluatedSet) -> Row:
    errors = [each for row in found.rows if (each := row.get("relative_error")) is not None and each == each]
    return {
        **_key(found),
        "cases": len(errors),
        "empty_masks": len(found.rows) - len(errors),
        "max_epsilon": max(errors, default=None),
        "mean_epsilon": float(np.mean(errors)) if errors else None,
    }
