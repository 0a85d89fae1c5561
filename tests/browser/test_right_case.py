"""A verdict is written on the case, and the map, that is in view, or nowhere."""

import re

import pytest

from segtrust.io import Table, write_table
from tests.browser.pages import POLL_MS, Held, becomes, cases_on, choose, expect, open_case, sign_in
from tests.browser.verdicts import GONE, begin, client_order, restarting, said
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]


@pytest.fixture
def desk(tmp_path, static, at_once):
    """Three pictures, told apart by their names, and a client."""
    made = [desks.picture_case(tmp_path, f"case {at}", at, shape=(40, 36)) for at in range(3)]
    desks.score_run(tmp_path, made)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        yield client


def test_a_key_decides_nothing_while_the_next_case_is_on_its_way(desk, visit):
    page = begin(visit, desk)
    open_case(page, 0)
    held = Held(page, re.compile(r"/api/cases/[12]$"))
    page.keyboard.press("j")
    held.wait()
    expect(page.get_by_test_id("loading")).to_contain_text("Opening the case")
    for key in "arc":
        page.keyboard.press(key)
    assert said(desk) == []
    held.let_go()
    expect(page.get_by_test_id("case-name")).not_to_have_text("…")
    name = page.get_by_test_id("case-name").inner_text()
    page.keyboard.press("r")
    becomes(page, lambda: said(desk), [(name, "reject")])


def test_a_key_decides_nothing_where_the_next_case_cannot_be_read(desk, visit):
    page = begin(visit, desk, expected="Failed to load|status of 500")
    open_case(page, 0)
    page.route(re.compile(r"/api/cases/[12]$"), lambda route: route.fulfill(status=500, body="{}"))
    page.keyboard.press("j")
    expect(page.get_by_test_id("problem")).to_be_visible()
    page.keyboard.press("a")
    page.wait_for_timeout(200)
    assert said(desk) == []


def test_keys_in_haste_decide_each_case_once(desk, visit):
    page = begin(visit, desk)
    open_case(page, 0)
    page.get_by_test_id("advance").check()
    page.get_by_test_id("canvas").focus()
    for _ in range(60):
        page.keyboard.press("r")
        page.wait_for_timeout(20)
        if len(said(desk)) >= 3:
            break
    names = [name for name, _ in said(desk)]
    first = client_order(desk)
    assert names[: len(set(names))] == first[first.index("case 0") :][: len(set(names))]


def test_what_was_scored_anew_is_shown_anew_and_decided_anew(tmp_path, desk, visit):
    page = begin(visit, desk, expected="status of 409")
    page.clock.install()
    page.reload()
    open_case(page, 1)
    before = desk.get("/api/cases/1").json()
    made = [desks.picture_case(tmp_path, f"case {at}", at + 7, shape=(40, 36)) for at in range(3)]
    desks.score_run(tmp_path, made)
    page.keyboard.press("a")  # of what the page shows, which is no longer there
    expect(page.get_by_test_id("message")).to_contain_text("Look at it again")
    assert said(desk) == []
    page.clock.fast_forward(POLL_MS)
    after = desk.get("/api/cases/1").json()
    assert after["digest"] != before["digest"]
    expect(page.locator("aside .pairs").first).to_contain_text(f"{after['confidence']:.3f}")
    page.locator("[data-testid=viewer][data-state=ready]").wait_for()
    page.keyboard.press("a")
    becomes(page, lambda: said(desk), [("case 1", "accept")])


def test_a_desk_that_was_started_anew_with_another_order_leads_to_no_other_case(tmp_path, static, visit):
    with restarting(tmp_path, static, 4) as desk:
        page = begin(visit, desk.client, expected=GONE)
        page.evaluate("location.hash = '#/case/2'")
        expect(page.get_by_test_id("case-name")).to_have_text(desk.rows[2]["case"])
        desk.restart()
        expect(page.get_by_test_id("message")).to_contain_text(
            re.compile(r"Choose (case 00002|your case) again")
        )
        becomes(page, lambda: len(cases_on(page)), 4)
        assert said(desk.client) == []
        page.context.close()


def test_a_list_of_a_desk_that_was_started_anew_begins_at_its_top_with_a_message(tmp_path, static, visit):
    with restarting(tmp_path, static, 6) as desk:
        page = begin(visit, desk.client, expected=GONE)
        order = client_order(desk.client)
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[1])
        desk.restart()
        expect(page.get_by_test_id("message")).to_contain_text("Choose your case again")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[0])
        page.context.close()


