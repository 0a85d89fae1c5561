"""Who is let in, and that names which are markup, paths or formulas are shown and nothing else."""

import csv
import json

import pytest

from segtrust.engine import Outcome, log_beside
from segtrust.engine.run_log import RunLog
from segtrust.io import Failure
from tests.browser.pages import becomes, cases_on, expect, sign_in, text_of
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

TOKEN = "a token of the test"
REFUSED = "status of 401"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("guarded")
    desks.write_scores(folder / "scores.csv", 10)
    with desks.desk_on(folder, static=static, token=TOKEN) as (_, client):
        yield client


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("hostile")
    named = enumerate(desks.HOSTILE)
    made = [desks.picture_case(folder, name, number, shape=(40, 36)) for number, name in named]
    desks.score_run(folder, made)
    with desks.desk_on(folder, static=static, name="<b>run</b>") as (_, client):
        yield client


def test_without_a_token_the_page_says_what_is_needed(guarded, visit):
    page = visit(guarded, expected=REFUSED)
    expect(page.get_by_test_id("problem")).to_contain_text(
        "A token is needed: open the address that `segtrust review` has printed."
    )
    assert page.get_by_test_id("row").count() == 0


def test_the_token_can_be_typed(guarded, visit):
    page = visit(guarded, expected=REFUSED)
    page.get_by_test_id("token").fill("another token")
    page.get_by_test_id("token-open").click()
    expect(page.get_by_test_id("problem")).to_contain_text("This token is not right.")
    page.get_by_test_id("token").fill(TOKEN)
    page.get_by_test_id("token-open").click()
    page.get_by_test_id("row").first.wait_for()
    becomes(page, lambda: len(cases_on(page)), 10)


def test_a_wrong_token_is_refused_in_words(guarded, visit):
    page = visit(guarded, "/?token=another+token", expected=f"{REFUSED}|404")  # there is no picture of it
    expect(page.locator("body")).to_contain_text("This token is not right.")


def test_the_right_token_opens_and_leaves_the_address(guarded, visit):
    page = visit(guarded, f"/?token={TOKEN.replace(' ', '+')}")
    page.get_by_test_id("row").first.wait_for()
    becomes(page, lambda: len(cases_on(page)), 10)
    assert page.url.removeprefix(str(guarded.base_url)).lstrip("/") in ("", "#/worklist")
    assert page.evaluate("document.cookie") == ""
    assert TOKEN not in str(page.context.cookies())
    page.reload()
    becomes(page, lambda: len(cases_on(page)), 10)


def flat(name):
    """A name as a line of the page shows it."""
    return " ".join(name.split())


def test_hostile_names_are_text_in_the_list_and_of_the_case(hostile, visit):
    page = visit(hostile)
    becomes(
        page, lambda: {flat(case) for case in cases_on(page)} >= {flat(each) for each in desks.HOSTILE}, True
    )
    expect(page.get_by_test_id("title")).to_have_text("<b>run</b>")
    sign_in(page, "<i>Ann</i>")
    for name in desks.HOSTILE:
        page.get_by_test_id("row").filter(has_text=flat(name)).click()
        expect(page.get_by_test_id("preview-case")).to_have_text(name)
        page.get_by_test_id("comment").fill(f"<img src=x onerror=alert(1)> {flat(name)}")
        page.get_by_test_id("verdict-reject").click()
        expect(page.get_by_test_id("message")).to_contain_text(flat(name))
        expect(page.get_by_test_id("history")).to_contain_text("<img src=x onerror=alert(1)>")
        page.get_by_test_id("open").click()
        expect(page.get_by_test_id("case-name")).to_have_text(name)
        page.locator("[data-testid=viewer][data-state=ready]").wait_for()
        page.keyboard.press("Escape")
    assert page.locator("img, b b, i, h1 b").count() == 0


def test_hostile_names_can_be_searched_and_linked(hostile, visit):
    page = visit(hostile)
    page.get_by_test_id("search").fill("<script>")
    becomes(page, lambda: cases_on(page), ["<script>alert(1)</script>"])
    page.reload()
    becomes(page, lambda: cases_on(page), ["<script>alert(1)</script>"])
    page.evaluate("location.hash = '#/case/../../etc/passwd?search=<script>alert(1)</script>'")
    expect(page.get_by_test_id("search")).to_have_value("<script>alert(1)</script>")


def test_hostile_names_in_exports(hostile):
    desks.said(hostile, 4, "accept", "Bob", comment="=2+2")
    entries = json.loads(hostile.get("/api/export.json").text)
    assert entries[-1]["case"] == "=1+1"
    table = list(csv.DictReader(hostile.get("/api/export.csv").text.splitlines()))
    assert (table[-1]["case"], table[-1]["comment"]) == ("'=1+1", "'=2+2")


def test_failures_with_hostile_names_and_reasons(tmp_path, static, visit):
    reason = "<img src=x onerror=alert(1)> is no map"
    with RunLog(log_beside(tmp_path / "scores.csv"), {"estimators": {"sdc": {}}}) as log:
        for at, name in enumerate(desks.HOSTILE):
            log.add(Outcome(name, failure=Failure(name, "", "ReadError", reason)), str(at))
            log.sync()
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client)
        page.get_by_test_id("failures").click()
        assert text_of(page, "failures").startswith(f"{len(desks.HOSTILE)} without a score")
        shown = page.locator(".failures dt").all_inner_texts()
        assert [flat(each) for each in shown] == [flat(each) for each in desks.HOSTILE]
        assert set(page.locator(".failures dd").all_inner_texts()) == {reason}
        page.context.close()
