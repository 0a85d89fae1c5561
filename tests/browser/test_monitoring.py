"""Monitoring in the browser: drift is told in the words of the library, verdicts against the confidence."""

import re
from functools import partial

import numpy as np
import pytest

from segtrust.io import Table, write_table
from segtrust.selective import ExchangeabilityMartingale, drift_test
from tests.browser.pages import becomes, expect, number_in
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

KNOWN, ALL = 400, 700


def desk_with(folder, static, shift, *, known=KNOWN, is_sorted=False):
    """A desk whose new cases are less confident by so much, or come in the order of their confidence."""
    rows = desks.rows_of(ALL, seed=2)
    rows[KNOWN:] = [{**row, "sdc": max(row["sdc"] - shift, 0.0)} for row in rows[KNOWN:]]
    if is_sorted:
        rows[KNOWN:] = sorted(rows[KNOWN:], key=lambda row: row["sdc"])
    table = Table.of(rows, desks.READING)
    write_table(folder / "scores.csv", table)
    policy = desks.write_policy(folder / "policy.json", table, rows=known, risk=0.22)
    confidence = np.array([row["sdc"] for row in rows])
    desk = desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR, static=static)
    return desk, confidence[:KNOWN], confidence[KNOWN:]


@pytest.mark.parametrize(("shift", "alarm"), [(0.0, False), (0.12, True)])
def test_drift_is_told_as_the_library_tells_it(tmp_path, static, visit, shift, alarm):
    desk, known, new = desk_with(tmp_path, static, shift)
    test = drift_test(reference=known, new=new, alpha=0.05)
    watch = ExchangeabilityMartingale(known, alpha=0.05)
    watch.extend(new)
    assert (test.alarm, watch.alarm) == (alarm, alarm)
    with desk as (_, client):
        page = visit(client, "#/monitoring")
        told = page.get_by_test_id("drift")
        expect(told).to_have_text(test.explain())
        assert told.get_attribute("role") == ("alert" if alarm else None)
        evidence = page.get_by_test_id("martingale-text").inner_text()
        assert evidence.startswith("Alarm." if alarm else "Below the alarm.")
        now, limit = re.search(r"now (\S+), alarm at (\S+)\.$", evidence).groups()
        assert number_in(now) == pytest.approx(watch.state.log10_capital, abs=0.0051)
        assert number_in(limit) == pytest.approx(np.log10(20), abs=0.0051)
        dots = page.locator("[data-testid=over-time] .dots").get_attribute("d")
        assert dots.count("M") == new.size
        page.get_by_test_id("tab-threshold").click()
        expect(page.get_by_test_id("drift-note")).to_have_count(int(alarm))
        promise = "Certified, but in doubt:" if alarm else "Certified:"
        expect(page.get_by_test_id("certified").locator("b")).to_have_text(promise)
        colour = re.compile("broken" if alarm else "holds")
        expect(page.get_by_test_id("certified")).to_have_class(colour)
        page.context.close()


def test_a_promise_is_in_doubt_where_only_the_order_of_cases_is_odd(tmp_path, static, visit):
    desk, known, new = desk_with(tmp_path, static, 0.0, is_sorted=True)
    watch = ExchangeabilityMartingale(known, alpha=0.05)
    watch.extend(new)
    assert (drift_test(reference=known, new=new, alpha=0.05).alarm, watch.alarm) == (False, True)
    with desk as (_, client):
        page = visit(client, "#/threshold")
        expect(page.get_by_test_id("certified").locator("b")).to_have_text("Certified, but in doubt:")
        expect(page.get_by_test_id("drift-note")).to_be_visible()
        page.context.close()


def test_a_promise_is_not_green_where_no_case_is_new(tmp_path, static, visit):
    desk, *_ = desk_with(tmp_path, static, 0.0, known=ALL)
    with desk as (_, client):
        page = visit(client, "#/threshold")
        expect(page.get_by_test_id("drift-note")).to_contain_text("Not checked for drift")
        expect(page.get_by_test_id("certified")).not_to_have_class(re.compile("holds"))
        page.context.close()


