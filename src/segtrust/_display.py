"""How results show themselves: one short line for `repr`, and a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["Displayed", "format_value", "html_table", "short_repr"]

_LONGEST = 60
"""Characters of a value that are shown."""
_MOST_ROWS = 20
"""Rows of a table that are shown in a notebook."""


def format_value(value: Any) -> str:
    """Return a value in a few characters: numbers with four significant digits, long texts shortened.

    Examples
    --------
    >>> format_value(0.123456), format_value((0.25, 1 / 3)), format_value(None), format_value("sdc")
    ('0.1235', '(0.25, 0.3333)', 'None', 'sdc')
    """
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        text = ", ".join(map(format_value, value))
        text = f"({text})" if isinstance(value, tuple) else f"[{text}]"
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def short_repr(kind: object, values: Mapping[str, Any]) -> str:
    """Return a one-line representation: the name of the class of ``kind`` and a few values by name.

    Examples
    --------
    >>> short_repr(3, {"cases": 336, "aurc": 0.0326881, "estimator": "sdc", "threshold": None})
    "int(cases=336, aurc=0.03269, estimator='sdc', threshold=None)"
    """
    shown = (f"{name}={_quoted(value)}" for name, value in values.items())
    return f"{type(kind).__name__}({', '.join(shown)})"


def _quoted(value: Any) -> str:
    return repr(format_value(value)) if isinstance(value, str) else format_value(value)


def html_table(
    title: str,
    rows: Mapping[str, Any] | Iterable[Sequence[Any]],
    *,
    header: Sequence[str] = (),
    most_rows: int = _MOST_ROWS,
) -> str:
    """Return a small HTML table for a notebook; everything in it is escaped.

    Parameters
    ----------
    title
        Sentence above the table; none if empty.
    rows
        Values by label, or one sequence of cells per row.
    header
        Names of the columns.
    most_rows
        Number of rows that are shown; a last line states how many there are.

    Examples
    --------
    >>> html_table("a < b", {"AURC": 0.0327})
    '<div><p>a &lt; b</p><table><tbody><tr><th>AURC</th><td>0.0327</td></tr></tbody></table></div>'
    """
    lines = list(rows.items()) if isinstance(rows, Mapping) else [tuple(row) for row in rows]
    parts = [f"<p>{escape(title)}</p>"] if title else []
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{_html_cells(cells)}</tr>" for cells in lines[:most_rows])
    thead = f"<thead><tr>{head}</tr></thead>" if head else ""
    parts.append(f"<table>{thead}<tbody>{body}</tbody></table>")
    if len(lines) > most_rows:
        parts.append(f"<p>{most_rows} of {len(lines)} rows shown</p>")
    return f"<div>{''.join(parts)}</div>"


def _html_cells(cells: Sequence[Any]) -> str:
    first, *others = (escape(format_value(cell)) for cell in cells)
    return f"<th>{first}</th>" + "".join(f"<td>{cell}</td>" for cell in others)


class Displayed:
    """Mixin for results: a short ``repr``, and a table in a notebook. Dataclasses need ``repr=False``."""

    def _shown(self) -> Mapping[str, Any]:
        """Return the few values that tell what this is, by the name of their attribute."""
        raise NotImplementedError

    def _caption(self) -> str:
        """Return the sentence above the table in a notebook."""
        return type(self).__name__

    def __repr__(self) -> str:
        """Return the result in one line."""
        return short_repr(self, self._shown())

    def _repr_html_(self) -> str:
        """Return the result as a table for a notebook."""
        labels = {name.replace("_", " "): value for name, value in self._shown().items()}
        return html_table(self._caption(), labels)