def test_moving_while_the_list_is_on_its_way_does_not_stop_the_page(tmp_path, static, visit, at_once):
    rows = sorted(desks.rows_of(20, ties=False), key=lambda row: row["sdc"])
    write_table(tmp_path / "scores.csv", Table.of(rows[3:]))
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = begin(visit, client)
        for _ in range(6):
            page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[9]["case"])
        write_table(tmp_path / "scores.csv", Table.of(rows))
        held = Held(page, re.compile(r"/api/cases\?.*limit=200"))
        page.keyboard.press("g")
        held.wait()
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[10]["case"])
        held.let_go()
        expect(page.locator("[aria-rowcount='21']")).to_be_visible()
        becomes(page, lambda: rows[10]["case"] in page.locator("[aria-selected=true]").inner_text(), True)
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[10]["case"])
        page.context.close()


def test_what_is_selected_stays_so_when_the_reviewer_gives_a_name(tmp_path, static, visit, at_once):
    rows = sorted(desks.rows_of(20, ties=False), key=lambda row: row["sdc"])
    write_table(tmp_path / "scores.csv", Table.of(rows[3:]))
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client)
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[3]["case"])
        write_table(tmp_path / "scores.csv", Table.of(rows))
        held = Held(page, re.compile(r"/api/cases\?.*limit=200"))
        sign_in(page, "Ann")
        held.wait()
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[4]["case"])
        held.let_go()
        expect(page.locator("[aria-rowcount='21']")).to_be_visible()
        becomes(page, lambda: rows[4]["case"] in page.locator("[aria-selected=true]").inner_text(), True)
        expect(page.get_by_test_id("preview-case")).to_have_text(rows[4]["case"])
        page.context.close()


def test_an_empty_list_shows_no_case_and_decides_on_none(tmp_path, static, visit):
    desks.write_scores(tmp_path / "scores.csv", 8)
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = begin(visit, client)
        page.get_by_test_id("search").fill("zzzz")
        expect(page.get_by_test_id("empty")).to_be_visible()
        expect(page.get_by_test_id("preview-case")).to_have_count(0)
        page.get_by_test_id("search").blur()
        page.keyboard.press("a")
        page.wait_for_timeout(200)
        assert said(client) == []
        page.context.close()


def test_next_skips_no_case_of_those_undecided(reviewing):
    with reviewing(12) as (page, client):
        order = client_order(client)
        numbers = {row["case"]: row["number"] for row in client.get("/api/cases").json()["rows"]}
        choose(page, "verdict", "undecided")
        page.get_by_test_id("row").nth(7).dblclick()
        expect(page.get_by_test_id("case-name")).to_have_text(order[7])
        for name in order[:2]:
            desks.said(client, numbers[name], reviewer="Bob")
        becomes(page, lambda: "at=5" in page.url, True)  # others have decided two before it
        page.keyboard.press("a")
        expect(page.get_by_test_id("message")).to_contain_text(order[7])
        becomes(page, lambda: page.get_by_test_id("next").is_enabled(), True)
        page.keyboard.press("j")
        expect(page.get_by_test_id("case-name")).to_have_text(order[8])


def test_going_on_waits_for_what_is_next(reviewing):
    with reviewing(12) as (page, client):
        order = client_order(client)
        page.get_by_test_id("advance").check()
        held = Held(page, re.compile(r"/api/cases\?.*limit=4"))
        page.get_by_test_id("row").nth(3).dblclick()
        expect(page.get_by_test_id("case-name")).to_have_text(order[3])
        page.get_by_test_id("verdict-accept").click()
        expect(page.get_by_test_id("message")).to_contain_text(order[3])
        held.let_go()
        expect(page.get_by_test_id("case-name")).to_have_text(order[4])


def test_the_last_case_stays_selected_when_it_leaves_the_list(reviewing):
    with reviewing(6) as (page, client):
        choose(page, "verdict", "undecided")
        page.locator("[role=grid][aria-busy=false]").focus()
        last = client.get("/api/cases").json()["rows"][-1]
        page.keyboard.press("End")
        expect(page.get_by_test_id("preview-case")).to_have_text(last["case"])
        desks.said(client, last["number"], reviewer="Bob")
        page.keyboard.press("g")
        expect(page.get_by_test_id("gone")).to_be_visible()
        expect(page.get_by_test_id("preview-case")).to_have_text(last["case"])
        page.keyboard.press("r")
        becomes(page, lambda: said(client)[1:], [(last["case"], "reject")])
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(client_order(client)[-2])


def test_a_comment_that_is_asked_for_before_the_case_has_come_is_written_then(desk, visit):
    page = begin(visit, desk)
    open_case(page, 0)
    held = Held(page, re.compile(r"/api/cases/[12]$"))
    page.keyboard.press("j")
    held.wait()
    page.keyboard.press("e")
    page.keyboard.type("uns car")
    held.let_go()
    expect(page.get_by_test_id("comment")).to_be_focused()
    page.keyboard.type("car")
    expect(page.get_by_test_id("comment")).to_have_value("car")
    assert said(desk) == []


