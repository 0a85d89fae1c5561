"""The threshold and the budget: every number on the page is that of `segtrust.selective` and NumPy."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from segtrust.io import Table, write_table
from segtrust.selective import chernoff_interval, risk_coverage_curve
from tests.browser.pages import Held, becomes, cases_on, expect, number_in, number_on, text_of
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

COUNT, MINUTES = 900, 6.0


@dataclass(frozen=True)
class Scored:
    """A desk, and its cases as vectors."""

    client: Any
    policy: Any
    cases: Any
    confidence: Any
    loss: Any
    is_empty: Any

    def at(self, threshold):
        """What the page must show of a threshold."""
        trusted = self.confidence >= threshold
        passed = int(trusted.sum())
        point = risk_coverage_curve(self.confidence, self.loss).at_threshold(threshold)
        np.testing.assert_allclose(point.risk, self.loss[trusted].mean())
        low, high = chernoff_interval(point.risk, passed, 0.95)
        return {
            "accepted": int((trusted & ~self.is_empty).sum()),
            "no-finding": int((trusted & self.is_empty).sum()),
            "deferred": COUNT - passed,
            "coverage": 100 * passed / COUNT,
            "risk": point.risk,
            "low": low,
            "high": high,
            "hours": (COUNT - passed) * MINUTES / 60,
        }


@pytest.fixture(scope="module")
def scored(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("scored")
    rows = desks.rows_of(COUNT, seed=2)  # of which the new ones have not drifted
    rows = [{**row, "k": 0} if number % 20 == 0 else row for number, row in enumerate(rows)]
    table = Table.of(rows, {"empty": "agree"})
    write_table(folder / "scores.csv", table)
    policy = desks.write_policy(folder / "policy.json", table, risk=0.22)
    column = {name: np.array([row[name] for row in table.rows]) for name in ("case", "sdc", "dice", "k")}
    with desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR, static=static) as (desk, client):
        found = desk.policies["foreground"]
        yield Scored(client, found, column["case"], column["sdc"], 1 - column["dice"], column["k"] == 0)


@pytest.fixture
def page(visit, scored):
    page = visit(scored.client, "#/threshold")
    page.get_by_test_id("accepted").wait_for()
    return page


def figure(page, testid):
    """A number with its note."""
    return page.get_by_test_id(testid).locator("xpath=..").inner_text()


def shown(page):
    """What the page says of a threshold."""
    low, high = figure(page, "risk").split("\n")[1].split(" to ")
    counts = {
        name: number_on(page, name) for name in ("accepted", "no-finding", "deferred", "coverage", "risk")
    }
    return {**counts, "low": number_in(low), "high": number_in(high), "hours": number_on(page, "hours")}


STEPS = {"coverage": 0.0501, "risk": 0.000501, "low": 0.000501, "high": 0.000501, "hours": 0.501}


def agrees(page, expected):
    """Wait until the page shows a threshold's numbers, to the digit that it shows."""
    becomes(page, lambda: number_on(page, "deferred"), expected["deferred"])
    found = shown(page)
    for name, value in expected.items():
        assert abs(found[name] - value) <= STEPS.get(name, 0), (name, found[name], value)


def slider_value(page, scored):
    """The threshold at the stop of the slider: it goes from case to case."""
    stops = np.unique([*scored.confidence, scored.policy.threshold])
    assert page.get_by_test_id("threshold-slider").get_attribute("max") == str(stops.size - 1)
    return float(stops[int(page.get_by_test_id("threshold-slider").input_value())])


def test_opens_at_the_policy_with_its_numbers(page, scored):
    agrees(page, scored.at(scored.policy.threshold))
    assert scored.at(scored.policy.threshold)["no-finding"] > 0
    assert number_in(page.get_by_test_id("threshold-value").input_value()) == pytest.approx(
        scored.policy.threshold, abs=5.1e-7
    )


def test_the_threshold_that_is_shown_can_be_typed_again(page, scored):
    field = page.get_by_test_id("threshold-value")
    typed = field.input_value()
    page.get_by_test_id("threshold-slider").press("Home")
    expect(page.get_by_test_id("certified")).to_contain_text("Not certified here.")
    field.fill(typed)
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("certified")).to_contain_text("Certified: the mean loss")
    agrees(page, scored.at(scored.policy.threshold))


def test_the_slider_by_mouse_and_keys_and_the_field(page, scored):
    box = page.get_by_test_id("threshold-slider").bounding_box()
    for share in (0.3, 0.8, 0.55):
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        agrees(page, scored.at(slider_value(page, scored)))
    before = slider_value(page, scored)
    for key in ("ArrowRight", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
        agrees(page, scored.at(slider_value(page, scored)))
    assert slider_value(page, scored) > before
    page.keyboard.press("Home")
    agrees(page, scored.at(scored.confidence.min()))
    page.get_by_test_id("threshold-value").fill("0.731")
    page.keyboard.press("Enter")
    agrees(page, scored.at(0.731))
    page.get_by_test_id("threshold-policy").click()
    agrees(page, scored.at(scored.policy.threshold))


def test_dragging_on_the_chart_moves_the_threshold(page, scored):
    expect(page.get_by_test_id("certified")).to_have_class(re.compile("holds"))  # all is there, nothing moves
    box = page.get_by_test_id("curve").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 80, steps=5)
    page.mouse.up()
    span = box["width"] - 46 - 14
    share = (0.7 * box["width"] - 46) / span
    low, high = scored.confidence.min(), scored.confidence.max()
    expected = low + share * (high - low)
    field = page.get_by_test_id("threshold-value")
    becomes(page, lambda: abs(number_in(field.input_value()) - expected) <= 0.002, True)
    becomes(page, lambda: abs(number_on(page, "deferred") - scored.at(expected)["deferred"]) <= 4, True)


