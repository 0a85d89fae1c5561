"""The release step: what is built is whole, installs into a clean environment, and runs there."""

import importlib.util
import json
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def checking():
    """The script that looks into what was built."""
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / "tools/check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_dist(folder, checking, *, without="", more=()):
    """Write a wheel and an sdist of empty files."""
    with zipfile.ZipFile(folder / "a-1-py3-none-any.whl", "w") as wheel:
        for name in {*checking.IN_WHEEL, *more} - {without}:
            wheel.writestr(name, "")
    with tarfile.open(folder / "a-1.tar.gz", "w:gz") as sdist:
        for name in {*checking.IN_SDIST} - {without}:
            sdist.addfile(tarfile.TarInfo(f"a-1/{name}"))


def test_what_is_whole_passes(tmp_path, checking):
    write_dist(tmp_path, checking)
    assert checking.check(tmp_path) == []


@pytest.mark.parametrize("name", ["segtrust/review/static/index.html", "LICENSE"])
def test_what_is_missing_is_named(tmp_path, checking, name):
    write_dist(tmp_path, checking, without=name)
    (problem,) = checking.check(tmp_path)
    assert f"{name} is missing" in problem


def test_what_has_no_place_there_is_named(tmp_path, checking):
    write_dist(tmp_path, checking, more=["segtrust/__pycache__/a.pyc"])
    (problem,) = checking.check(tmp_path)
    assert "a.pyc has no place there" in problem


def check_what_lies_beside(folder, told):
    """Bills of materials, what was audited, and checksums of all."""
    plain, extras = (json.loads(path.read_text()) for path in sorted(folder.glob("*.cdx.json"), key=by_size))
    names = {each["purl"].partition("@")[0] for each in plain["components"]}
    assert {"pkg:pypi/numpy", "pkg:npm/preact"} <= names
    assert {"pkg:pypi/simpleitk", "pkg:pypi/fastapi"} <= {
        each["purl"].partition("@")[0] for each in extras["components"]
    }
    audit = (folder / "AUDIT.txt").read_text()
    assert audit.startswith(("AUDITED: ", "NOT AUDITED: "))
    assert audit in told
    summed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert summed == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}


def by_size(path):
    return path.stat().st_size


@pytest.mark.slow
@pytest.mark.needs("node")
def test_make_dist_builds_checks_and_tries_the_wheel(record_property):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = ["make", "dist", "UNAUDITED=1"]
    done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2
    check_what_lies_beside(ROOT / "dist", done.stdout)
    assert "Done in" in done.stdout
    for line in done.stdout.splitlines():
        if line.startswith("Python ") or "Done in" in line:
            record_property("make dist", line)
