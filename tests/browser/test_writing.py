"""What a reviewer writes is text, whatever happens to the page meanwhile, and is not lost."""

import re

import pytest

from tests.browser.pages import Held, becomes, cases_on, expect
from tests.browser.verdicts import GONE, begin, client_order, entries, restarting, said
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]


def test_what_is_typed_on_after_the_form_has_gone_decides_nothing(tmp_path, static, visit):
    with restarting(tmp_path, static, 6) as desk:
        page = begin(visit, desk.client, expected=GONE)
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.keyboard.type("a rim ")
        desk.restart()
        expect(page.get_by_test_id("message")).to_contain_text("Choose your case again")
        page.keyboard.type("reaches out, accept or correct")
        expect(page.get_by_test_id("message")).to_contain_text("you were writing about has changed or gone")
        assert said(desk.client) == []
        page.keyboard.press("Escape")
        page.keyboard.press("r")  # on purpose
        becomes(page, lambda: len(said(desk.client)), 1)
        page.context.close()


def test_what_is_typed_on_after_the_open_case_has_gone_decides_nothing(tmp_path, static, visit):
    with restarting(tmp_path, static, 6) as desk:
        page = begin(visit, desk.client, expected=GONE)
        page.evaluate("location.hash = '#/case/2'")
        expect(page.get_by_test_id("case-name")).to_have_text(desk.rows[2]["case"])
        page.keyboard.press("e")
        page.keyboard.type("a rim ")
        desk.restart()
        becomes(page, lambda: len(cases_on(page)), 6)
        for _ in range(5):
            page.keyboard.type("car ")
            page.keyboard.press("Enter")
        page.wait_for_timeout(200)
        assert said(desk.client) == []
        page.context.close()


def test_what_is_sought_on_after_the_list_was_begun_anew_decides_nothing(tmp_path, static, visit):
    with restarting(tmp_path, static, 6) as desk:
        page = begin(visit, desk.client, expected=GONE)
        page.keyboard.press("/")
        page.keyboard.type("case")
        desk.restart()
        expect(page.get_by_test_id("message")).to_contain_text("Choose your case again")
        page.keyboard.type("0a0a0r")
        page.wait_for_timeout(200)
        assert said(desk.client) == []
        page.context.close()


def test_going_on_late_moves_nobody_who_writes(reviewing):
    with reviewing(12) as (page, client):
        order = client_order(client)
        held = Held(page, re.compile(r"/api/cases\?.*limit=4"))
        page.get_by_test_id("row").nth(3).dblclick()
        expect(page.get_by_test_id("case-name")).to_have_text(order[3])
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.keyboard.type("unsharp, ")
        held.let_go()
        becomes(page, lambda: page.get_by_test_id("next").is_enabled(), True)
        page.keyboard.type("car")
        expect(page.get_by_test_id("case-name")).to_have_text(order[3])
        expect(page.get_by_test_id("comment")).to_have_value("unsharp, car")
        assert said(client) == []


def test_who_has_begun_to_write_stays_also_after_leaving_the_field(reviewing):
    with reviewing(12) as (page, client):
        order = client_order(client)
        held = Held(page, re.compile(r"/api/cases\?.*limit=4"))
        page.get_by_test_id("row").nth(3).dblclick()
        expect(page.get_by_test_id("case-name")).to_have_text(order[3])
        for key in ("j", "e", "x", "Escape"):
            page.keyboard.press(key)
        held.let_go()
        becomes(page, lambda: page.get_by_test_id("next").is_enabled(), True)
        page.keyboard.press("c")
        becomes(page, lambda: said(client), [(order[3], "correct")])


def test_a_comment_that_was_sent_is_gone_wherever_its_form_is_by_then(reviewing):
    with reviewing(6) as (page, _):
        held = Held(page, "**/api/verdicts")
        page.get_by_test_id("comment").fill("one text")
        page.get_by_test_id("grid").focus()
        for key in "rjk":
            page.keyboard.press(key)
        held.wait()
        held.let_go()
        expect(page.get_by_test_id("message")).to_contain_text("rejected")
        expect(page.get_by_test_id("comment")).to_have_value("")


