"""What the page says where there is nothing, not yet anything, or no longer anything to show."""

import re

import pytest

from segtrust.engine import Outcome, log_beside
from segtrust.engine.run_log import RunLog
from segtrust.io import Failure, Table, write_table
from tests.browser.pages import POLL_MS, Held, becomes, cases_on, expect, sign_in
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]


def row(name, confidence):
    return {"case": name, "structure": "organ", "set": "", "sdc": confidence, "k": 1, "file": f"{name}.npy"}


def test_a_run_without_rows(tmp_path, static, visit):
    (tmp_path / "scores.csv").write_text("case,structure,sdc\n")
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client)
        expect(page.get_by_test_id("empty")).to_contain_text("This run has no cases")
        page.get_by_test_id("tab-threshold").click()
        expect(page.get_by_text("There is no confidence to set a threshold on")).to_be_visible()
        page.get_by_test_id("tab-monitoring").click()
        expect(page.get_by_text("No verdict yet")).to_be_visible()
        page.context.close()


def test_rows_appear_as_they_are_scored(tmp_path, static, visit, at_once):
    table = tmp_path / "scores.csv"
    with (
        RunLog(log_beside(table), {"estimators": {"sdc": {}}}) as log,
        desks.desk_on(tmp_path, static=static) as (_, client),
    ):
        page = visit(client)
        expect(page.get_by_test_id("empty")).to_contain_text("No case is scored yet")
        expect(page.get_by_test_id("run-state")).to_contain_text("still running")
        page.clock.install()
        page.reload()
        expect(page.get_by_test_id("empty")).to_contain_text("They appear here as they are scored")
        log.add(Outcome("b", (row("b", 0.5),)), "1")
        log.add(Outcome("x", failure=Failure("x", "x.npy", "ReadError", "x.npy is damaged")), "2")
        log.sync()
        page.clock.fast_forward(POLL_MS)
        becomes(page, lambda: cases_on(page), ["b"])
        page.get_by_test_id("failures").click()
        expect(page.locator(".failures")).to_contain_text("x.npy is damaged")
        log.add(Outcome("a", (row("a", 0.4),)), "3")
        log.sync()
        page.clock.fast_forward(POLL_MS)
        becomes(page, lambda: cases_on(page), ["a", "b"])
        write_table(table, Table.of([row("a", 0.4), row("b", 0.5), row("c", 0.3)]))
        log.finish()
        log.sync()
        page.clock.fast_forward(POLL_MS)
        becomes(page, lambda: cases_on(page), ["c", "a", "b"])
        expect(page.get_by_test_id("run-state")).not_to_contain_text("still running")
        page.context.close()


def test_the_selected_case_stays_selected_while_the_run_grows(tmp_path, static, visit, at_once):
    with (
        RunLog(log_beside(tmp_path / "scores.csv"), {"estimators": {"sdc": {}}}) as log,
        desks.desk_on(tmp_path, static=static) as (_, client),
    ):
        for at in range(4):
            log.add(Outcome(f"early {at}", (row(f"early {at}", 0.5 + at / 100),)), at)
            log.sync()
        page = visit(client)
        page.clock.install()
        page.reload()
        sign_in(page, "Ann")
        page.get_by_test_id("row").filter(has_text="early 2").click()
        page.keyboard.press("e")
        page.keyboard.type("a rim r")
        for at in range(300):  # more than a page of rows, all before those that are there
            log.add(Outcome(f"late {at}", (row(f"late {at}", at / 1000),)), 100 + at)
            log.sync()
        page.clock.fast_forward(POLL_MS)
        expect(page.locator("[aria-rowcount='305']")).to_be_visible()
        page.keyboard.type("eaches out")
        expect(page.get_by_test_id("comment")).to_have_value("a rim reaches out")
        expect(page.locator("[aria-selected=true]")).to_contain_text("early 2")
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        becomes(page, lambda: len(client.get("/api/verdicts").json()), 1)
        (said,) = client.get("/api/verdicts").json()
        assert (said["case"], said["comment"]) == ("early 2", "a rim reaches out")
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text("early 3")
        page.keyboard.press("Enter")
        log.add(Outcome("last", (row("last", 0.0),)), "last")
        log.sync()
        page.get_by_test_id("previous").wait_for()
        page.keyboard.press("Escape")
        expect(page.locator("[aria-selected=true]")).to_contain_text("early 3")
        page.context.close()


