"""The package of the how-to: installed by pip, used by the command line, tested by its own tests."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from segtrust.io import read_table
from tests.engine.files import write_maps

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tests/fixtures/plug_in"
PAGE = ROOT / "docs/how-to/write-a-plug-in.md"
pytestmark = [pytest.mark.slow, pytest.mark.needs("pip", "setuptools")]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The folder that pip has installed it into, from a copy: setuptools leaves files in the source."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for path in PACKAGE.iterdir():
        if path.is_file():
            (source / path.name).write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--disable-pip-version-check", "--no-index", "--target", str(folder / "site"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(target, *arguments, cwd=None):
    path = os.pathsep.join([str(target), str(ROOT / "src")])
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_the_command_line_knows_it(target, tmp_path):
    listed = run(target, "-m", "segtrust", "plugins", "--json")
    assert listed.returncode == 0, listed.stdout + listed.stderr
    (found,) = json.loads(listed.stdout)["plugins"]
    assert (found["name"], found["package"], found["version"]) == (
        "mean-foreground",
        "segtrust-mean-foreground",
        "0.1.0",
    )
    made = write_maps(tmp_path / "maps", 3)
    command = ("-m", "segtrust", "score", tmp_path / "maps", "-o", tmp_path / "a.csv", "--workers", "2")
    done = run(target, *command, "--estimators", "sdc,mean-foreground")
    assert done.returncode == 0, done.stderr
    for row, case in zip(read_table(tmp_path / "a.csv").rows, made, strict=True):
        p = case.prediction.probabilities
        assert row["mean-foreground"] == pytest.approx(p[p >= 0.5].mean())


def test_its_own_tests_pass(target, tmp_path):
    done = run(
        target, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE / "test_contract.py", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)


def test_without_the_package_the_name_is_unknown(tmp_path):
    write_maps(tmp_path / "maps", 1)
    command = ("-m", "segtrust", "score", tmp_path / "maps", "-o", tmp_path / "a.csv")
    done = run(tmp_path, *command, "--estimators", "mean-foreground")
    assert done.returncode == 2
    assert "Unknown estimator 'mean-foreground'" in done.stderr


@pytest.mark.parametrize("name", ["pyproject.toml", "segtrust_mean_foreground.py", "test_contract.py"])
def test_the_page_shows_the_package_as_it_is(name):
    assert (PACKAGE / name).read_text().strip() in PAGE.read_text()


def test_it_takes_thirty_lines():
    lines = (PACKAGE / "segtrust_mean_foreground.py").read_text().splitlines()
    assert len(lines) <= 30
