"""Tables keep every digit in CSV and round in Markdown."""

import csv

import pytest

from segtrust.errors import EmptyArrayError
from segtrust.io import read_table
from segtrust.report.tables import markdown_table, write_csv, write_markdown

ROWS = [{"n": 30, "risk": 1 / 3, "name": "sdc"}, {"n": 100, "risk": 0.1, "name": "a,b"}]


def test_csv_reads_back_to_the_last_digit(tmp_path):
    path = tmp_path / "table.csv"
    write_csv(path, ROWS)
    with path.open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [float(row["risk"]) for row in read] == [1 / 3, 0.1]
    assert read[1]["name"] == "a,b"


def test_formulas_are_text(tmp_path):
    rows = [{"set": "=1+1", "@risk": -0.5}, {"set": "plain", "@risk": None}]
    write_csv(tmp_path / "table.csv", rows)
    assert (tmp_path / "table.csv").read_text().splitlines() == ["set,'@risk", "'=1+1,-0.5", "plain,"]
    assert [dict(row) for row in read_table(tmp_path / "table.csv").rows] == rows


def test_markdown_rounds(tmp_path):
    write_markdown(tmp_path / "table.md", ROWS, {"risk": ".2f"})
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert lines == ["| n | risk | name |", "|---|---|---|", "| 30 | 0.33 | sdc |", "| 100 | 0.10 | a,b |"]
    assert "0.3333333333333333" in markdown_table(ROWS)


def test_no_rows(tmp_path):
    for write in (write_csv, write_markdown):
        with pytest.raises(EmptyArrayError, match="at least one row"):
            write(tmp_path / "x", [])
