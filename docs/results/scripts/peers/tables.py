"""A table of a page: made as Markdown, and found there again."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """One table of the page.

    Attributes
    ----------
    name
        Of the mark above it in the page.
    header
        Names of the columns.
    rows
        Cells, as text.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Give the lines as they stand in the page."""
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"<!-- table: {self.name} -->\n\n{body}\n"


def find_table(page: str, name: str) -> Table:
    """Find a table in the text of a page by its mark."""
    found = re.search(rf"<!-- table: {re.escape(name)} -->\n+((?:\|.*\|\n)+)", page)
    if found is None:
        raise LookupError(f"{name}: the page has no table with this mark.")
    cells = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in found[1].splitlines()]
    return Table(name, cells[0], tuple(cells[2:]))
