"""What tests in a browser do again and again: watch a page, read it, wait for it."""

import re
import time
from importlib.util import find_spec
from pathlib import Path

expect = None
if find_spec("playwright"):
    from playwright.sync_api import expect

    expect.set_options(timeout=30_000)  # a machine may be busy with other things

ARGUMENTS = (
    "--no-sandbox",
    "--use-angle=swiftshader",  # WebGL 2 without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
POLL_MS = 10_000
"""How often a page asks how far the run has come."""
SIZES = ((1280, 800), (1920, 1080))
THEMES = ("light", "dark")
ROOT = Path(__file__).parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
NOTHING = r"(?!)"
_TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`));
"""
_CELLS = r"""
(rows) => rows.map((row) => Object.fromEntries([...row.querySelectorAll("[role=gridcell]")].map(
  (cell) => [cell.className.match(/col-(\w+)/)[1], cell.innerText.trim()])))
"""


class Watch:
    """What a page asks for and complains about; `expected` is a pattern of complaints that are meant."""

    def __init__(self, page, base, expected=NOTHING):
        self.base, self.expected = base, expected
        self.requests, self.complaints = [], []
        page.add_init_script(_TELL_VIOLATIONS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message) or dialog.dismiss())

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def check(self):
        """Nothing was asked of anybody else, and nothing went wrong that was not meant to."""
        own = (self.base, "data:", "blob:")
        foreign = [url for url in self.requests if not url.startswith(own)]
        unexpected = [each for each in self.complaints if not re.search(self.expected, each)]
        assert not foreign, foreign
        assert not unexpected, unexpected


class Held:
    """Requests of a page that wait until they are let go."""

    def __init__(self, page, pattern):
        self.page, self.routes, self.is_open = page, [], False
        page.route(pattern, self.take)

    def take(self, route):
        self.routes.append(route)
        if self.is_open:
            route.continue_()

    def wait(self):
        """Wait until one is held: what a page has sent comes here a moment after the page shows so."""
        becomes(self.page, lambda: len(self.routes) > 0, True)

    def let_go(self):
        """Let those that wait through, one at least, and all after them."""
        self.wait()
        self.is_open = True
        for route in list(self.routes):
            route.continue_()


def becomes(page, read, expected, seconds=30.0):
    """Wait until what is read is as expected; show both if it never is."""
    deadline = time.monotonic() + seconds
    while (found := read()) != expected and time.monotonic() < deadline:
        page.wait_for_timeout(30)
    assert found == expected, f"expected {expected}, got {found}"


def rows_on(page):
    """The rows in the page, as texts by column."""
    return page.get_by_test_id("row").evaluate_all(_CELLS)


def cases_on(page):
    """The names of the cases in the page, from the top."""
    return [row["case"] for row in rows_on(page)]


def text_of(page, testid):
    """The text of a part of the page."""
    return page.get_by_test_id(testid).inner_text()


def number_in(text):
    """The number that a text begins with, written as the page writes numbers; None for a dash."""
    plain = text.replace("−", "-").replace("\u2009", "").replace("\u202f", " ")
    found = re.match(r"-?[\d.]+", plain)
    return float(found.group()) if found else None


def number_on(page, testid):
    """The number that a part of the page shows."""
    return number_in(text_of(page, testid))


def sign_in(page, name):
    """Say who reviews."""
    page.get_by_test_id("reviewer").click()
    page.get_by_test_id("reviewer-name").fill(name)
    page.get_by_test_id("reviewer-save").click()
    expect(page.get_by_test_id("reviewer")).to_have_text(name)


def choose(page, name, value):
    """Choose a filter of the worklist, and wait for the list that answers it."""
    with page.expect_response(lambda answer: "/api/cases?" in answer.url and f"{name}=" in answer.url):
        page.get_by_test_id(f"filter-{name}").select_option(value)
    page.locator("[role=grid][aria-busy=false]").wait_for()


def open_case(page, number):
    """Open a case by its address, and wait for its picture."""
    page.evaluate("(hash) => { location.hash = hash }", f"#/case/{number}")
    page.locator(f"[data-testid=viewer][data-state=ready][data-number='{number}']").wait_for()


def violations(page):
    """What axe-core finds: rule, how grave, and where."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [(each["id"], each["impact"], [node["html"] for node in each["nodes"]]) for each in found]
