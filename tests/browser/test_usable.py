"""Nothing sticks out at any size and theme, the keyboard alone will do, and axe-core finds nothing."""

import re

import pytest

from segtrust.demo.nuclei import PREDICTOR, prepare_run
from tests.browser import pictures
from tests.browser.pages import SIZES, THEMES, becomes, cases_on, expect, open_case, sign_in, violations
from tests.report.runs import QUICK, run, write_manifest
from tests.review import desks

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright", "chromium", "node", "matplotlib")]

VIEWS = {
    "worklist": ("#/worklist", "[data-testid=row]"),
    "case": ("#/case/3", "[data-testid=viewer][data-state=ready]"),
    "threshold": ("#/threshold", "[data-testid=certified]"),
    "monitoring": ("#/monitoring", "[data-testid=drift]"),
}
# Controls that lie beyond the page, under others, or whose text is cut off.
_HIDDEN = """
() => [...document.querySelectorAll("button, input, select, textarea, summary, .grid")].filter((each) => {
  const box = each.getBoundingClientRect();
  if (box.width === 0 || !each.checkVisibility() || each.closest(".page")) return false;
  const seen = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const isCut = each.matches("button, summary") && each.scrollWidth > each.clientWidth + 1;
  const isOut = box.left < 0 || box.right > innerWidth + 0.5 || box.top < 0 || box.bottom > innerHeight + 0.5;
  return isCut || isOut || !(each.contains(seen) || seen?.contains(each));
}).map((each) => each.outerHTML)
"""
_WIDE = """
() => [...document.querySelectorAll("main *")].filter((each) =>
  each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1 &&
  !["visible", "hidden", "clip"].includes(getComputedStyle(each).overflowX)).map((each) => each.outerHTML)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("demo")
    policy = prepare_run(folder)
    with desks.desk_on(folder, policy=policy, predictor=PREDICTOR, static=static) as (_, client):
        for number in range(0, 12, 2):
            desks.said(client, number, ("accept", "reject", "correct")[number % 3], "Bob", comment="seen")
        yield client


@pytest.fixture(scope="module")
def volumes(tmp_path_factory, static):
    folder = tmp_path_factory.mktemp("volume")
    desks.score_run(folder, [pictures.volume(folder / "files", "straight")])
    with desks.desk_on(folder, static=static) as (_, client):
        yield client


def show(page, view):
    place, ready = VIEWS[view]
    page.evaluate("(hash) => { location.hash = hash }", place)
    page.locator(ready).first.wait_for()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", THEMES)
def test_nothing_sticks_out_and_axe_finds_nothing(demo, visit, axe, size, theme):
    page = visit(demo, size=size, color_scheme=theme, reduced_motion="reduce")
    page.get_by_test_id("row").first.wait_for()
    for view in VIEWS:
        show(page, view)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        assert (view, page.evaluate(_WIDE), page.evaluate(_HIDDEN)) == (view, [], [])
        assert (view, violations(page)) == (view, [])
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) > 380) == (theme == "light")


@pytest.mark.parametrize("theme", THEMES)
def test_dialogs_and_menus_for_axe(demo, visit, axe, theme):
    page = visit(demo, color_scheme=theme, reduced_motion="reduce")
    page.get_by_test_id("row").first.wait_for()
    for testid in ("help-button", "reviewer", "export"):
        page.get_by_test_id(testid).click()
        assert (testid, violations(page)) == (testid, [])
        page.keyboard.press("Escape")
    sign_in(page, "Ann")
    page.keyboard.press("a")
    expect(page.get_by_test_id("message")).to_contain_text("accepted")
    page.evaluate("document.querySelector('[data-testid=grid]').scrollTop = 2000")
    becomes(page, lambda: page.locator("#row-0").count(), 0)
    assert violations(page) == []
    page.get_by_test_id("search").fill("no such case")
    expect(page.get_by_test_id("empty")).to_be_visible()
    assert violations(page) == []


def test_a_volume_for_axe(volumes, visit, axe):
    page = visit(volumes, reduced_motion="reduce")
    open_case(page, 0)
    page.get_by_test_id("multiplanar").click()
    for size in SIZES:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        assert (page.evaluate(_WIDE), page.evaluate(_HIDDEN)) == ([], [])
        assert violations(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_report_for_axe(browser, axe, evaluated, theme):
    page = browser.new_page(color_scheme=theme, reduced_motion="reduce")
    page.goto((evaluated / "report.html").as_uri())
    assert [each for each in violations(page) if each[1] in ("serious", "critical")] == []
    page.close()


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    run("evaluate", write_manifest(folder / "data", "id", 30), "-o", folder / "run", *QUICK)
    return folder / "run"


_SCHEME = "getComputedStyle(document.documentElement).colorScheme"


def test_the_theme_is_chosen_and_kept(demo, visit):
    page = visit(demo, color_scheme="light")
    button = page.get_by_test_id("theme")
    for theme in ("dark", "light", "system"):
        button.click()
        expect(button).to_have_attribute("aria-label", f"Theme: {theme}")
        becomes(page, lambda: page.evaluate(_SCHEME), "light" if theme == "system" else theme)
        page.reload()
        expect(button).to_have_attribute("aria-label", f"Theme: {theme}")


_FOCUS = """
() => {
  const each = document.activeElement, style = getComputedStyle(each);
  return [each.dataset.testid ?? each.className ?? each.tagName, each.matches(":focus-visible"),
    style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1];
}
"""


def stops(page, most=60):
    """Where the tabulator leads, from the beginning of a page until it leaves or returns."""
    found = []
    for _ in range(most):
        page.keyboard.press("Tab")
        name, is_focused, has_ring = page.evaluate(_FOCUS)
        if not is_focused or [name, has_ring] in found[:1]:
            break
        found.append([name, has_ring])
    return found


REACHED = (
    "tab-threshold",
    "export",
    "theme",
    "search",
    "filter-verdict",
    "grid",
    "verdict-accept",
    "comment",
)


def test_the_tabulator_reaches_all_and_shows_where_it_is(demo, visit):
    page = visit(demo)
    page.get_by_test_id("row").first.wait_for()
    found = stops(page)
    assert all(has_ring for _, has_ring in found), found
    names = [name for name, _ in found]
    assert names[0] == "skip"
    for testid in REACHED:
        assert testid in names


def test_from_the_start_to_a_decided_case_by_keys_alone(demo, visit):
    page = visit(demo)
    page.get_by_test_id("row").first.wait_for()
    case = cases_on(page)[1]
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_test_id("case-name")).to_have_text(case)
    page.keyboard.press("e")
    page.keyboard.type("by keys")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect(page.get_by_test_id("ask-name")).to_be_visible()
    page.keyboard.type("Kim")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("message")).to_contain_text(f"{case}: rejected")
    expect(page.get_by_test_id("history")).to_contain_text("by keys")
    page.keyboard.press("Escape")
    page.get_by_test_id("row").first.wait_for()
    page.keyboard.press("u")
    expect(page.get_by_test_id("message")).to_contain_text("taken back")


@pytest.mark.parametrize(("opener", "dialog"), [("help-button", "help"), ("reviewer", "ask-name")])
def test_dialogs_keep_the_focus_and_give_it_back(demo, visit, opener, dialog):
    page = visit(demo)
    page.get_by_test_id("row").first.wait_for()
    for leave in ("Escape", "button"):
        page.get_by_test_id(opener).focus()
        page.keyboard.press("Enter")
        expect(page.get_by_test_id(dialog)).to_be_visible()
        for _ in range(8):
            page.keyboard.press("Tab")
            where = page.evaluate(
                "document.activeElement.closest('dialog')?.dataset.testid ?? document.activeElement.tagName"
            )
            assert where in (dialog, "BODY")  # the browser's own controls come between
        if leave == "Escape":
            page.keyboard.press("Escape")
        else:
            page.get_by_test_id(dialog).get_by_role("button").first.click()
        expect(page.get_by_test_id(dialog)).to_be_hidden()
        expect(page.get_by_test_id(opener)).to_be_focused()


def test_saving_a_name_gives_the_focus_back_and_it_can_be_changed(demo, visit):
    page = visit(demo)
    for name in ("Ann", "Bea"):
        page.get_by_test_id("reviewer").focus()
        page.keyboard.press("Enter")
        page.get_by_test_id("reviewer-name").fill(name)
        page.keyboard.press("Enter")
        expect(page.get_by_test_id("reviewer")).to_have_text(name)
        expect(page.get_by_test_id("reviewer")).to_be_focused()
    page.get_by_test_id("reviewer").click()
    page.get_by_test_id("reviewer-name").fill("nobody")
    page.keyboard.press("Escape")
    page.get_by_test_id("reviewer").click()
    expect(page.get_by_test_id("reviewer-name")).to_have_value("Bea")


def test_a_menu_closes_with_escape_and_when_it_is_left(demo, visit):
    page = visit(demo)
    menu = page.get_by_test_id("export-csv")
    page.get_by_test_id("export").focus()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(page.get_by_test_id("export")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_test_id("search").focus()
    expect(menu).to_be_hidden()


def test_the_help_lists_the_keys_of_the_view(demo, visit):
    page = visit(demo)
    page.get_by_test_id("row").first.wait_for()
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    expect(page.get_by_test_id("help")).to_contain_text("Open the case")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_be_hidden()
    show(page, "case")
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_contain_text("Most uncertain slice")
