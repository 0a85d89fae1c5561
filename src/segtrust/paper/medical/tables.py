"""The numbers of the paper's Tables 2 to 5, for any tasks: tidy rows with the paper's values beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from segtrust.evaluation import REFERENCES, SHARES, summarise_sets
from segtrust.paper.medical.paper import paper_value
from segtrust.paper.medical.published import interpolated
from segtrust.paper.medical.sources import OOD
from segtrust.paper.medical.study import TaskResult

__all__ = ["medical_tables"]

Row = dict[str, Any]


def medical_tables(results: Sequence[TaskResult], *, interpolates: bool = False) -> dict[str, list[Row]]:
    """Give the tables by name.

    Parameters
    ----------
    results
        Of each task.
    interpolates
        Whether the columns of shares lie between the sizes at which sets were split, as in the paper.

    Returns
    -------
    dict
        ``"sets"`` (Table 2), ``"bounds"`` (Table 3), ``"areas"`` (Table 4), ``"coverages"`` (Table 5, of sets
        out of distribution), ``"comparisons"`` (paired tests), ``"tuning"`` (means over splits at each size).
        Rows have ``paper`` and ``difference`` where the paper has such a number.
    """
    found: dict[str, list[Row]] = {
        name: [] for name in ("sets", "bounds", "areas", "coverages", "comparisons", "tuning")
    }
    for result in results:
        for name, rows in _tables_of(result, interpolates).items():
            found[name] += [{"task": result.task.name, **row} for row in rows]
    return found


def _tables_of(result: TaskResult, interpolates: bool) -> dict[str, list[Row]]:
    plain = result.tables
    tuning = summarise_sets(result.tuning)
    shown = _at_shares(tuning) if interpolates else tuning
    name = result.task.name
    return {
        "sets": [
            _with_paper(row, name, "cases", "foreground_ratio") | _paper_shape(row, name)
            for row in plain["sets"]
        ],
        "bounds": [_with_paper(row, name, "max_epsilon", "mean_epsilon") for row in plain["bounds"]],
        "areas": [*_areas(plain["areas"], name), *_tuned(shown, name, "aurc")],
        "coverages": [
            *(_of_estimator(row, name, "coverage") for row in plain["coverages"] if row["set"] == OOD),
            *(row for row in _tuned(shown, name, "coverage") if row["set"] == OOD),
        ],
        "comparisons": list(plain["comparisons"]),
        "tuning": tuning,
    }


def _at_shares(tuning: Sequence[Row]) -> list[Row]:
    """Give the rows at the shares of the paper's tables, set by set."""
    sets = dict.fromkeys((row["set"], row["structure"]) for row in tuning)
    return [
        row
        for key in sets
        for share in SHARES
        for row in interpolated([row for row in tuning if (row["set"], row["structure"]) == key], share)
    ]


def _with_paper(row: Row, task: str, *quantities: str) -> Row:
    """Set the paper's numbers beside ours."""
    paper = {name: paper_value(name, task, row["set"]) for name in quantities}
    told: Row = {}
    for name, each in paper.items():
        value = None if each is None else each.value
        told |= {f"paper_{name}": value, f"difference_{name}": _difference(row[name], value)}
    return {**row, **told}


def _paper_shape(row: Row, task: str) -> Row:
    paper = paper_value("shape", task, row["set"])
    return {"paper_shape": None if paper is None else paper.digits}


def _areas(rows: Sequence[Row], task: str) -> Iterator[Row]:
    for row in rows:
        yield _of_estimator(row, task, "aurc")


def _of_estimator(row: Row, task: str, quantity: str) -> Row:
    """Give what a table says of an estimator that was not tuned."""
    kept = {name: row.get(name) for name in ("set", "structure", "estimator")}
    told = {"share": None, quantity: row[quantity], "std": None, "low": row["low"], "high": row["high"]}
    return {**kept, **told, **_beside(row, task, quantity, None)}


def _tuned(summary: Sequence[Row], task: str, quantity: str) -> Iterator[Row]:
    """Give what a table says of estimators that were tuned, at the shares that it shows."""
    for row in summary:
        if row["share"] is None or row["estimator"] in (*REFERENCES, "sdc"):
            continue
        kept = {name: row[name] for name in ("set", "structure", "estimator", "share")}
        shown = _reached(row) if quantity == "coverage" else row
        told = {quantity: shown[quantity], "std": shown[f"{quantity}_std"], "low": None, "high": None}
        yield {**kept, **told, **_beside(shown, task, quantity, row["share"])}


def _reached(row: Row) -> Row:
    """Give no coverage where not one split reaches the risk, as tables have a dash there."""
    return row if (row["not_reached"] or 0.0) < 1.0 else {**row, "coverage": None, "coverage_std": None}


def _beside(row: Row, task: str, quantity: str, share: float | None) -> Row:
    paper = paper_value(quantity, task, row["set"], row["estimator"], share)
    value, std = (None, None) if paper is None else (paper.value, paper.std)
    return {"paper": value, "paper_std": std, "difference": _difference(row[quantity], value)}


def _difference(ours: float | None, paper: float | None) -> float | None:
    return None if ours is None or paper is None else ours - paper
