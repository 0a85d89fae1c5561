"""Mutants of a tiny package: what its tests notice, what they do not, and what is never run."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("cosmic_ray"):  # elsewhere the mark skips every test
    from tools.reliability import forked_tests
    from tools.reliability.forked_tests import in_fork
    from tools.reliability.mutating import changed_lines

ROOT = Path(__file__).parents[2]
SOURCE = """
from __future__ import annotations


def middle(low: float | None, high: float) -> float:
    return (low + high) / 2


def untested(n: int) -> int:
    return n + 1
"""
TESTS = """
from segtrust.kernels.tiny import middle


def test_middle():
    assert middle(3.0, 4.0) == 3.5
    assert middle(-8.5, 0.25) == -4.125
"""
SHARPER = """

def test_untested():
    from segtrust.kernels.tiny import untested

    assert [untested(n) for n in range(3)] == [1, 2, 3]
"""
PROJECT = """
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--import-mode=importlib"]
"""

pytestmark = [
    pytest.mark.needs("cosmic_ray", "coverage"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process for each mutant"),
]


@pytest.fixture
def tiny(tmp_path):
    root = tmp_path / "tiny"
    source, tests = root / "src/segtrust/kernels", root / "tests/kernels"
    source.mkdir(parents=True)
    tests.mkdir(parents=True)
    (root / "pyproject.toml").write_text(PROJECT)
    (source / "__init__.py").touch()
    (source.parent / "__init__.py").touch()
    (source / "tiny.py").write_text(SOURCE.lstrip())
    (tests / "test_tiny.py").write_text(TESTS.lstrip())
    return root


def mutate(root, *options):
    """Run the command on all mutants of the tiny package; what it prints, and the survivors."""
    out = root.parent / "out"
    given = map(str, ("--out", out, "--root", root, *options, "--import"))
    command = [sys.executable, "-m", "tools.reliability.mutating", "kernels", *given]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((out / "kernels.json").read_text())


def spin():
    while True:
        pass


@pytest.mark.filterwarnings("ignore:os.fork")  # of JAX, if an earlier test has loaded it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_gives_what_it_found_and_one_that_runs_away_nothing(tmp_path):
    assert in_fork(lambda: ["found"], tmp_path / "answer", seconds=5.0) == ["found"]
    assert in_fork(lambda: 1 / 0, tmp_path / "answer", seconds=5.0) is None
    assert in_fork(spin, tmp_path / "answer", seconds=0.1) is None


def test_a_slow_test_is_stopped_but_not_while_coverage_holds_its_lock():
    within = {"__name__": "coverage.collector", "sys": sys}
    exec("def frame(): return sys._getframe()", within)
    before = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    try:
        forked_tests._stop(signal.SIGPROF, within["frame"]())
        assert signal.setitimer(signal.ITIMER_PROF, 0.0)[1] == 1.0
    finally:
        signal.signal(signal.SIGPROF, before)
    with pytest.raises(forked_tests.TooSlow):
        forked_tests._stop(signal.SIGPROF, sys._getframe())


def test_changed_lines_are_told_with_the_signs_of_a_diff():
    assert changed_lines("a\nb\nb\nc", "a\nb\nd\nb\nc") == "+d"
    assert changed_lines("a\nb\nc", "a\nx\nc") == "-b\n+x"


@pytest.mark.slow
def test_what_tests_notice_is_killed_and_the_rest_is_told(tiny):
    told, survivors = mutate(tiny)
    assert {row["in"] for row in survivors} == {"untested"}
    assert "'annotation': 11" in told
    assert "\n-    return n + 1\n+    return n - 1\n" in (tiny.parent / "out/kernels.md").read_text()
    assert (tiny / "src/segtrust/kernels/tiny.py").read_text() == SOURCE.lstrip(), "the source itself stays"

    with (tiny / "tests/kernels/test_tiny.py").open("a") as file:
        file.write(SHARPER)
    again, left = mutate(tiny, "--survivors")
    assert f"/{len(survivors)} (" in again, "those that were killed are not run again"
    assert left == []
