"""The worklist: its order, its columns, its filters, and that its rows are those of the table."""

from dataclasses import dataclass

import pytest

from segtrust.io import Table, write_table
from tests.browser.pages import becomes, cases_on, expect, rows_on, sign_in, text_of
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

COUNT = 24  # all of them fit on the screen
VERDICTS = {1: ("accept", "ann"), 4: ("reject", "ann"), 9: ("correct", "bob"), 16: ("accept", "bob")}
SAID = {"accept": "accepted", "reject": "rejected", "correct": "to correct"}


@dataclass(frozen=True)
class Listed:
    """A desk with a few rows."""

    client: object
    rows: list
    threshold: float

    def is_deferred(self, row):
        return row["sdc"] < self.threshold

    def verdict(self, row):
        return VERDICTS.get(self.rows.index(row), (None, None))

    def cases(self, key=None, where=lambda row: True, *, reverse=False):
        """Names in an order, the first of equal ones first, of the rows that are wanted."""
        key = key or (lambda row: (not self.is_deferred(row), row["sdc"]))
        return [row["case"] for row in sorted(filter(where, self.rows), key=key, reverse=reverse)]


@pytest.fixture(scope="module")
def listed(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("listed")
    known = desks.write_scores(folder / "known.csv", 400)
    policy = desks.write_policy(folder / "policy.json", known, risk=0.22)
    rows = [
        {**row, "group": f"patient {at * 7 % 5}"} for at, row in enumerate(desks.rows_of(COUNT, 3, False))
    ]
    write_table(folder / "scores.csv", Table.of(rows))
    with desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR, static=static) as (desk, client):
        for number, (verdict, reviewer) in VERDICTS.items():
            desks.said(client, number, verdict, reviewer)
        yield Listed(client, rows, desk.policies["foreground"].threshold)


@pytest.fixture
def page(visit, listed):
    page = visit(listed.client)
    becomes(page, lambda: len(cases_on(page)), COUNT)
    return page


def as_shown(listed, row):
    verdict, reviewer = listed.verdict(row)
    margin = f"{row['sdc'] - listed.threshold:+.3f}".replace("-", "−")
    return {
        **{name: row[name] for name in ("case", "set", "group")},
        "confidence": f"{row['sdc']:.3f}",
        "margin": margin,
        "decision": "deferred" if listed.is_deferred(row) else "accepted",
        "dice": f"{row['dice']:.3f}",
        "verdict": f"{SAID[verdict]} · {reviewer}" if verdict else "",
    }


def test_opens_with_deferred_cases_first_and_all_that_the_table_says(page, listed):
    by_name = {row["case"]: row for row in listed.rows}
    expected = [as_shown(listed, by_name[case]) for case in listed.cases()]
    assert {row["decision"] for row in expected} == {"deferred", "accepted"}
    signs = str.maketrans("", "", "✓✕✎")
    shown = [{**row, "verdict": row["verdict"].translate(signs).strip()} for row in rows_on(page)]
    assert shown == expected
    assert text_of(page, "preview-case") == expected[0]["case"]
    expect(page).to_have_title("listed0 – review desk")


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ("case", lambda row: row["case"]),
        ("set", lambda row: row["set"]),
        ("group", lambda row: row["group"]),
        ("confidence", lambda row: row["sdc"]),
        ("dice", lambda row: row["dice"]),
    ],
)
def test_each_column_sorts_both_ways(page, listed, column, key):
    head = page.get_by_test_id(f"sort-{column}")
    head.click()
    becomes(page, lambda: cases_on(page), listed.cases(key))
    expect(page.locator("[aria-sort=ascending]")).to_contain_text(column, ignore_case=True)
    head.click()
    becomes(page, lambda: cases_on(page), listed.cases(key, reverse=True))
    expect(page.locator("[aria-sort=descending]")).to_contain_text(column, ignore_case=True)


