"""Tables and figures of tuning curves."""

import numpy as np
import pytest

from segtrust.evaluation import summarise_tuning
from segtrust.paper.tuning import draw_tuning, tables_of, tuning_table

NAMES = ("sdc", "aef-sdc", "oracle", "random")


def rows(sets=("test", "elsewhere"), sizes=range(2, 18), repeats=3):
    rng = np.random.default_rng(0)
    return [
        {
            "estimator": name,
            "set": tested,
            "size": size,
            "repeat": i,
            "aurc": rng.random(),
            "target_risk": 0.1,
            "coverage": None if (name, i) == ("aef-sdc", 0) else rng.random(),
        }
        for i in range(repeats)
        for tested in sets
        for size in sizes
        for name in NAMES
    ]


def test_a_table_shows_some_sizes_with_mean_and_deviation():
    summary = summarise_tuning(rows())
    lines = tuning_table(summary, "test", "aurc").splitlines()
    assert lines[0] == "| estimator | 2 | 5 | 8 | 11 | 14 | 17 |"
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| SDC", "| AEF+SDC", "| oracle", "| random"]
    first = next(row for row in summary if (row["estimator"], row["set"], row["size"]) == ("sdc", "test", 2))
    assert lines[2].split(" | ")[1] == f"{first['aurc']:.3f} ± {first['aurc_std']:.3f}"


def test_coverages_say_how_often_the_risk_is_not_reached():
    lines = tuning_table(summarise_tuning(rows()), "elsewhere", "coverage").splitlines()
    assert lines[3].count("(33% not reached)") == 6
    assert "not reached" not in lines[2]


def test_a_single_repeat_has_no_deviation():
    summary = summarise_tuning(rows(repeats=1))
    for value in ("aurc", "coverage"):
        assert "±" not in tuning_table(summary, "elsewhere", value)


@pytest.mark.needs("matplotlib")
def test_coverages_are_drawn_in_percent_as_in_the_table():
    summary = summarise_tuning(rows())
    (axes,) = draw_tuning(summary, "elsewhere", "coverage").axes
    drawn = [row["coverage"] for row in summary if (row["estimator"], row["set"]) == ("sdc", "elsewhere")]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100.0 * np.array(drawn))
    assert "%" in axes.get_ylabel()


def test_few_sizes_are_all_shown():
    lines = tuning_table(summarise_tuning(rows(sizes=(2, 4))), "test", "aurc").splitlines()
    assert lines[0] == "| estimator | 2 | 4 |"


def test_tables_of_elsewhere_are_there_where_it_is():
    assert list(tables_of(summarise_tuning(rows(sets=("test",))))) == ["aurc"]
    assert list(tables_of(summarise_tuning(rows()))) == ["aurc", "aurc_elsewhere", "coverage_elsewhere"]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_figure_has_a_line_for_each_and_shades_for_estimators(repeats):
    figure = draw_tuning(summarise_tuning(rows(repeats=repeats)), "test", "aurc")
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["SDC", "AEF+SDC", "oracle", "random"]
    assert len(axes.collections) == (0 if repeats == 1 else 2)
    assert axes.get_xscale() == "log"
