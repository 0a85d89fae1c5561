"""What a test may ask of the machine, and how thoroughly properties are searched.

A test says what it cannot do without::

    @pytest.mark.needs("node", "data:polyp")
    def test_page_shows_polyps(): ...

Where that is absent the test is skipped and listed at the end of the run. With ``SEGTRUST_REQUIRE_ALL=1`` an
absent tool or module is a failure; absent data never is. ``SEGTRUST_HYPOTHESIS=thorough`` searches longer.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
# The names under which a tool may be installed; all other needs are modules, or data. That of nnU-Net is the
# interpreter of its environment.
TOOLS = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "node": ("node", "nodejs"),
    "compiler": ("cc", "gcc", "clang"),
    "make": ("make",),
    "pdftotext": ("pdftotext",),
    "postgres": ("postgres",),
    "nnunet": (os.environ.get("SEGTRUST_NNUNET_PYTHON") or str(ROOT / ".venv-nnunet/bin/python"),),
}
UNLISTED_DIRECTORIES = "/usr/lib/postgresql/*/bin"  # where Debian keeps a database server
LACK = "for lack of "

COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", parent=COMMON, max_examples=60, derandomize=True)
settings.register_profile("thorough", parent=COMMON, max_examples=2000)
for _name in ("COLUMNS", "LINES"):  # readline, which pytest imports, sets them in the environment of children
    os.environ.pop(_name, None)
    os.unsetenv(_name)
settings.load_profile(os.environ.get("SEGTRUST_HYPOTHESIS", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Expect no warnings of single numbers where loops are not compiled: compiled ones give none either."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        config.addinivalue_line("filterwarnings", "ignore::RuntimeWarning")


def find_tool(name: str) -> str | None:
    """The path of a system tool, or None."""
    unlisted = sorted(map(str, Path("/").glob(UNLISTED_DIRECTORIES.lstrip("/"))), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *unlisted])
    return next(filter(None, (shutil.which(command, path=path) for command in TOOLS[name])), None)


def find_data(name: str) -> Path | None:
    """The folder of a public data set below ``$SEGTRUST_TEST_DATA``, or None."""
    root = os.environ.get("SEGTRUST_TEST_DATA")
    folder = Path(root, name) if root else None
    return folder if folder and folder.is_dir() else None


def is_present(need: str) -> bool:
    """Whether a tool, a data set or a module is at hand."""
    if need.startswith("data:"):
        return find_data(need.removeprefix("data:")) is not None
    return find_tool(need) is not None if need in TOOLS else find_spec(need) is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    needs = [need for marker in item.iter_markers("needs") for need in marker.args]
    absent = [need for need in needs if not is_present(need)]
    required = [need for need in absent if not need.startswith("data:")]
    if required and os.environ.get("SEGTRUST_REQUIRE_ALL") == "1":
        pytest.fail(f"SEGTRUST_REQUIRE_ALL=1, but absent: {', '.join(required)}", pytrace=False)
    if absent:
        pytest.skip(LACK + ", ".join(absent))


def skip_reasons(reports: list[pytest.TestReport]) -> Iterator[tuple[str, str]]:
    """Pairs of reason and test."""
    for report in reports:
        if isinstance(report.longrepr, tuple):
            yield report.longrepr[2].removeprefix("Skipped: "), report.nodeid


def tell_measured(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what tests have measured (``record_property``), also of those that passed."""
    passed = [(each.nodeid, each.user_properties) for each in terminalreporter.getreports("passed")]
    if any(measured for _, measured in passed):
        terminalreporter.section("measured")
    for test, measured in passed:
        for name, value in measured:
            terminalreporter.line(f"{name}: {value}    ({test})")


def tell_second_tries(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell which tests failed and were tried again, and how: such a failure is looked into, not forgotten."""
    failed = terminalreporter.getreports("rerun")
    if failed:
        terminalreporter.section("tried twice")
    for report in failed:
        terminalreporter.line(f"{report.nodeid} ({report.when}):")
        terminalreporter.line(report.longreprtext)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tell_measured(terminalreporter)
    tell_second_tries(terminalreporter)
    skipped = defaultdict(list)
    for reason, test in skip_reasons(terminalreporter.getreports("skipped")):
        skipped[reason].append(test)
    if skipped:
        terminalreporter.section("skipped")
    for reason, tests in sorted(skipped.items()):
        terminalreporter.line(f"{reason}:")
        for test in sorted(tests):
            terminalreporter.line(f"    {test}")


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """The path of a tool that the test has marked as needed: ``tool("postgres")``."""

    def path(name: str) -> str:
        found = find_tool(name)
        assert found, f"mark the test with @pytest.mark.needs({name!r})"
        return found

    return path


@pytest.fixture(scope="session")
def browser(tool: Callable[[str], str]) -> Iterator[object]:
    """One Chromium for all tests of a process, which may not have two."""
    from playwright.sync_api import sync_playwright

    from tests.browser.pages import ARGUMENTS

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=tool("chromium"), args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The folder of a data set that the test has marked as needed: ``data("polyp")``."""

    def folder(name: str) -> Path:
        found = find_data(name)
        assert found, f"mark the test with @pytest.mark.needs('data:{name}')"
        return found

    return folder
