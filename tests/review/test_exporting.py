"""The log as a table that a spreadsheet opens without running any of it."""

import csv
import io

import pytest

from segtrust.review.exporting import as_csv


def cells(text, **dialect):
    return [cell for row in csv.reader(io.StringIO(text, newline=""), **dialect) for cell in row]


@pytest.mark.parametrize(
    ("comment", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'\t'=1+1"),
        (" =1+1", "' =1+1"),
        ('"=1+1"', '\'"=1+1"'),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("fine;=1+1", "fine;'=1+1"),
        ("fine\n=1+1", "fine\n'=1+1"),
        ('fine; "=1+1', "fine;' \"=1+1"),
        ("a rim of 3 mm, 2 + 1; fine", "a rim of 3 mm, 2 + 1; fine"),
        ("e-mail, a=b\nsecond - line", "e-mail, a=b\nsecond - line"),
    ],
)
def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it(comment, written):
    text = as_csv([{"id": 1, "comment": comment}])
    assert next(csv.DictReader(io.StringIO(text, newline="")))["comment"] == written


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("sign", "=+-@")
@pytest.mark.parametrize("before", ["", "x;", "x\n", "x\t", 'x;"', 'x";"', "x\n\n;\t ", 'x";""', 'x,"'])
def test_no_cell_begins_a_formula_whatever_separates_cells(separator, sign, before):
    """Where the system separates by semicolons a spreadsheet cuts this file at them, also within quotes."""
    hostile = f"{before}{sign}cmd|' /C calc'!A0"
    text = as_csv([{"id": 1, "case": hostile, "reviewer": hostile, "comment": hostile}])
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):  # heeds quotes, or does not
        if separator == "," and quoting == csv.QUOTE_NONE:
            continue  # who separates as this file does heeds its quotes
        found = cells(text, delimiter=separator, quoting=quoting)
        assert not [cell for cell in found if cell.lstrip(' "').startswith(("=", "+", "-", "@"))]
