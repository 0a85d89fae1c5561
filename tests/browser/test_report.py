"""The report in a real browser: it asks for nothing, and what is read off a curve is the curve."""

import re

import numpy as np
import pytest

from segtrust.report.html.run import open_run_folder
from tests.report.runs import HOSTILE, QUICK, rename_cases, run, write_manifest

pytestmark = [pytest.mark.slow, pytest.mark.needs("matplotlib", "pyarrow", "playwright", "chromium")]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    manifest = rename_cases(write_manifest(folder / "data", "id", 30), [HOSTILE, "../x"])
    run("evaluate", manifest, "-o", folder / "run", *QUICK)
    return folder / "run"


@pytest.fixture
def page(browser, evaluated):
    """The page; at the end nothing was asked for, nothing complained and no script of a name was run."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    requests, complaints = [], []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    address = (evaluated / "report.html").as_uri()
    opened.goto(address)
    yield opened
    assert [url for url in requests if not url.startswith("data:")] == [address]
    assert not complaints
    opened.close()


def told(page, part):
    return page.locator(f"#{part} figure.chart .told").first.inner_text()


def point(page, part, x, y):
    """Point at a place of a chart, in its own units."""
    picture = page.locator(f"#{part} figure.chart svg[tabindex]").first
    picture.scroll_into_view_if_needed()
    page.wait_for_timeout(400)  # scrolling is smooth
    box = picture.bounding_box()
    scale = box["width"] / 560
    page.mouse.move(box["x"] + x * scale, box["y"] + y * scale)


def curve_of(evaluated):
    (found,) = open_run_folder(evaluated).sets
    return found, found.curves["sdc"]


def is_at(text, found, curve, at):
    """Whether a text tells of a point of a curve."""
    cases = {row["case"]: row["sdc"] for row in found.rows}
    shown = re.search(
        r"coverage (.*) % · risk (.*) · interval .* · threshold (\S+) · last accepted (.*)", text
    )
    coverage, risk, threshold = map(float, shown.groups()[:3])
    np.testing.assert_allclose(coverage, 100 * curve.coverages[at], atol=0.051)
    np.testing.assert_allclose(risk, curve.risks[at], atol=5.1e-5)
    np.testing.assert_allclose(threshold, curve.thresholds[at], rtol=1e-5)
    assert cases[shown.group(4).strip()] == curve.thresholds[at]
    return True


def test_pointing_at_a_curve_tells_its_numbers(page, evaluated):
    found, curve = curve_of(evaluated)
    page.locator('#curves button[data-series="sdc"]').click()
    for at in (8, 15, 30):
        x = 58 + curve.coverages[at] * (560 - 58 - 14)
        frame = page.evaluate("JSON.parse(document.querySelector('#curves script').textContent).frame.y")
        y = frame[2] + (curve.risks[at] - frame[0]) / (frame[1] - frame[0]) * (frame[3] - frame[2])
        point(page, "curves", x, y)
        assert is_at(told(page, "curves"), found, curve, at)


def test_arrow_keys_walk_along_a_curve(page, evaluated):
    found, curve = curve_of(evaluated)
    page.locator("#curves svg[tabindex]").first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert told(page, "curves").startswith("SDC")
    assert is_at(told(page, "curves"), found, curve, 1)
    page.keyboard.press("End")
    assert is_at(told(page, "curves"), found, curve, curve.coverages.size - 1)
    page.keyboard.press("ArrowDown")
    assert not told(page, "curves").startswith("SDC")


def test_pointing_at_a_dot_tells_its_case(page, evaluated):
    found, _ = curve_of(evaluated)
    page.locator("#confidence svg[tabindex]").first.focus()
    page.keyboard.press("Home")
    least = min(found.rows, key=lambda row: row["sdc"])
    assert told(page, "confidence").startswith(f"{least['case']} · confidence")
    assert f"Dice {least['dice']:.4f}" in told(page, "confidence")


def test_names_are_text(page):
    assert page.locator("text=<script>alert(1)</script>").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (1920, 1080)])
def test_nothing_sticks_out(page, scheme, size):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(map(int, re.findall(r"\d+", ground)[:3])) > 380
    assert bright == (scheme == "light")


def test_print_is_light_and_without_controls(page, tmp_path):
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator(".told").first.is_visible()
    assert page.locator(".line.main").first.is_visible()
    assert len(page.pdf(format="A4")) > 20_000


def test_curves_are_there_without_scripts(browser, evaluated):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((evaluated / "report.html").as_uri())
    assert opened.locator("#curves .line.main").is_visible()
    assert not opened.locator(".told").first.is_visible()
    context.close()
