"""Several structures in one run: each has its threshold, its policy and its verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.engine import Calibration, calibrate_table, make_policy
from segtrust.io import Table, write_table
from segtrust.selective import Target
from tests.browser.pages import becomes, expect, number_on, rows_on, sign_in
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

COUNT = 300
SHIFTS = {"liver": 0.0, "spleen": 0.1}


def both_structures():
    """Each case twice; spleens are less certain, and as good."""
    rows = desks.rows_of(COUNT, seed=5)
    return [
        {**row, "structure": name, "sdc": round(max(row["sdc"] - shift, 0), 3), "set": "", "group": ""}
        for row in rows
        for name, shift in SHIFTS.items()
    ]


@pytest.fixture(scope="module")
def organs(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("organs")
    table = Table.of(both_structures(), desks.READING)
    how = Calibration("sdc", (Target(0.22),), predictor=desks.PREDICTOR, seed=0)
    make_policy(calibrate_table(table, how), table).save(folder / "policy.json")
    few = replace(table, rows=table.rows[:24])
    write_table(folder / "scores.csv", few)
    how = {"policy": folder / "policy.json", "predictor": desks.PREDICTOR}
    with desks.desk_on(folder, static=static, **how) as (desk, client):
        yield client, few.rows, {name: each.threshold for name, each in desk.policies.items()}


def pairs_on(page):
    return [(row["case"], row["structure"]) for row in rows_on(page)]


def test_the_filter_by_structure(organs, visit):
    client, rows, limits = organs
    page = visit(client)
    becomes(page, lambda: len(pairs_on(page)), len(rows))
    for name in SHIFTS:
        page.get_by_test_id("filter-structure").select_option(name)
        of_it = [row for row in rows if row["structure"] == name]
        order = sorted(of_it, key=lambda row: (row["sdc"] >= limits[row["structure"]], row["sdc"]))
        becomes(page, lambda: pairs_on(page), [(row["case"], row["structure"]) for row in order])
    assert limits["liver"] != limits["spleen"]


def test_each_structure_has_the_threshold_of_its_policy(organs, visit):
    client, rows, limits = organs
    page = visit(client, "#/threshold")
    for name in SHIFTS:
        page.get_by_test_id("threshold-structure").select_option(name)
        expect(page.get_by_test_id("threshold-policy")).to_contain_text(f"{limits[name]:.4f}")
        confidence = np.array([row["sdc"] for row in rows if row["structure"] == name])
        becomes(page, lambda: number_on(page, "deferred"), int((confidence < limits[name]).sum()))
        assert number_on(page, "accepted") == int((confidence >= limits[name]).sum())
        expect(page.get_by_test_id("certified")).to_contain_text(
            "the mean loss of accepted cases is at most 0.22, with probability 97.5"
        )
    page.get_by_test_id("list-at-threshold").click()
    expect(page.get_by_test_id("filter-structure")).to_have_value("spleen")


def test_a_verdict_is_on_one_structure_alone(organs, visit):
    client, rows, _ = organs
    page = visit(client)
    sign_in(page, "Ann")
    page.get_by_test_id("filter-structure").select_option("spleen")
    becomes(page, lambda: {name for _, name in pairs_on(page)}, {"spleen"})
    case, _ = pairs_on(page)[0]
    page.keyboard.press("Escape")
    page.get_by_test_id("filter-structure").select_option("spleen")
    page.get_by_test_id("row").first.click()
    page.get_by_test_id("verdict-correct").click()
    expect(page.get_by_test_id("message")).to_contain_text(case)
    page.get_by_test_id("filter-structure").select_option("")
    becomes(page, lambda: len(pairs_on(page)), len(rows))
    said = {row["structure"]: row["verdict"] for row in rows_on(page) if row["case"] == case}
    assert said == {"spleen": "✎ to correct", "liver": ""}
    (entry,) = client.get("/api/export.json").json()
    assert (entry["case"], entry["structure"], entry["verdict"]) == (case, "spleen", "correct")
