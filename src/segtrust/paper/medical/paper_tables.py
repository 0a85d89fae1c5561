"""The paper's Tables 2 to 5 for people: ours, and the paper's in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segtrust.paper.medical.grids import Cell, Grid
from segtrust.paper.medical.paper import paper_value
from segtrust.paper.medical.sources import PAPER_TASKS, TaskMaps
from segtrust.report.styles import style_of

__all__ = ["grids_of"]

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

_ORDER = ("amsp", "ane", "mmmc", "pla", "tla", "sdc", "idc", "sdc-tuned", "pla-tuned", "aef", "aef-sdc")
_LAST = ("oracle", "random")
_BESIDE = "In square brackets what the paper reports, of its own networks, and ours less the paper's."
_TUNED = (
    "Estimators with a share in percent have learned from that part of the set, and are judged on the rest: "
    "mean ± standard deviation over {repeats} splits."
)


def grids_of(tables: Tables, tasks: Sequence[TaskMaps], repeats: int) -> dict[str, Grid]:
    """Give the tables for people: ``"sets"``, ``"bounds"``, ``"areas"``, and ``"coverages"`` if any."""
    titles = {task.name: task.title for task in tasks}
    beside = _BESIDE if any(task.name in PAPER_TASKS for task in tasks) else ""
    tuned = _TUNED.format(repeats=repeats) if repeats else ""
    notes = " ".join(filter(None, (beside, tuned, "Bold: the best.")))
    found = {
        "sets": _by_set("The test sets", tables["sets"], titles, _SETS),
        "bounds": _by_set(
            "Bound on the relative error between SDC and IDC", tables["bounds"], titles, _BOUNDS
        ),
        "areas": _by_estimator("AURC, lower is better", tables["areas"], titles, "aurc", notes),
    }
    if tables["coverages"]:
        title = "Largest coverage out of distribution at the risk of all cases in distribution"
        found["coverages"] = _by_estimator(title, tables["coverages"], titles, "coverage", notes)
    return found


_SETS = {"size": "shape", "cases": "cases", "foreground ratio": "foreground_ratio"}
_BOUNDS = {"max ε": "max_epsilon", "mean ε": "mean_epsilon"}
_FORMATS = {"cases": ".0f", "foreground_ratio": ".3f", "max_epsilon": ".1e", "mean_epsilon": ".1e"}


def _by_set(title: str, rows: Sequence[Row], titles: Mapping[str, str], columns: Mapping[str, str]) -> Grid:
    """Give a table with a row for each set."""
    shown = {_set_name(row, titles): [_set_cell(row, column) for column in columns.values()] for row in rows}
    has_paper = any(cell.beside for cells in shown.values() for cell in cells)
    return Grid(title, ["set", *columns], shown, _BESIDE if has_paper else "")


def _set_name(row: Row, titles: Mapping[str, str]) -> str:
    structure = "" if row["structure"] == "foreground" else f", {row['structure']}"
    return f"{titles[row['task']]} {row['set']}{structure}"


def _set_cell(row: Row, column: str) -> Cell:
    value = row[column]
    paper = paper_value(column, row["task"], row["set"])
    digits = "" if paper is None else paper.digits
    if column not in _FORMATS:
        return Cell(str(value), digits)
    difference = row[f"difference_{column}"]
    shown = "" if difference is None else _signed(_short(difference, _FORMATS[column]))
    return Cell("–" if value is None else _short(value, _FORMATS[column]), digits, difference=shown)


def _short(value: float, form: str) -> str:
    """Format a number, with exponents as the paper prints them.

    Examples
    --------
    >>> _short(2.8e-05, ".1e")
    '2.8e-5'
    """
    return format(value, form).replace("e-0", "e-")


def _signed(number: str) -> str:
    """Give a difference with its sign; what is nothing when rounded has none.

    Examples
    --------
    >>> _signed("-0.012"), _signed("0.003"), _signed("-0.000")
    ('−0.012', '+0.003', '±0.000')
    """
    if not number.strip("-0.% "):
        return f"±{number.removeprefix('-')}"
    return number.replace("-", "−", 1) if number.startswith("-") else f"+{number}"


def _by_estimator(
    title: str, rows: Sequence[Row], titles: Mapping[str, str], quantity: str, notes: str
) -> Grid:
    """Give a table with a row for each estimator, and a column for each set."""
    columns = {(row["task"], row["set"], row["structure"]): _set_name(row, titles) for row in rows}
    found = {(_name(row), key): row for row in rows for key in [(row["task"], row["set"], row["structure"])]}
    best = {key: _best([row for (_, at), row in found.items() if at == key], quantity) for key in columns}
    shown = {
        name: [_cell(found.get((name, key)), quantity, best[key]) for key in columns] for name in _names(rows)
    }
    return Grid(title, ["", *columns.values()], shown, notes, frozenset({style_of("oracle").label}))


def _names(rows: Sequence[Row]) -> list[str]:
    """Give the names of the rows: those that learn nothing, those that do, and the references."""
    places = {name: place for place, name in enumerate((*_ORDER, *_LAST))}
    order = sorted(rows, key=lambda row: (places.get(row["estimator"], len(places)), row["share"] or 0.0))
    return list(dict.fromkeys(map(_name, order)))


def _name(row: Row) -> str:
    label = style_of(row["estimator"]).label
    return label if row["share"] is None else f"{label} ({row['share']:.0%})"


def _best(rows: Sequence[Row], quantity: str) -> str:
    """Give the best of the estimators as it is shown: what looks equal is equally bold."""
    values = [row[quantity] for row in rows if row["estimator"] not in _LAST and row[quantity] is not None]
    if not values:
        return ""
    return _number(min(values) if quantity == "aurc" else max(values), quantity)


def _cell(row: Row | None, quantity: str, best: str) -> Cell:
    if row is None:
        return Cell("")
    value = row[quantity]
    shown = "–" if value is None else _number(value, quantity)
    is_best = shown == best and row["estimator"] not in _LAST
    spread = "" if row["std"] is None else f" ± {_number(row['std'], quantity)}"
    difference = "" if row["difference"] is None else _signed(_number(row["difference"], quantity))
    if quantity == "coverage":
        difference = difference.replace(" %", " points")
    return Cell(f"{shown}{spread}", _paper(row, quantity), is_best, difference)


def _number(value: float, quantity: str) -> str:
    return f"{value:.3f}" if quantity == "aurc" else f"{100.0 * value:.2f} %"


def _paper(row: Row, quantity: str) -> str:
    """Give the paper's number as we show ours; a dash where it has one, nothing where it has no number."""
    known = paper_value(quantity, row["task"], row["set"], row["estimator"], row["share"])
    if known is None:
        return ""
    if known.value is None:
        return "–"
    spread = "" if known.std is None else f" ± {_number(known.std, quantity)}"
    return f"{_number(known.value, quantity)}{spread}"
