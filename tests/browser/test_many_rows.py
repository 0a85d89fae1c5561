"""Twenty thousand rows: the page holds a screenful, and is at their end at once."""

import time

import pytest

from tests.browser.pages import becomes, cases_on, expect, rows_on
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node")]

COUNT = 20_000
PATIENCE_S = 60.0
_SCROLL = """
async () => {
  const grid = document.querySelector("[data-testid=grid]");
  const begin = performance.now(), steps = 200, gaps = [];
  for (let step = 1, last = begin; step <= steps; step++) {
    grid.scrollTop = (grid.scrollHeight - grid.clientHeight) * step / steps;
    await new Promise(requestAnimationFrame);
    gaps.push(performance.now() - last);
    last = performance.now();
  }
  gaps.sort((a, b) => a - b);
  return { ms: performance.now() - begin, median: gaps[steps / 2], worst: gaps.at(-1) };
}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("many")
    table = desks.write_scores(folder / "scores.csv", COUNT, ties=False)
    order = [row["case"] for row in sorted(table.rows, key=lambda row: row["sdc"])]
    with desks.desk_on(folder, static=static) as (_, client):
        yield client, order


@pytest.fixture
def page(many, visit):
    page = visit(many[0])
    page.get_by_test_id("row").first.wait_for()
    return page


def test_first_paint(page, many, record_property):
    painted, rows = page.evaluate(
        "[performance.getEntriesByName('first-contentful-paint')[0].startTime, performance.now()]"
    )
    record_property("20,000 rows, first paint", f"{painted:.0f} ms")
    record_property("20,000 rows, first rows shown within", f"{rows:.0f} ms")
    assert max(painted, rows) < 1000 * PATIENCE_S
    assert cases_on(page) == many[1][: len(cases_on(page))]
    expect(page.get_by_test_id("total")).to_have_text("20\u2009000 cases")


def test_the_page_holds_a_screenful(page):
    assert 20 <= len(rows_on(page)) <= 60
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


def test_a_jump_to_the_end_and_back(page, many, record_property):
    begin = time.monotonic()
    page.keyboard.press("End")
    expect(page.get_by_test_id("preview-case")).to_have_text(many[1][-1])
    becomes(page, lambda: cases_on(page)[-1:], many[1][-1:])
    record_property("20,000 rows, jump to the end", f"{1000 * (time.monotonic() - begin):.0f} ms")
    assert cases_on(page) == many[1][-len(cases_on(page)) :]
    assert len(rows_on(page)) <= 60
    page.keyboard.press("Home")
    becomes(page, lambda: cases_on(page)[:1], many[1][:1])


def test_scrolling_through_all(page, many, record_property):
    told = page.evaluate(_SCROLL)
    record_property("20,000 rows, scrolled through in 200 steps", f"{told['ms']:.0f} ms")
    record_property("    from picture to picture", f"{told['median']:.0f} ms, at most {told['worst']:.0f} ms")
    assert told["ms"] < 2000 * PATIENCE_S
    becomes(page, lambda: cases_on(page)[-1:], many[1][-1:])
    page.evaluate("document.querySelector('[data-testid=grid]').scrollTop = 30 * 12345")
    becomes(page, lambda: many[1][12345] in cases_on(page), True)
    first = many[1].index(cases_on(page)[0])
    assert cases_on(page) == many[1][first : first + len(cases_on(page))]