def test_a_run_that_was_killed_says_so(tmp_path, static, visit, at_once):
    with RunLog(log_beside(tmp_path / "scores.csv"), {"estimators": {"sdc": {}}}) as log:
        log.add(Outcome("a", (row("a", 0.5),)), "1")
        log.sync()
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client)
        expect(page.get_by_test_id("run-state")).to_contain_text("stopped before its end")
        becomes(page, lambda: cases_on(page), ["a"])
        page.context.close()


def test_a_case_whose_files_are_gone(tmp_path, static, visit):
    files = tmp_path / "files"
    files.mkdir()
    made = [desks.picture_case(files, f"case {at}", at, shape=(30, 30)) for at in range(2)]
    desks.score_run(tmp_path, made)
    (files / "1.npy").unlink()
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, "#/case/1")
        expect(page.get_by_test_id("case-problem")).to_contain_text("The files of this case cannot be opened")
        expect(page.get_by_test_id("case-problem")).to_contain_text("1.npy")
        page.keyboard.press("Escape")
        page.get_by_test_id("row").filter(has_text="case 1").click()
        expect(page.locator(".thumbnail")).to_contain_text("1.npy")
        page.context.close()


def test_a_file_that_goes_while_its_case_is_open(tmp_path, static, visit):
    made = desks.picture_case(tmp_path, "case 0", 0, shape=(30, 30))
    desks.score_run(tmp_path, [made])
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, expected="Failed to load resource")
        page.get_by_test_id("row").first.wait_for()
        (tmp_path / "0.npy").write_bytes(b"no longer a map")
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("case-problem")).to_contain_text("is no longer the one that was scored")
        page.context.close()


def test_a_case_that_there_is_not(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 5)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, "#/case/77", expected="status of 404")
        expect(page.get_by_test_id("problem")).to_contain_text("There is no row of the number 77.")
        page.get_by_test_id("tab-worklist").click()
        becomes(page, lambda: len(cases_on(page)), 5)
        page.context.close()


def test_what_is_loading_says_so(tmp_path, static, visit):
    desks.score_run(tmp_path, [desks.picture_case(tmp_path, "case 0", 0, shape=(30, 30))])
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, None)
        held = {told: Held(page, re.compile(pattern)) for pattern, told in HELD.items()}
        page.goto(str(client.base_url))
        for told, requests in held.items():
            expect(page.get_by_test_id("loading")).to_contain_text(told)
            requests.let_go()
        page.get_by_test_id("row").first.wait_for()
        page.evaluate("location.hash = '#/case/0'")
        page.locator("[data-testid=viewer][data-state=ready]").wait_for()
        requests = Held(page, re.compile(r"/api/cases/0$"))
        page.reload()
        expect(page.get_by_test_id("loading")).to_contain_text("Opening the case")
        requests.let_go()
        page.locator("[data-testid=viewer][data-state=ready]").wait_for()
        page.context.close()


HELD = {r"/api/run$": "Reading the run", r"/api/cases\?": "Reading the worklist"}


def test_an_address_that_changes_while_the_page_begins_is_followed(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 5)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, None)
        page.add_init_script(_CHANGE_AT_ONCE)
        page.goto(str(client.base_url))
        expect(page.get_by_test_id("threshold-view")).to_be_visible()
        page.context.close()


_CHANGE_AT_ONCE = """
new MutationObserver((_, watcher) => {
  if (!document.querySelector("[data-testid=grid], [data-testid=loading]")) return;
  watcher.disconnect();
  history.replaceState(null, "", "#/threshold");
  dispatchEvent(new HashChangeEvent("hashchange"));
}).observe(document, { childList: true, subtree: true });
"""
