"""Tables with a row for each estimator and a column for each set, as papers print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from segtrust.report.tables import latex_table, latex_text, markdown_table, write_text

__all__ = ["Cell", "Grid", "write_grid"]


@dataclass(frozen=True)
class Cell:
    """What a table shows in one place.

    Attributes
    ----------
    text
        Ours.
    beside, difference
        The paper's, in brackets behind it, and ours less the paper's, which only Markdown has room for.
    is_best
        Whether it is bold.
    """

    text: str
    beside: str = ""
    is_best: bool = False
    difference: str = ""

    def shown(self, bold: Callable[[str], str]) -> str:
        """Give all of it."""
        own = bold(self.text) if self.is_best else self.text
        told = ", ".join(filter(None, (self.beside, self.difference)))
        return f"{own} [{told}]" if told else own


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
        names = list(self.rows)
        lines = [[latex_text(name), *map(_latex, cells)] for name, cells in self.rows.items()]
        rules = {names.index(name) for name in self.rules if name in self.rows}
        return latex_table(list(map(latex_text, self.columns)), lines, rules)


def _latex(cell: Cell) -> str:
    own = Cell(latex_text(cell.text), latex_text(cell.beside), cell.is_best)
    return own.shown(lambda text: rf"\textbf{{{text}}}")


def write_grid(grid: Grid, stem: Path) -> None:
    """Write a table as ``.md`` and ``.tex``."""
    for ending, text in ((".md", grid.markdown()), (".tex", grid.latex())):
        write_text(stem.with_suffix(ending), text)