def test_a_promise_is_not_green_where_drift_is_not_known(tmp_path, static, visit):
    desk, *_ = desk_with(tmp_path, static, 0.0)
    with desk as (_, client):
        page = visit(client, None, expected="status of 503")
        page.route("**/api/monitoring*", lambda route: route.fulfill(status=503, body="{}"))
        page.goto(f"{client.base_url}#/threshold")
        expect(page.get_by_test_id("drift-note")).to_contain_text("could not be found out")
        expect(page.get_by_test_id("certified")).not_to_have_class(re.compile("holds"))
        page.context.close()


def test_verdicts_by_confidence(tmp_path, static, visit):
    desk, known, new = desk_with(tmp_path, static, 0.0)
    confidence = np.concatenate([known, new])
    accepted = {int(at): confidence[at] > 0.6 or at % 3 == 0 for at in range(0, 60, 2)}
    with desk as (_, client):
        page = visit(client, "#/monitoring")
        expect(page.get_by_text("No verdict yet")).to_be_visible()
        for number, good in accepted.items():
            desks.said(client, number, "accept" if good else "reject", "Ann")
        auroc = page.get_by_test_id("auroc").locator("b")
        expect(auroc).to_have_text(f"{auroc_of(confidence, accepted):.2f}")
        bars = [page.locator(f"[data-testid=agreement] .bar-{kind}") for kind in ("accept", "reject")]
        is_drawn = partial(are_of_shares, bars, shares(confidence, accepted))
        becomes(page, is_drawn, True)  # the same number may come before all verdicts have
        page.context.close()


def are_of_shares(bars, expected):
    heights = np.array([[float(each) for each in bar.evaluate_all(_HEIGHTS)] for bar in bars])
    return heights.shape == expected.shape and np.allclose(heights, expected * heights.sum(0).max())


_HEIGHTS = "(bars) => bars.map((bar) => bar.getAttribute('height'))"


def auroc_of(confidence, accepted):
    """The share of pairs in which the accepted case has the higher confidence."""
    good = np.array([confidence[at] for at, is_good in accepted.items() if is_good])
    bad = np.array([confidence[at] for at, is_good in accepted.items() if not is_good])
    higher, equal = good[:, None] > bad, good[:, None] == bad
    return (higher + 0.5 * equal).mean()


def shares(confidence, accepted):
    """Verdicts in ten stretches of confidence, as shares of the highest bar."""
    edges = np.linspace(confidence.min(), confidence.max(), 11)
    given = [[confidence[at] for at, good in accepted.items() if good == kind] for kind in (True, False)]
    counts = np.array([np.histogram(each, edges)[0] for each in given])
    return counts / counts.sum(0).max()


def test_without_a_policy_there_is_nothing_to_compare_with(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 30)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, "#/monitoring")
        expect(page.get_by_text("No calibration to compare with")).to_be_visible()
        expect(page.get_by_text("No verdict yet")).to_be_visible()
        assert page.get_by_test_id("drift").count() == 0
        page.get_by_test_id("tab-threshold").click()
        expect(page.get_by_test_id("certified")).to_contain_text(
            "Not certified. This run has no calibrated policy"
        )
        page.context.close()


def test_with_calibration_cases_alone(tmp_path, static, visit):
    table = desks.write_scores(tmp_path / "scores.csv", KNOWN)
    policy = desks.write_policy(tmp_path / "policy.json", table, rows=KNOWN)
    with desks.desk_on(tmp_path, policy=policy, predictor=desks.PREDICTOR, static=static) as (_, client):
        page = visit(client, "#/monitoring")
        expect(page.get_by_text("No case beyond those of the calibration")).to_be_visible()
        expect(page.get_by_text("No case to watch yet")).to_be_visible()
        page.context.close()
