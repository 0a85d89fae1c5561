"""Verdicts in the browser: given, taken back, found again, kept in the log, and never lost."""

import csv
import json
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.browser.pages import becomes, expect, rows_on, sign_in, text_of
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

VERDICTS = {"accept": "accepted", "reject": "rejected", "correct": "to correct"}
KEYS = {"accept": "a", "reject": "r", "correct": "c"}


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A table with a policy; each test has a log of its own."""
    folder = tmp_path_factory.mktemp("decisions")
    table = desks.write_scores(folder / "scores.csv", 400)
    return folder, desks.write_policy(folder / "policy.json", table, risk=0.22)


@pytest.fixture
def reviewing(counted, tmp_path, static):
    """Open the desk, on the same log and port each time."""
    folder, policy = counted

    @contextmanager
    def opened(port=0):
        database = f"sqlite:///{tmp_path / 'log.sqlite'}"
        how = {"policy": policy, "predictor": desks.PREDICTOR, "database": database}
        with desks.desk_on(folder, static=static, port=port, **how) as found:
            yield found

    return opened


@pytest.fixture
def desk(reviewing):
    with reviewing() as found:
        yield found


@pytest.fixture
def logged(tmp_path):
    """Read the log as another program would."""

    def rows():
        with sqlite3.connect(tmp_path / "log.sqlite") as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute("SELECT * FROM segtrust_verdicts ORDER BY id")]
        connection.close()
        return found

    return rows


def verdict_of(page, case):
    """What the list says of a case; None if it is not in the list yet."""
    return next((row["verdict"] for row in rows_on(page) if row["case"] == case), None)


def begin(visit, client, name="Ann"):
    page = visit(client)
    page.get_by_test_id("row").first.wait_for()
    if name:
        sign_in(page, name)
    return page


@pytest.mark.parametrize("by", ["mouse", "keys"])
def test_each_verdict_with_its_comment(desk, visit, logged, by):
    page = begin(visit, desk[1])
    cases = []
    for verdict, said in VERDICTS.items():
        cases.append(text_of(page, "preview-case"))
        decide(page, verdict, f"it is {verdict}", by)
        expect(page.get_by_test_id("message")).to_contain_text(f"{cases[-1]}: {said}")
        assert said in verdict_of(page, cases[-1])
        expect(page.get_by_test_id("comment")).to_have_value("")
        expect(page.get_by_test_id("history")).to_contain_text(f"it is {verdict}")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
    entries = logged()
    assert [each["case_name"] for each in entries] == cases
    assert [each["verdict"] for each in entries] == list(VERDICTS)
    assert [each["comment"] for each in entries] == [f"it is {each}" for each in VERDICTS]
    assert {each["reviewer"] for each in entries} == {"Ann"}
    assert {each["policy"] for each in entries} == {desk[0].policies["foreground"].fingerprint}
    for each in entries:
        assert abs(datetime.now(UTC) - datetime.fromisoformat(each["time"])) < timedelta(minutes=2)


def decide(page, verdict, comment, by):
    if by == "keys":
        page.keyboard.press("e")
        page.keyboard.type(comment)
        page.keyboard.press("Escape")
        page.keyboard.press(KEYS[verdict])
    else:
        page.get_by_test_id("comment").fill(comment)
        page.get_by_test_id(f"verdict-{verdict}").click()


def test_undo_reload_and_find_it(desk, visit, logged):
    page = begin(visit, desk[1])
    case = text_of(page, "preview-case")
    page.keyboard.press("r")
    expect(page.get_by_test_id("verdict-reject")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("u")
    expect(page.get_by_test_id("message")).to_contain_text("verdict taken back")
    expect(page.get_by_test_id("verdict-reject")).to_have_attribute("aria-pressed", "false")
    assert verdict_of(page, case) == ""
    page.keyboard.press("a")
    expect(page.get_by_test_id("verdict-accept")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_test_id("reviewer")).to_have_text("Ann")
    becomes(page, lambda: verdict_of(page, case), "✓ accepted")
    expect(page.get_by_test_id("verdict-accept")).to_have_attribute("aria-pressed", "true")
    page.get_by_test_id("filter-verdict").select_option("mine")
    becomes(page, lambda: [row["case"] for row in rows_on(page)], [case])
    first, taken, second = logged()
    assert (first["verdict"], taken["undoes"], second["verdict"]) == ("reject", first["id"], "accept")


def test_undo_from_the_message_and_go_on(desk, visit):
    page = begin(visit, desk[1])
    first, second = (row["case"] for row in rows_on(page)[:2])
    page.get_by_test_id("advance").check()
    page.get_by_test_id("verdict-accept").click()
    expect(page.get_by_test_id("preview-case")).to_have_text(second)
    page.get_by_test_id("message").get_by_role("button", name="Undo").click()
    becomes(page, lambda: verdict_of(page, first), "")


def test_two_reviewers_at_once_lose_nothing(desk, visit, logged):
    ann, bob = begin(visit, desk[1], "Ann"), begin(visit, desk[1], "Bob")
    order = [row["case"] for row in rows_on(ann)[:6]]
    for at in range(5):
        ann.keyboard.press("a")
        bob.keyboard.press("r" if at % 2 else "a")
        for page in (ann, bob):
            expect(page.get_by_test_id("message")).to_contain_text(order[at])
            page.keyboard.press("j")
    bob.keyboard.press("c")
    for page, other in ((ann, "Bob"), (bob, "Ann")):
        becomes(page, lambda page=page, other=other: other in verdict_of(page, order[4]), True)
    becomes(ann, lambda: verdict_of(ann, order[5]), "✎ to correct · Bob")
    held = {(each["case_name"], each["reviewer"], each["verdict"]) for each in logged()}
    of_bob = {(order[at], "Bob", "reject" if at % 2 else "accept") for at in range(5)}
    assert held == {(case, "Ann", "accept") for case in order[:5]} | of_bob | {(order[5], "Bob", "correct")}


def test_export_is_the_log(desk, visit, logged, tmp_path):
    page = begin(visit, desk[1])
    decide(page, "accept", "=SUM(1)\tis no formula", "mouse")
    expect(page.get_by_test_id("verdict-accept")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("u")
    expect(page.get_by_test_id("message")).to_contain_text("verdict taken back")
    names = {"set_name": "set", "case_name": "case"}
    expected = [{names.get(name, name): value for name, value in row.items()} for row in logged()]
    texts = {kind: exported(page, kind, tmp_path) for kind in ("csv", "json")}
    found = json.loads(texts["json"])
    for entry, row in zip(found, expected, strict=True):
        kept = {name: value or None for name, value in row.items() if name != "run"}
        assert kept == {name: entry[name] or None for name in kept}
    assert [entry["holds"] for entry in found] == [False, False]
    table = list(csv.DictReader(texts["csv"].splitlines()))
    assert [row["case"] for row in table] == [row["case"] for row in expected]
    assert table[0]["comment"] == "'" + expected[0]["comment"]


def exported(page, kind, folder):
    page.get_by_test_id("export").click()
    with page.expect_download() as download:
        page.get_by_test_id(f"export-{kind}").click()
    download.value.save_as(folder / download.value.suggested_filename)
    page.keyboard.press("Escape")
    assert download.value.suggested_filename == f"verdicts.{kind}"
    return (folder / f"verdicts.{kind}").read_text(encoding="utf-8")


def test_the_server_goes_and_comes_back(visit, reviewing, logged):
    with reviewing() as (_, client):
        page = visit(client, expected="Failed to load resource|ERR_CONNECTION")
        page.get_by_test_id("row").first.wait_for()
        sign_in(page, "Ann")
        case, port = text_of(page, "preview-case"), client.base_url.port
        page.get_by_test_id("comment").fill("typed before it went")
    page.get_by_test_id("verdict-accept").click()
    expect(page.get_by_test_id("banner")).to_contain_text("The server does not answer")
    expect(page.get_by_test_id("message")).to_contain_text("Not known to be saved. Send it again")
    expect(page.get_by_test_id("comment")).to_have_value("typed before it went")
    assert case in [row["case"] for row in rows_on(page)]
    assert logged() == []
    with reviewing(port):
        expect(page.get_by_test_id("banner")).to_be_hidden()
        expect(page.get_by_test_id("comment")).to_have_value("typed before it went")
        page.get_by_test_id("verdict-accept").click()
        becomes(page, lambda: [each["comment"] for each in logged()], ["typed before it went"])
        assert case == logged()[0]["case_name"]


def test_a_verdict_whose_answer_was_lost_is_written_once(visit, reviewing, logged):
    with reviewing() as (_, client):
        page = visit(client, expected="Failed to load resource|ERR_FAILED")
        page.get_by_test_id("row").first.wait_for()
        sign_in(page, "Ann")
        page.get_by_test_id("comment").fill("once")
        page.route("**/api/verdicts", lambda route: (route.fetch(), route.abort()), times=1)
        page.get_by_test_id("verdict-accept").click()
        expect(page.get_by_test_id("message")).to_contain_text("Not known to be saved. Send it again")
        assert [each["comment"] for each in logged()] == ["once"]
        page.reload()
        page.get_by_test_id("verdict-accept").click()
        expect(page.get_by_test_id("comment")).to_have_value("")
        assert [each["comment"] for each in logged()] == ["once"]
        page.get_by_test_id("verdict-accept").click()  # a second one, on purpose
        becomes(page, lambda: [each["comment"] for each in logged()], ["once", ""])
        page.context.close()


def test_a_comment_outlives_a_reload(desk, visit):
    page = begin(visit, desk[1])
    page.get_by_test_id("comment").fill("half a thou")
    page.reload()
    expect(page.get_by_test_id("comment")).to_have_value("half a thou")
