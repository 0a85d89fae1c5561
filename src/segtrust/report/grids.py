"""Tables with a row for each estimator and a column for each set, as papers print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from segtrust.report.tables import markdown_table
from segtrust.saved import replacing

__all__ = ["Cell", "Grid", "write_grid"]

_SPECIAL = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "ε": r"$\epsilon$",
}


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place.

    Attributes
    ----------
    text
        Ours.
    beside
        The paper's, in brackets behind it.
    is_best
        Whether it is bold.
    """

    text: str
    beside: str = ""
    is_best: bool = False

    def shown(self, bold: Callable[[str], str]) -> str:
        """Give all of it."""
        own = bold(self.text) if self.is_best else self.text
        return f"{own} [{self.beside}]" if self.beside else own


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes
    ----------
    title
        Above it.
    columns
        Heads of the columns, that of the rows' names first.
    rows
        Cells of each row, by its name.
    notes
        Below it.
    """

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Cell]]
    notes: str = ""
    rules: frozenset[str] = field(default=frozenset())

    def markdown(self) -> str:
        """Give it as Markdown, without the title."""
        shown = [
            dict(
                zip(
                    self.columns,
                    [name, *(cell.shown(lambda text: f"**{text}**") for cell in cells)],
                    strict=True,
                )
            )
            for name, cells in self.rows.items()
        ]
        table = markdown_table(
            [
                {
                    name: value.replace("*", r"\*") if name == self.columns[0] else value
                    for name, value in row.items()
                }
                for row in shown
            ]
        )
        return f"{table}\n\n{self.notes}" if self.notes else table

    def latex(self) -> str:
        """Give it as LaTeX, for the package booktabs; rows named in ``rules`` have a line above them."""
        lines = [
            r"\begin{tabular}{l" + "c" * (len(self.columns) - 1) + "}",
            r"\toprule",
            " & ".join(map(_plain, self.columns)) + r" \\",
            r"\midrule",
        ]
        for name, cells in self.rows.items():
            if name in self.rules:
                lines.append(r"\midrule")
            lines.append(" & ".join([_plain(name), *(_latex(cell) for cell in cells)]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _latex(cell: Cell) -> str:
    own = Cell(_plain(cell.text), _plain(cell.beside), cell.is_best)
    return own.shown(lambda text: rf"\textbf{{{text}}}")


def _plain(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def write_grid(grid: Grid, stem: Path) -> None:
    """Write a table as ``.md`` and ``.tex``."""
    for ending, text in ((".md", grid.markdown()), (".tex", grid.latex())):
        with replacing(stem.with_suffix(ending)) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