def test_decisions_and_verdicts_sort_both_ways(page, listed):
    ranks = {"accept": 0, "correct": 1, "reject": 2, None: 3}
    last = {**{name: -rank for name, rank in ranks.items()}, None: 3}  # those without stay at the end
    page.get_by_test_id("sort-verdict").click()
    becomes(page, lambda: cases_on(page), listed.cases(lambda row: ranks[listed.verdict(row)[0]]))
    page.get_by_test_id("sort-verdict").click()
    becomes(page, lambda: cases_on(page), listed.cases(lambda row: last[listed.verdict(row)[0]]))
    page.get_by_test_id("sort-decision").click()
    becomes(page, lambda: cases_on(page), listed.cases())
    page.get_by_test_id("sort-decision").click()
    becomes(page, lambda: cases_on(page), listed.cases()[::-1])


FILTERS = [
    ({"set": "other"}, lambda listed, row: row["set"] == "other"),
    ({"group": "patient 3"}, lambda listed, row: row["group"] == "patient 3"),
    ({"decision": "defer"}, lambda listed, row: listed.is_deferred(row)),
    ({"decision": "accept"}, lambda listed, row: not listed.is_deferred(row)),
    ({"verdict": "undecided"}, lambda listed, row: listed.verdict(row)[0] is None),
    ({"verdict": "decided"}, lambda listed, row: listed.verdict(row)[0] is not None),
    ({"verdict": "accept"}, lambda listed, row: listed.verdict(row)[0] == "accept"),
    ({"verdict": "reject"}, lambda listed, row: listed.verdict(row)[0] == "reject"),
    ({"verdict": "correct"}, lambda listed, row: listed.verdict(row)[0] == "correct"),
    (
        {"set": "ID", "decision": "defer", "verdict": "undecided"},
        lambda listed, row: row["set"] == "ID" and listed.is_deferred(row) and listed.verdict(row)[0] is None,
    ),
]


def test_filters(page, listed):
    for chosen, where in FILTERS:
        page.evaluate("location.hash = '#/worklist'")
        expect(page.get_by_test_id("total")).to_have_text(f"{COUNT} cases")
        for name, value in chosen.items():
            page.get_by_test_id(f"filter-{name}").select_option(value)
        expected = listed.cases(where=lambda row, where=where: where(listed, row))
        assert 0 < len(expected) < COUNT
        becomes(page, lambda: cases_on(page), expected)
        told = "1 case" if len(expected) == 1 else f"{len(expected)} cases"
        expect(page.get_by_test_id("total")).to_have_text(told)


def test_what_i_decided(page, listed):
    sign_in(page, "bob")
    page.get_by_test_id("filter-verdict").select_option("mine")
    mine = listed.cases(where=lambda row: listed.verdict(row)[1] == "bob")
    becomes(page, lambda: cases_on(page), mine)
    assert len(mine) == 2


def test_search_goes_together_with_filters_and_order(page, listed):
    page.keyboard.press("/")
    page.keyboard.type("CASE 0001")
    found = listed.cases(where=lambda row: "case 0001" in row["case"])
    becomes(page, lambda: cases_on(page), found)
    page.get_by_test_id("filter-set").select_option("other")
    page.get_by_test_id("sort-dice").click()
    both = listed.cases(lambda row: row["dice"], lambda row: row["case"] in found and row["set"] == "other")
    becomes(page, lambda: cases_on(page), both)
    page.reload()
    becomes(page, lambda: cases_on(page), both)
    expect(page.get_by_test_id("search")).to_have_value("CASE 0001")


def test_no_match_says_so_and_leads_back(page, listed):
    page.get_by_test_id("search").fill("no such case")
    expect(page.get_by_test_id("empty")).to_contain_text("No case is like that")
    page.get_by_role("button", name="Show all cases").click()
    becomes(page, lambda: cases_on(page), listed.cases())


def test_keys_walk_through_the_list_and_open_a_case(page, listed):
    order = listed.cases()
    for keys, place in (("j j ArrowDown", 3), ("k", 2), ("End", COUNT - 1), ("Home", 0), ("PageDown", None)):
        for key in keys.split():
            page.keyboard.press(key)
        if place is not None:
            expect(page.get_by_test_id("preview-case")).to_have_text(order[place])
    page.keyboard.press("Home")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("case-name")).to_have_text(order[1])
    page.keyboard.press("n")
    expect(page.get_by_test_id("case-name")).to_have_text(order[2])
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("preview-case")).to_have_text(order[2])
