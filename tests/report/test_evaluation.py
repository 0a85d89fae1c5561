"""Tables and figures of an evaluation."""

import csv

import pytest

from segtrust.evaluation import EvaluationSettings, evaluated_sets
from segtrust.report.evaluation import draw_curves, write_evaluation
from segtrust.selective import Bootstrap
from tests.evaluation.test_tables import how, rows

pytestmark = pytest.mark.needs("matplotlib")


def test_a_panel_for_each_set_and_a_circle_where_a_curve_meets_the_risk():
    outside = rows(60, seed=1)
    for row in outside:
        row["loss"] = min(1.0, row["loss"] + 0.2)
    figure = draw_curves(evaluated_sets({"ID": rows(40), "OOD": outside}, how()))
    first, second = figure.axes
    assert [line.get_label() for line in first.lines][:4] == ["SDC", "aMSP", "oracle", "random"]
    circles = [[line for line in axes.lines if line.get_marker() == "o"] for axes in figure.axes]
    assert not circles[0]
    assert circles[1]
    assert second.get_title() == "OOD (n = 60)"
    assert first.lines[0].get_zorder() > first.lines[1].get_zorder(), "the first is on top"


def test_everything_is_written(tmp_path):
    both = [*rows(10), *rows(10, seed=1, structure="a/b: c")]
    for name in ("tables", "figures"):
        (tmp_path / name).mkdir()
    tables = write_evaluation(
        tmp_path, {"ID": both}, EvaluationSettings(("sdc",), bootstrap=Bootstrap(resamples=100))
    )
    assert not tables["comparisons"], "there is nothing to compare with"
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {
        "risk_coverage_0_organ.svg",
        "risk_coverage_1_a-b--c.pdf",
        "risk_coverage_2_all-structures.png",
    } <= names
    with (tmp_path / "tables/areas.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [float(row["aurc"]) for row in written] == [row["aurc"] for row in tables["areas"]]
    report = (tmp_path / "report.md").read_text()
    assert "| ID | organ | SDC |" in report
    assert "100 resamples" in report
    assert "not reached" in report or "%" in report
