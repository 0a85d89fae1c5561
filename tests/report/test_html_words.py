"""Sentences of a report: nothing is praised that could be chance, and they read well for one and for none."""

import numpy as np
import pytest

from segtrust.io import Table, write_table
from segtrust.report.html.page import write_report
from tests.report.runs import section, words


def rows_of(losses, confidences=None, **more):
    """Rows of a table without files; confidences rank the cases as well as can be unless given."""
    confidences = [1.0 - each for each in losses] if confidences is None else confidences
    return [
        {"case": f"c{at}", "structure": "foreground", "k": 9, "sdc": c, "idc": c, "file": "gone.npy"}
        | ({} if loss is None else {"dice": 1.0 - loss})
        | more
        for at, (loss, c) in enumerate(zip(losses, confidences, strict=True))
    ]


@pytest.fixture
def page_of(tmp_path):
    def write(rows):
        write_table(tmp_path / "scores.csv", Table.of(rows))
        return write_report(tmp_path / "scores.csv").read_text()

    return write


def test_equal_losses_cannot_be_ranked(page_of):
    page = page_of(rows_of([0.0] * 12, [0.0] * 12, truth_ratio=0.0))
    told = words(section(page, "summary"))
    assert "All losses are equal, so that there is nothing to rank." in told
    assert "ranks" not in told
    assert "100 %" not in told
    assert "AURC on" not in told
    assert "surer half" not in words(section(page, "cases")).replace("So the surer half, by confidence", "")


@pytest.mark.parametrize("count", [2, 3, 9])
def test_few_cases_are_not_praised(page_of, count):
    told = words(section(page_of(rows_of(np.linspace(0.1, 0.9, count).tolist())), "summary"))
    assert f"{count} cases are too few to tell how well it ranks." in told
    assert "very well" not in told
    assert "ranking – too few cases to tell" in told


def test_enough_cases_are_judged(page_of):
    told = words(section(page_of(rows_of(np.linspace(0.1, 0.9, 10).tolist())), "summary"))
    assert "It ranks very well: 100 % of that gap is closed." in told


def test_what_does_not_change_is_not_said_to_change(page_of):
    losses = [0.5, 0.3] * 10
    told = words(section(page_of(rows_of(losses, np.linspace(0, 1, 20).tolist())), "summary"))
    assert "Accepting only the surer half would leave the mean loss at 0.400." in told
    told = words(section(page_of(rows_of(losses, [0.5] * 20)), "summary"))
    assert "Half of the cases cannot be accepted alone: too many have the same confidence." in told
    many_equal = [1.0] * 16 + [0.1, 0.2, 0.3, 0.4]
    told = words(section(page_of(rows_of(losses, many_equal)), "summary"))
    assert "Accepting only the surest 80 %" in told


def test_ties_have_no_winner(page_of):
    rows = rows_of(np.linspace(0.1, 0.9, 20).tolist())
    told = words(section(page_of(rows), "summary"))
    assert "All 2 confidences have the same AURC" in told
    others = [{**row, "amsp": -row["sdc"]} for row in rows]
    told = words(section(page_of(others), "summary"))
    assert "Of 3 confidences SDC and IDC have the smallest AURC" in told


def test_one_of_many_is_one(page_of):
    rows = rows_of(np.linspace(0.1, 0.9, 12).tolist(), mask="delivered", truth_ratio=0.2)
    rows[0] |= {"truth_ratio": 0.0, "k": 0, "mask": "threshold"}
    rows[1] |= {"mask_difference": 0.2}
    rows.append({**rows[2], "case": "unjudged", "dice": None})
    told = words(section(page_of(rows), "warnings"))
    assert "1 of 13 truths is empty; it is kept" in told
    assert "1 of 13 masks is empty." in told
    assert "1 of 13 delivered masks differs from the map" in told
    assert "1 of 13 has no delivered mask: its map was cut" in told
    assert "1 row without a loss is in no curve" in told


def test_without_truths_nothing_is_said_of_intervals(page_of):
    page = page_of(rows_of([None] * 12, np.linspace(0, 1, 12).tolist()))
    assert "intervals" not in page.split('id="settings"')[0].split("<main")[1]
    few = words(section(page_of(rows_of([None] * 3, [0.5] * 3)), "summary"))
    assert "Their confidence (SDC) is 0.500." in few


def test_halves_that_nobody_decides_on(page_of):
    told = words(section(page_of(rows_of([None] * 12, np.linspace(0, 1, 12).tolist())), "cases"))
    assert "Surest of the surer half surest of all" in told
    assert "trusted" not in told
    same = words(section(page_of(rows_of(np.linspace(0.1, 0.9, 12).tolist(), [0.5] * 12)), "cases"))
    assert "Worst of all cases all are equally sure" in same


def test_only_files_that_there_are_are_named(page_of):
    page = page_of(rows_of(np.linspace(0.1, 0.9, 12).tolist()))
    assert "Area under the risk-coverage curve" in page
    assert "tables/areas.csv" not in page
    assert 'class="swatch truth"' not in page, "nobody knows where the truths are"


def test_many_failures_are_counted(page_of, tmp_path):
    failed = [{"case": f"f{at}", "kind": "ReadError", "reason": "damaged"} for at in range(25)]
    write_table(tmp_path / "failures.csv", Table.of(failed))
    told = words(section(page_of(rows_of([0.1, 0.2])), "warnings"))
    assert "25 cases gave no result and are in no number" in told
    assert "Failed: 5 more, which failures.csv lists." in told


def test_no_finding_is_told_apart(page_of):
    rows = rows_of(np.linspace(0.1, 0.9, 12).tolist())
    decided = [{**row, "decision": "accept"} for row in rows[:9]]
    decided += [{**row, "decision": "no finding", "k": 0} for row in rows[9:]]
    assert "accepted 12 100 % of 12 cases, 3 with no finding" in words(section(page_of(decided), "summary"))