def test_a_verdict_that_comes_late_moves_nobody_who_types(reviewing):
    with reviewing(6) as (page, client):
        page.get_by_test_id("advance").check()
        page.get_by_test_id("grid").focus()
        order = client_order(client)
        held = Held(page, "**/api/verdicts")
        page.keyboard.press("r")
        held.wait()
        page.keyboard.press("e")
        page.keyboard.type("accept")
        held.let_go()
        expect(page.get_by_test_id("message")).to_contain_text(order[0])
        page.keyboard.type(" or correct")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[0])
        expect(page.get_by_test_id("comment")).to_have_value("accept or correct")
        assert said(client) == [(order[0], "reject")]


def test_a_comment_that_is_typed_while_the_verdict_is_saved_is_kept(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 6, ties=False)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = begin(visit, client)
        held = Held(page, "**/api/verdicts")
        page.get_by_test_id("comment").fill("first part")
        page.get_by_test_id("verdict-correct").click()
        held.wait()
        page.get_by_test_id("comment").fill("first part and second part")
        held.let_go()
        expect(page.get_by_test_id("message")).to_contain_text("to correct")
        expect(page.get_by_test_id("comment")).to_have_value("and second part")
        assert [each["comment"] for each in client.get("/api/verdicts").json()] == ["first part"]
        page.context.close()


# In one go, before the page can draw anything: as on a machine that is busy with other things.
_WRITTEN_AND_DECIDED_AT_ONCE = """
() => new MutationObserver((_, watcher) => {
  const field = document.querySelector("[data-testid=case] textarea");
  if (!field) return;
  watcher.disconnect();
  field.value = "written in haste";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
}).observe(document.body, { childList: true, subtree: true })
"""
_LEFT_AND_GONE_ON_AT_ONCE = """
(field) => {
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
}
"""


def test_what_was_typed_just_before_a_verdict_is_sent_with_it(reviewing):
    with reviewing(6) as (page, client):
        page.evaluate(_WRITTEN_AND_DECIDED_AT_ONCE)
        page.get_by_test_id("grid").focus()
        page.keyboard.press("Enter")
        becomes(page, lambda: [entry["comment"] for entry in entries(client)], ["written in haste"])


def test_who_has_left_the_field_on_purpose_gives_commands_again(reviewing):
    with reviewing(6) as (page, client):
        page.keyboard.press("e")
        page.get_by_test_id("comment").evaluate(_LEFT_AND_GONE_ON_AT_ONCE)
        expect(page.get_by_test_id("preview-case")).to_have_text(client_order(client)[1])
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("case-name")).to_have_text(client_order(client)[1])


def test_a_verdict_that_is_on_its_way_is_not_sent_again(reviewing):
    with reviewing(6) as (page, client):
        held = Held(page, "**/api/verdicts")
        for key in ("r", "j", "k", "r"):
            page.keyboard.press(key)
        expect(page.get_by_test_id("verdict-reject")).to_have_attribute("aria-disabled", "true")
        held.let_go()
        expect(page.get_by_test_id("message")).to_contain_text("rejected")
        page.keyboard.press("r")  # a second one, once the first is there
        becomes(page, lambda: len(entries(client)), 2)
        assert len(held.routes) == 2


_SOUGHT_AS_SOON_AS_IT_CAN_BE = """
new MutationObserver((_, watcher) => {
  const field = document.querySelector("[data-testid=search]");
  if (!field) return;
  watcher.disconnect();
  field.value = "00003";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}).observe(document, { childList: true, subtree: true });
"""
_SOUGHT_AND_CHOSEN_AT_ONCE = """
(field) => {
  const choice = document.querySelector("[data-testid=filter-verdict]");
  field.value = "0000";
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  setTimeout(() => {
    choice.value = "undecided";
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  }, 100);
}
"""


def test_what_is_sought_as_soon_as_the_field_is_there_is_not_lost(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 6, ties=False)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, None)
        page.add_init_script(_SOUGHT_AS_SOON_AS_IT_CAN_BE)
        page.goto(str(client.base_url))
        becomes(page, lambda: cases_on(page), ["case 00003"])
        expect(page.get_by_test_id("search")).to_have_value("00003")
        page.context.close()


def test_a_filter_that_is_chosen_while_one_types_is_kept(reviewing):
    with reviewing(6) as (page, _):
        page.get_by_test_id("search").evaluate(_SOUGHT_AND_CHOSEN_AT_ONCE)
        becomes(page, lambda: "search=0000" in page.url and "verdict=undecided" in page.url, True)
        expect(page.get_by_test_id("filter-verdict")).to_have_value("undecided")
