"""A test that lacks something is skipped and listed, or fails where everything is required."""

from pathlib import Path

import pytest

pytest_plugins = "pytester"

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.fixture
def run(pytester, monkeypatch):
    """Run one test with the given needs under the project's conftest."""
    monkeypatch.delenv("SEGTRUST_REQUIRE_ALL", raising=False)
    monkeypatch.delenv("SEGTRUST_TEST_DATA", raising=False)
    monkeypatch.delenv("SEGTRUST_NNUNET_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(pytester.path))
    pytester.makeconftest(CONFTEST.read_text().replace("/usr/lib/postgresql", str(pytester.path)))
    pytester.makeini("[pytest]\nmarkers = needs")

    def run_one(*needs, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        pytester.makepyfile(f"import pytest\n@pytest.mark.needs(*{needs!r})\ndef test_it(): pass")
        return pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")

    return run_one


def make_executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


@pytest.mark.parametrize("need", ["chromium", "node", "compiler", "postgres", "nnunet", "no_such_module"])
def test_absent_is_skipped_and_listed(run, need):
    result = run(need)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*= skipped =*", f"for lack of {need}:", "    test_*.py::test_it"])


@pytest.mark.parametrize("need", ["chromium", "node", "compiler", "postgres", "nnunet", "no_such_module"])
def test_absent_fails_where_all_is_required(run, need):
    result = run(need, SEGTRUST_REQUIRE_ALL=1)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*SEGTRUST_REQUIRE_ALL=1, but absent: {need}*"])


@pytest.mark.parametrize("command", ["chromium-browser", "node", "gcc", "15/bin/postgres"])
def test_present_tool_runs(run, pytester, command):
    make_executable(pytester.path / command)
    need = {"chromium-browser": "chromium", "node": "node", "gcc": "compiler"}.get(command, "postgres")
    run(need, SEGTRUST_REQUIRE_ALL=1).assert_outcomes(passed=1)


def test_nnunet_is_the_interpreter_that_is_named(run, pytester):
    run("nnunet", SEGTRUST_NNUNET_PYTHON=pytester.path / "python").assert_outcomes(skipped=1)
    make_executable(pytester.path / "python")
    run("nnunet", SEGTRUST_NNUNET_PYTHON=pytester.path / "python").assert_outcomes(passed=1)


def test_present_module_runs(run):
    run("numpy").assert_outcomes(passed=1)


def test_data_is_looked_up_below_its_folder(run, pytester):
    run("data:polyp").assert_outcomes(skipped=1)
    run("data:polyp", SEGTRUST_REQUIRE_ALL=1).assert_outcomes(skipped=1)
    pytester.mkdir("polyp")
    run("data:polyp", SEGTRUST_TEST_DATA=pytester.path).assert_outcomes(passed=1)


def test_every_absent_need_is_named(run):
    result = run("node", "numpy", "data:polyp")
    result.stdout.fnmatch_lines(["for lack of node, data:polyp:"])


def test_thorough_profile_searches_longer(pytester, monkeypatch):
    monkeypatch.setenv("SEGTRUST_HYPOTHESIS", "thorough")
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(
        """
        from hypothesis import settings
        def test_it(): assert settings().max_examples > 1000
        """
    )
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1)


def test_no_test_escapes_where_all_is_required():
    others = (path for path in CONFTEST.parent.rglob("test_*.py") if path.name != Path(__file__).name)
    assert not [path.name for path in others if "importorskip" in path.read_text()]