def test_enter_that_is_held_on_a_button_decides_once(reviewing):
    with reviewing(6) as (page, client):
        page.get_by_test_id("verdict-accept").focus()
        for _ in range(20):
            page.keyboard.down("Enter")
            page.wait_for_timeout(20)
        page.keyboard.up("Enter")
        assert said(client) == [(client_order(client)[0], "accept")]


def test_who_decides_by_keys_on_buttons_keeps_a_place(reviewing):
    with reviewing(6) as (page, client):
        page.get_by_test_id("verdict-accept").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("message")).to_contain_text("accepted")
        expect(page.get_by_test_id("verdict-accept")).to_be_focused()
        page.get_by_test_id("advance").check()
        page.get_by_test_id("verdict-reject").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("preview-case")).to_have_text(client_order(client)[1])
        becomes(page, lambda: page.evaluate("document.activeElement.getAttribute('role')"), "grid")


def test_a_key_that_is_held_down_decides_once(reviewing):
    with reviewing(20) as (page, client):
        page.get_by_test_id("advance").check()
        page.get_by_test_id("grid").focus()
        order = client_order(client)
        for _ in range(30):  # without a release in between: the key is held
            page.keyboard.down("a")
            page.wait_for_timeout(20)
        page.keyboard.up("a")
        assert said(client) == [(order[0], "accept")]


def test_undo_takes_nothing_back_while_the_case_is_on_its_way(desk, visit):
    page = begin(visit, desk)
    for number in (1, 0):
        desks.said(desk, number, reviewer="Ann")
    open_case(page, 0)
    held = Held(page, re.compile(r"/api/cases/[12]$"))
    page.keyboard.press("j")
    held.wait()
    page.keyboard.press("u")
    page.wait_for_timeout(200)
    assert len(said(desk)) == 2
    held.let_go()


def test_no_case_is_selected_while_another_order_is_on_its_way(reviewing):
    with reviewing(40) as (page, client):
        order = client_order(client)
        for _ in range(5):
            page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[5])
        held = Held(page, re.compile(r"/api/cases\?.*limit=200"))
        page.get_by_test_id("sort-case").click()
        held.wait()
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[5])
        held.let_go()
        expect(page.get_by_test_id("preview-case")).to_have_text(sorted(order)[0])


def test_another_order_begins_at_its_top(reviewing):
    with reviewing(400) as (page, client):
        for _ in range(2):
            page.get_by_test_id("sort-confidence").click()
        expect(page.locator("[role=columnheader][aria-sort=descending]")).to_contain_text("Confidence")
        best = client.get("/api/cases?sort=confidence&descending=true&limit=1").json()["rows"][0]["case"]
        becomes(page, lambda: cases_on(page)[0], best)
        expect(page.get_by_test_id("preview-case")).to_have_text(best)
        page.evaluate("document.querySelector('[data-testid=grid]').scrollTop = 6000")
        page.get_by_test_id("sort-case").click()
        becomes(page, lambda: page.locator("[role=grid]").evaluate("each => each.scrollTop"), 0)


def test_going_on_after_a_verdict_skips_no_case_and_pulls_nobody_back(reviewing):
    with reviewing(8) as (page, client):
        page.get_by_test_id("advance").check()
        choose(page, "verdict", "undecided")
        page.get_by_test_id("grid").focus()
        order = client_order(client)
        expect(page.get_by_test_id("preview-case")).to_have_text(order[0])
        numbers = {row["case"]: row["number"] for row in client.get("/api/cases").json()["rows"]}
        desks.said(client, numbers[order[0]], reviewer="Bob")
        page.keyboard.press("g")
        expect(page.get_by_test_id("gone")).to_be_visible()
        page.keyboard.press("a")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[1])
        held = Held(page, "**/api/verdicts")
        page.keyboard.press("a")
        held.wait()
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(page.get_by_test_id("preview-case")).to_have_text(order[3])
        held.let_go()
        expect(page.get_by_test_id("message")).to_contain_text(order[1])
        expect(page.get_by_test_id("preview-case")).to_have_text(order[3])


def test_the_threshold_view_follows_a_run_that_grows(tmp_path, static, visit, at_once):
    rows = desks.rows_of(40)
    write_table(tmp_path / "scores.csv", Table.of(rows[:10]))
    with desks.desk_on(tmp_path, static=static) as (_, client):
        page = visit(client, "#/threshold")
        page.clock.install()
        page.reload()
        expect(page.get_by_test_id("budget-reviewed").locator("xpath=..")).to_contain_text("of 10")
        write_table(tmp_path / "scores.csv", Table.of(rows))
        page.clock.fast_forward(POLL_MS)

        def counted():
            return sum(int(page.get_by_test_id(name).inner_text()) for name in ("accepted", "deferred"))

        becomes(page, counted, 40)
        expect(page.get_by_test_id("budget-reviewed").locator("xpath=..")).to_contain_text("of 40")
        page.context.close()
