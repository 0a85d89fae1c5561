"""The built page, and pages that are watched."""

import importlib.util
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.pages import AXE, NOTHING, ROOT, SIZES, Watch


def pytest_collection_modifyitems(items):
    """Give tests in a browser a second try, which is told: two programs and a server share two busy cores."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def building():
    """The script that builds the page."""
    spec = importlib.util.spec_from_file_location("hatch_web", ROOT / "tools/hatch_web.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def static(building):
    """The folder of the page, built if it is older than its sources."""
    from segtrust.review.server import page_files

    building.build(ROOT)
    return page_files()


@pytest.fixture(scope="session")
def axe(building):
    """See that axe-core is there: a page that was built elsewhere has not brought it along."""
    if not AXE.is_file():
        subprocess.run([building.find_npm(), "ci", "--no-audit", "--no-fund"], cwd=ROOT / "web", check=True)
    return AXE


@pytest.fixture
def at_once(monkeypatch):
    """Look at the files of a run whenever the page asks."""
    from segtrust.review import run as run_module

    monkeypatch.setattr(run_module, "_BREATH_S", 0.0)
    monkeypatch.setattr(run_module, "_PATIENCE", 0.0)


@pytest.fixture
def visit(browser):
    """Open pages of desks, each in a browser of its own; at the end none of them has complained."""
    watches, contexts = [], []

    def visiting(client, place="", *, size=SIZES[0], expected=NOTHING, **how):
        base = str(client.base_url)
        contexts.append(browser.new_context(viewport={"width": size[0], "height": size[1]}, **how))
        page = contexts[-1].new_page()
        page.set_default_timeout(30_000)
        watches.append(Watch(page, base, expected))
        if place is not None:
            page.goto(f"{base}{place}")
        return page

    yield visiting
    for context in contexts:
        context.close()
    for watch in watches:
        watch.check()


@pytest.fixture
def reviewing(tmp_path, static, visit):
    """Sit down at a desk of so many cases, all of different confidence: give a page and a client."""
    from tests.browser.verdicts import begin
    from tests.review import desks

    @contextmanager
    def sitting(count):
        desks.write_scores(tmp_path / "scores.csv", count, ties=False)
        with desks.desk_on(tmp_path, static=static) as (_, client):
            page = begin(visit, client)
            yield page, client
            page.context.close()  # before the desk: a page whose desk is gone complains

    return sitting
