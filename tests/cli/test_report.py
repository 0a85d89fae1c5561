"""``segtrust report``: where the page goes, and what is said of it."""

import json

import pytest

from tests.engine.files import segtrust
from tests.report.runs import QUICK, run, write_manifest

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A small evaluation, and what was said at its end."""
    folder = tmp_path_factory.mktemp("evaluated")
    manifest = write_manifest(folder / "data", "id", 8)
    return folder / "run", run("evaluate", manifest, "-o", folder / "run", *QUICK).stdout


def test_an_evaluation_ends_with_its_report(evaluated):
    out, told = evaluated
    assert f"To be read in a browser: {out / 'report.html'}" in told
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    parameters = json.loads((out / "run.json").read_text())["parameters"]
    assert parameters["resamples"] == 100
    assert parameters["arguments"][0] == "evaluate"


def test_the_page_is_written_where_it_is_wanted(evaluated, tmp_path):
    page = tmp_path / "pages/mine.html"
    done = run("report", evaluated[0] / "scores.parquet", "-o", page)
    assert str(page) in done.stdout
    assert page.stat().st_size > 10_000


def test_the_page_is_told_to_machines(evaluated):
    told = json.loads(run("report", evaluated[0], "--json").stdout)
    assert told == {"report": str(evaluated[0] / "report.html")}


def test_help_has_examples_and_exit_codes():
    told = run("report", "--help").stdout
    assert "segtrust report evaluation --policy policy.json" in told
    assert "Exit codes" in told


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_what_is_no_run_is_one_line(tmp_path, name):
    (tmp_path / "empty").mkdir()
    done = segtrust("report", tmp_path / name)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "expected a score table" in done.stderr


def test_a_policy_that_decides_by_another_confidence_is_refused(evaluated, tmp_path):
    scores = tmp_path / "scores.csv"
    manifest = write_manifest(tmp_path / "data", "id", 60)
    run("evaluate", manifest, "-o", tmp_path / "run", *QUICK, "--estimators", "ane")
    options = ("--estimator", "ane", "--target-risk", 0.7)
    run("calibrate", tmp_path / "run/scores.parquet", "-o", tmp_path / "policy.json", *options)
    run("score", manifest, "-o", scores, "--estimators", "sdc")
    done = segtrust("report", scores, "--policy", tmp_path / "policy.json")
    assert done.returncode == 2
    assert "expected the confidence that the policy decides by (ane)" in done.stderr