def test_what_is_certified_at_above_and_below_the_policy(page, scored):
    told = page.get_by_test_id("certified")
    expect(told).to_contain_text(
        "Certified: the mean loss of accepted cases is at most 0.22, with probability 95"
    )
    expect(told).not_to_contain_text("not tested here")
    for threshold, begin, more in (
        (scored.policy.threshold + 0.1, "not tested here:", "if the risk does not rise with the confidence"),
        (scored.policy.threshold - 0.1, "Not certified here.", f"at least {scored.policy.threshold:.6f}"),
    ):
        page.get_by_test_id("threshold-value").fill(str(threshold))
        page.keyboard.press("Enter")
        expect(told).to_contain_text(begin)
        expect(told).to_contain_text(more)


def test_minutes_change_the_hours(page, scored):
    deferred = scored.at(scored.policy.threshold)["deferred"]
    page.get_by_test_id("minutes").fill("2")
    page.keyboard.press("Enter")
    becomes(page, lambda: abs(number_on(page, "hours") - deferred * 2 / 60) <= 0.51, True)
    expect(page.get_by_test_id("hours").locator("xpath=..")).to_contain_text("at 2 min a case")
    page.reload()
    expect(page.get_by_test_id("minutes")).to_have_value("2")


def budget_for(scored, reviews):
    """The highest threshold that defers at most so many, and what it does."""
    threshold = max(t for t in np.unique(scored.confidence) if (scored.confidence < t).sum() <= reviews)
    seen = scored.confidence < threshold
    return {
        "reviewed": int(seen.sum()),
        "threshold": threshold,
        "coverage": 100 * (~seen).mean(),
        "caught": 100 * scored.loss[seen].sum() / scored.loss.sum(),
        "risk": scored.loss[~seen].mean(),
    }


def test_the_budget(page, scored):
    for per_day, days in ((40, 1), (40, 5), (123, 2)):
        page.get_by_test_id("per-day").fill(str(per_day))
        page.get_by_test_id("days").fill(str(days))
        expected = budget_for(scored, per_day * days)
        becomes(page, lambda: number_on(page, "budget-reviewed"), expected["reviewed"])
        for name, step in (("threshold", 5.1e-5), ("coverage", 0.051), ("caught", 0.051), ("risk", 5.1e-4)):
            assert abs(number_on(page, f"budget-{name}") - expected[name]) <= step, name
        hours = expected["reviewed"] * MINUTES / 60
        assert abs(number_on(page, "budget-hours") - hours) <= 0.51
    page.get_by_test_id("per-day").fill("5000")
    becomes(page, lambda: number_on(page, "budget-reviewed"), COUNT)
    assert (text_of(page, "budget-threshold"), number_on(page, "budget-caught")) == ("–", 100.0)


def test_what_a_threshold_defers_is_listed(page, scored):
    threshold = float(np.sort(scored.confidence)[15])
    page.get_by_test_id("threshold-value").fill(str(threshold))
    page.keyboard.press("Enter")
    agrees(page, scored.at(threshold))
    page.get_by_test_id("list-at-threshold").click()
    below = np.flatnonzero(scored.confidence < threshold)
    order = below[np.argsort(scored.confidence[below], kind="stable")]
    becomes(page, lambda: cases_on(page), scored.cases[order].tolist())
    assert 0 < order.size < 20


@pytest.mark.parametrize("field", ["threshold-value", "minutes"])
def test_an_answer_that_comes_late_leaves_what_is_typed(page, scored, field):
    held = Held(page, re.compile(r"/api/threshold\?"))
    page.get_by_test_id("threshold-value").fill("0.731")
    page.keyboard.press("Enter")
    typed = page.get_by_test_id(field)
    typed.press("ControlOrMeta+a")
    typed.press_sequentially("0.8")
    held.let_go()
    agrees(page, scored.at(0.731))
    expect(typed).to_have_value("0.8")
    typed.press_sequentially("25")
    page.keyboard.press("Enter")
    expect(typed).to_have_value("0.825")
    if field == "threshold-value":
        agrees(page, scored.at(0.825))


def test_a_budget_can_be_cleared_and_typed_anew_while_it_is_counted(page, scored):
    field = page.get_by_test_id("per-day")
    held = Held(page, re.compile(r"/api/budget\?"))
    field.press("ControlOrMeta+a")
    field.press_sequentially("7")
    field.press("Backspace")
    held.let_go()
    becomes(page, lambda: number_on(page, "budget-reviewed"), budget_for(scored, 7)["reviewed"])
    expect(field).to_have_value("")
    field.press_sequentially("123")
    becomes(page, lambda: number_on(page, "budget-reviewed"), budget_for(scored, 123)["reviewed"])
    field.press("ControlOrMeta+a")
    field.press("Backspace")
    field.press("Tab")
    expect(field).to_have_value("123")  # what is counted with


def test_what_is_no_number_is_not_kept_in_the_field(page, scored):
    field = page.get_by_test_id("threshold-value")
    shown_before = field.input_value()
    field.press("ControlOrMeta+a")
    field.press("Backspace")
    field.press("Tab")
    expect(field).to_have_value(shown_before)
