"""What is told where cases are decided: that a threshold is tried, that an alarm rings, what is missing."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.io import Table, write_table
from tests.browser.pages import SIZES, becomes, cases_on, expect, rows_on, sign_in
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

KNOWN, ALL = 400, 700


@pytest.fixture(scope="module")
def drifting(tmp_path_factory, static):
    """A desk with a policy, whose new cases of the set `other` are far too confident."""
    folder = tmp_path_factory.mktemp("drifting")
    rows = desks.rows_of(ALL, seed=2)
    for row in rows[KNOWN:]:
        row["sdc"] = 0.98 if row["set"] == "other" else row["sdc"]
    table = Table.of(rows, desks.READING)
    write_table(folder / "scores.csv", table)
    policy = desks.write_policy(folder / "policy.json", table, risk=0.22)
    with desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR, static=static) as found:
        yield found


@pytest.fixture(scope="module")
def unseen(tmp_path_factory, static):
    """A desk without a policy, on cases without images."""
    folder = tmp_path_factory.mktemp("unseen")
    cases = [desks.picture_case(folder, name, at, (60, 56)) for at, name in enumerate("ab")]
    desks.score_run(folder, [replace(case, image=None) for case in cases])
    with desks.desk_on(folder, static=static) as (_, client):
        yield client


def test_a_trial_is_told_and_leads_back_to_the_policy(drifting, visit):
    desk, client = drifting
    own = desk.policies["foreground"].threshold
    page = visit(client, "#/worklist?threshold=0.9&decision=defer")
    told = page.get_by_test_id("trial")
    expect(told).to_contain_text(f"Trying 0.9 (the policy\u2019s is {round(own, 6):g}")
    becomes(page, lambda: {row["decision"] for row in rows_on(page)}, {"trial: deferred"})
    page.keyboard.press("Enter")
    expect(told).to_contain_text("Trying 0.9")
    expect(page.get_by_test_id("case")).to_contain_text("trial: deferred")
    expect(page.get_by_test_id("case")).to_contain_text("Margin to the tried 0.9")
    page.keyboard.press("Escape")
    page.get_by_test_id("trial-back").click()
    expect(told).to_have_count(0)
    becomes(page, lambda: {row["decision"] for row in rows_on(page)}, {"deferred"})
    page.evaluate("(hash) => { location.hash = hash }", f"#/worklist?threshold={own!r}")
    becomes(page, lambda: rows_on(page)[0]["decision"], "deferred")  # the policy's own is no trial
    expect(told).to_have_count(0)


def test_a_verdict_during_a_trial_is_logged_with_the_decision_of_the_policy(drifting, visit):
    desk, client = drifting
    own = desk.policies["foreground"].threshold
    page = visit(client, "#/worklist?threshold=0.9&decision=defer&sort=confidence&descending=true")
    becomes(page, lambda: {row["decision"] for row in rows_on(page)}, {"trial: deferred"})
    assert float(rows_on(page)[0]["confidence"]) > own
    sign_in(page, "Ann")
    page.keyboard.press("a")
    expect(page.get_by_test_id("message")).to_contain_text("accepted")
    entry = client.get("/api/verdicts").json()[-1]
    assert (entry["case"], entry["decision"]) == (cases_on(page)[0], "accept")
    expect(page.get_by_test_id("trial")).to_contain_text("logged with the policy\u2019s decision")


def test_the_worklist_tells_of_an_alarm_until_it_is_closed(drifting, visit):
    _, client = drifting
    page = visit(client)
    told = page.get_by_test_id("alarm")
    expect(told).to_have_attribute("role", "alert")
    expect(told).to_contain_text("Drift alarm for the set other:")
    expect(told).to_contain_text("promise is void")
    page.get_by_test_id("alarm-open").click()
    expect(page.get_by_test_id("drift")).to_contain_text("Drift detected")
    page.get_by_test_id("tab-worklist").click()
    page.get_by_test_id("alarm-close").click()
    expect(told).to_have_count(0)
    page.reload()
    page.get_by_test_id("row").first.wait_for()
    page.wait_for_load_state("networkidle")
    expect(told).to_have_count(0)


def test_bars_of_confidences_go_from_0_to_1(drifting, visit):
    page = visit(drifting[1])
    page.get_by_test_id("row").first.wait_for()
    page.wait_for_load_state("networkidle")
    shown = [float(row["confidence"]) for row in rows_on(page)]
    widths = page.locator(".meter span").evaluate_all("(bars) => bars.map((bar) => bar.style.width)")
    np.testing.assert_allclose([float(each.rstrip("%")) / 100 for each in widths], shown, atol=0.00051)


def test_another_threshold_is_never_said_to_be_promised(drifting, visit):
    page = visit(drifting[1], "#/threshold")
    told = page.get_by_test_id("certified").locator("b")
    page.get_by_test_id("drift-note").wait_for()  # nothing is drawn anew while a number is typed
    for threshold in ("0.97", "2"):
        page.get_by_test_id("threshold-value").fill(threshold)
        page.keyboard.press("Enter")
        expect(told).to_have_text("Certified at the policy\u2019s threshold, not tested here:")
        expect(page.get_by_test_id("drift-note")).to_contain_text("Drift:")
    expect(page.get_by_test_id("certified")).to_contain_text("No case of this run is let pass here.")


@pytest.mark.parametrize("size", SIZES)
def test_a_message_lies_over_no_row_no_picture_and_no_control(unseen, visit, size):
    page = visit(unseen, size=size)
    sign_in(page, "Ann")
    page.get_by_test_id("row").first.wait_for()
    page.keyboard.press("a")
    lies_free(page, ".list", ".verdict-form")
    page.get_by_test_id("open").click()
    page.locator("[data-testid=viewer][data-state=ready]").wait_for()
    page.keyboard.press("r")
    expect(page.get_by_test_id("message")).to_contain_text("rejected")
    lies_free(page, ".case-stage", ".verdict-form")


def lies_free(page, *others):
    """See that a message is there, within the page, and over none of these parts of it."""
    message = page.locator(".toast").bounding_box()
    assert message["x"] + message["width"] <= page.viewport_size["width"]
    assert message["y"] + message["height"] <= page.viewport_size["height"]
    for other in others:
        box = page.locator(other).bounding_box()
        beside = box["x"] + box["width"] <= message["x"]
        above = box["y"] + box["height"] <= message["y"]
        assert beside or above, (other, box, message)


def test_what_a_run_does_not_have_is_told(unseen, visit):
    page = visit(unseen, "#/case/0")
    expect(page.get_by_test_id("picture-note")).to_contain_text("--image-dir")
    page.get_by_test_id("tab-threshold").click()
    expect(page.get_by_test_id("drift-note")).to_contain_text("without a policy there is no calibration")
    expect(page.get_by_test_id("threshold-view")).not_to_contain_text("the policy was made with")
