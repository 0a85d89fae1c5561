"""``segtrust report``: where the page goes, and what is said of it."""

import json
import shutil
import sqlite3

import pytest

from segtrust.engine import log_beside
from segtrust.io import Table, about_path, read_table, write_table
from tests.commands import segtrust, segtrust_process
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
    assert f"Report: {out / 'report.html'} " in told
    assert (out / "report.html").read_text().startswith("<!DOCTYPE html>")
    parameters = json.loads((out / "run.json").read_text())["parameters"]
    assert parameters["resamples"] == 100
    assert parameters["arguments"][0] == "evaluate"


def test_the_page_is_written_where_it_is_wanted(evaluated, tmp_path):
    page = tmp_path / "pages/mine.html"
    done = segtrust_process("report", evaluated[0] / "scores.parquet", "-o", page)
    assert done.returncode == 0, done.stderr
    assert str(page) in done.stdout
    assert page.stat().st_size > 10_000
    assert drawn(tmp_path / "pages/mine_figures") == ["confidence_dice", "risk_band"]


def drawn(folder):
    """Names of the figures in a folder, of which each has all formats."""
    found = sorted(path.name for path in folder.iterdir() if path.stat().st_size)
    names = sorted({name.partition(".")[0] for name in found})
    assert found == sorted(f"{name}.{kind}" for name in names for kind in ("pdf", "png", "svg"))
    return names


def test_without_truths_the_figures_are_those_of_the_confidences(evaluated, tmp_path):
    table = read_table(evaluated[0] / "scores.parquet")
    known = ("case", "structure", "sdc", "k")
    rows = [{name: row[name] for name in known} for row in table.rows]
    write_table(tmp_path / "scores.csv", Table.of(rows))
    run("report", tmp_path / "scores.csv", "-o", tmp_path / "alone.html")
    assert drawn(tmp_path / "alone_figures") == ["confidences"]
    run("report", tmp_path)
    assert drawn(tmp_path / "figures") == ["confidences"]


def test_the_page_is_told_to_machines(evaluated):
    told = json.loads(run("report", evaluated[0], "--json").stdout)
    assert told == {"report": str(evaluated[0] / "report.html"), "finished": True}


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
    assert "a table of scores" in done.stderr


def test_a_page_that_cannot_be_written_is_one_line(evaluated, tmp_path):
    (tmp_path / "file").touch()
    for page, expected in (
        (tmp_path, "expected the name of a page"),
        (tmp_path / "file/a.html", "cannot write to this folder"),
    ):
        done = segtrust("report", evaluated[0], "-o", page)
        assert done.returncode == 2
        assert expected in done.stderr
        assert "Errno" not in done.stderr


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


def test_a_policy_or_a_page_is_no_table(evaluated, tmp_path):
    policy = tmp_path / "policy.json"
    run("evaluate", write_manifest(tmp_path / "data", "id", 60), "-o", tmp_path / "run", *QUICK)
    run("calibrate", tmp_path / "run/scores.parquet", "-o", policy, "--target-risk", 0.7)
    for path in (policy, evaluated[0] / "report.html"):
        done = segtrust("report", path)
        assert done.returncode == 2
        assert f"error: {path}: this is no table of scores (" in done.stderr
        assert "Give a folder of `segtrust evaluate`" in done.stderr
        assert "a policy is given by --policy" in done.stderr
    (tmp_path / "list.csv").write_text("case,file\na,a.npy\n")
    assert "Give a folder of" in segtrust("report", tmp_path / "list.csv").stderr


@pytest.fixture
def stopped(tmp_path):
    """A run that was stopped: its log knows five of eight cases, and there is no table."""
    scores = tmp_path / "scores.csv"
    run("score", write_manifest(tmp_path / "data", "id", 8), "-o", scores)
    with sqlite3.connect(log_beside(scores)) as connection:
        connection.execute("DELETE FROM cases WHERE number > 5")
        connection.execute("UPDATE run SET value = 'false' WHERE key = 'finished'")
    connection.close()
    return scores


@pytest.mark.parametrize("has_table", [True, False])
def test_a_run_that_is_not_finished_says_so(stopped, has_table):
    if not has_table:
        stopped.unlink()
    done = run("report", stopped)
    assert "The run is not finished: the report is of the 5 rows so far." in done.stderr
    page = stopped.with_name("report.html").read_text()
    assert "The run is not finished: this is of the 5 rows that it has so far." in page
    assert "scores.csv · not finished · report of" in page
    assert json.loads(run("report", stopped, "--json").stdout)["finished"] is False


def test_a_copy_that_lost_its_times_is_finished(tmp_path):
    run("score", write_manifest(tmp_path / "data", "id", 4), "-o", tmp_path / "scores.csv")
    (tmp_path / "copy").mkdir()
    scores = tmp_path / "scores.csv"
    for path in (scores, about_path(scores), log_beside(scores)):
        shutil.copyfile(path, tmp_path / "copy" / path.name)
    assert not run("report", tmp_path / "copy/scores.csv").stderr


def test_one_case_is_reported_though_it_cannot_be_ranked(tmp_path):
    manifest = write_manifest(tmp_path / "data", "id", 1)
    done = segtrust("evaluate", manifest, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 1
    assert "Not ranked: ID, foreground: expected at least 2 cases to rank, got 1." in done.stderr
    assert "\nReport: " in done.stdout
    page = (tmp_path / "run/report.html").read_text()
    assert "To rank cases takes two or more" in page
    assert "No truths are known" not in page
    told = json.loads(segtrust("evaluate", manifest, "-o", tmp_path / "run", *QUICK, "--json").stdout)
    assert told["unranked"] == ["ID, foreground: expected at least 2 cases to rank, got 1."]


def test_one_case_of_another_set_does_not_stop_the_first(tmp_path):
    manifest = write_manifest(tmp_path / "data", "id", 12)
    other = write_manifest(tmp_path / "data", "far", 1, seed=1)
    done = segtrust("evaluate", manifest, "--ood", f"far={other}", "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 1
    assert "Not ranked: far" in done.stderr
    assert "\nSDC " in done.stdout
    page = (tmp_path / "run/report.html").read_text()
    assert "Not ranked, so in no curve, area or table: far" in page
