"""Tables as files: full precision for machines, rounded for people."""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust._files import atomic_write
from segtrust.errors import EmptyArrayError
from segtrust.io import guard_formula

__all__ = [
    "latex_table",
    "latex_text",
    "markdown_table",
    "rows_as_latex",
    "write_csv",
    "write_markdown",
    "write_text",
]

Row = Mapping[str, Any]
_IN_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "−": "$-$",
    "ε": r"$\epsilon$",
}


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows with the same columns, numbers to their last digit.

    Text that a spreadsheet would run as a formula is preceded by an apostrophe.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> write_csv(path, [{"n": 1, "risk": 0.1}])
    >>> path.read_text().split()
    ['n,risk', '1,0.1']
    """
    _check_rows(rows, path)
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(guard_formula, rows[0]))
        writer.writerows([guard_formula(row.get(name)) for name in rows[0]] for row in rows)


def _check_rows(rows: Sequence[Row], path: Path) -> None:
    if not rows:
        raise EmptyArrayError(f"{path}: expected at least one row to write, got none.")


def markdown_table(rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> str:
    """Give a Markdown table; ``formats`` by column are those of `format`.

    Examples
    --------
    >>> print(markdown_table([{"n": 30, "risk": 0.123456}], {"risk": ".3f"}))
    | n | risk |
    |---|---|
    | 30 | 0.123 |
    """
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns)]
    lines += [[format(row[name], (formats or {}).get(name, "")) for name in columns] for row in rows]
    return "\n".join(_line(cells) for cells in lines)


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(cells) + "|" if set(cells) == {"---"} else "| " + " | ".join(cells) + " |"


def latex_table(columns: Sequence[str], lines: Sequence[Sequence[str]], rules: Collection[int] = ()) -> str:
    r"""Give a LaTeX table for the package booktabs, of cells that are LaTeX already, see `latex_text`.

    Parameters
    ----------
    columns
        Heads.
    lines
        Cells of each row.
    rules
        Numbers of the rows that have a line above them.

    Examples
    --------
    >>> print(latex_table(["n", "risk"], [["30", "0.123"]]))
    \begin{tabular}{lc}
    \toprule
    n & risk \\
    \midrule
    30 & 0.123 \\
    \bottomrule
    \end{tabular}
    """
    shown = [rf"\begin{{tabular}}{{l{'c' * (len(columns) - 1)}}}", r"\toprule"]
    shown += [" & ".join(columns) + r" \\", r"\midrule"]
    for number, cells in enumerate(lines):
        if number in rules:
            shown.append(r"\midrule")
        shown.append(" & ".join(cells) + r" \\")
    return "\n".join([*shown, r"\bottomrule", r"\end{tabular}"])


def rows_as_latex(rows: Sequence[Mapping[str, str]]) -> str:
    """Give rows that are rounded for people as a LaTeX table."""
    heads = [latex_text(name.replace("_", " ")) for name in rows[0]]
    cells = [[latex_text(value.replace(r"\*", "*")) for value in row.values()] for row in rows]
    return latex_table(heads, cells)


def latex_text(text: str) -> str:
    r"""Give text as LaTeX prints it.

    Examples
    --------
    >>> print(latex_text("case_1 & 5 %"))
    case\_1 \& 5 \%
    """
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    with atomic_write(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def write_markdown(path: Path, rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> None:
    """Write a Markdown table."""
    _check_rows(rows, path)
    write_text(path, markdown_table(rows, formats))
