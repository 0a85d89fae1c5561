"""The tables of an evaluation, as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segtrust.report.evaluation import TITLES, rounded_row
from segtrust.report.html.markup import Html, tag
from segtrust.report.html.run import TABLES
from segtrust.report.tuned_sets import tuning_for_people

__all__ = ["tables_of"]

Row = Mapping[str, Any]
_MOST_ROWS = 400
"""Of a table on a page; the file beside it has all."""
_TEXT = frozenset(["set", "structure", "estimator", "against", "shape"])
_COUNTS = frozenset(["cases", "left_out_empty_truth", "empty_masks", "size"])
_HEADS = {"left_out_empty_truth": "left out", "aurc": "AURC", "augrc": "AUGRC"}
_HEADS |= {"normalised_aurc": "normalised AURC", "p_value": "p", "max_epsilon": "max ε"}
_HEADS |= {"mean_epsilon": "mean ε", "tuning cases": "tuning cases"}


def tables_of(tables: Mapping[str, Sequence[Row]], *, are_files: bool = True) -> list[Html]:
    """Give each table that there is, rounded, with its caption, and the file that has it in full."""
    titles = {**TITLES, "tuning": "Estimators that learn from a part of each set"}
    rounded = {name: _rounded(name, tables[name]) for name in TABLES if tables.get(name)}
    files = {name: f"tables/{name}.csv" if are_files else "" for name in rounded}
    return [_table(titles[name], files[name], rows) for name, rows in rounded.items() if rows]


def _rounded(name: str, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Round; counts of a table that was read are whole numbers again."""
    whole = [{key: _whole(key, value) for key, value in row.items()} for row in rows]
    if name != "tuning":
        return [rounded_row(row) for row in whole]
    shown = tuning_for_people(whole)
    return [{key: str(value).replace(r"\*", "*") for key, value in row.items()} for row in shown]


def _whole(column: str, value: Any) -> Any:
    return int(value) if column in _COUNTS and value is not None else value


def _table(title: str, file: str, rows: Sequence[Mapping[str, str]]) -> Html:
    heads = [
        tag("th", _HEADS.get(key, key.replace("_", " ")), scope="col", class_=_kind(key)) for key in rows[0]
    ]
    body = [
        tag("tr", *(tag("td", value, class_=_kind(key)) for key, value in row.items()))
        for row in rows[:_MOST_ROWS]
    ]
    more = f" The first {_MOST_ROWS} of {len(rows)} rows." if len(rows) > _MOST_ROWS else ""
    caption = tag("caption", f"{title}.{more} ", tag("small", file) if file else None)
    return tag(
        "div",
        tag("table", caption, tag("thead", tag("tr", *heads)), tag("tbody", *body)),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=title,
    )


def _kind(column: str) -> str:
    return "text" if column in _TEXT else "number"
