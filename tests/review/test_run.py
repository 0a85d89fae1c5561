"""Runs are found, finished or not, and read again when they have changed."""

import time
from pathlib import Path

import pytest

from segtrust.engine.journal import Journal
from segtrust.engine.outcomes import Failure, Outcome
from segtrust.errors import ParameterError, PolicyError, WrongContentError
from segtrust.io.tables import Table, write_table
from segtrust.review import run as run_module
from segtrust.review.desk import Opening, open_desk
from segtrust.review.run import Run, find_table, journal_of
from tests.review import desks


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Look at the files whenever somebody asks."""
    monkeypatch.setattr(run_module, "_BREATH_S", 0.0)
    monkeypatch.setattr(run_module, "_PATIENCE", 0.0)


def row(name, confidence=0.5, **more):
    return {"case": name, "structure": "organ", "set": "", "sdc": confidence, "k": 1, "file": "", **more}


@pytest.mark.parametrize(
    "name",
    [pytest.param("scores.parquet", marks=pytest.mark.needs("pyarrow")), "scores.csv", "scores.json"],
)
def test_tables_of_folders_and_by_name(tmp_path, name):
    write_table(tmp_path / name, Table.of([row("a")]))
    assert find_table(tmp_path) == find_table(tmp_path / name) == tmp_path / name
    found = Run(tmp_path / name).now()
    assert (found.rows.size, found.finished) == (1, True)


@pytest.mark.parametrize("name", ["", "scores.txt", "absent.csv"])
def test_what_is_no_run(tmp_path, name):
    with pytest.raises(ParameterError, match="expected a"):
        find_table(tmp_path / name)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"name": "a"}], "expected a column 'case'"),
        ([{"case": "a", "structure": "organ", "k": 1}], "expected a column of confidences"),
        ([row("a"), row("a")], "expected one row for each case"),
    ],
)
def test_tables_that_cannot_be_reviewed(tmp_path, rows, message):
    write_table(tmp_path / "scores.csv", Table.of(rows))
    with pytest.raises(WrongContentError, match=message):
        Run(tmp_path / "scores.csv").now()


def test_a_running_table_grows_and_rows_keep_their_numbers(tmp_path):
    table = tmp_path / "scores.csv"
    with Journal(journal_of(table), {"estimators": {"sdc": {}}}) as journal:
        run = Run(find_table(tmp_path))
        assert (run.now().rows.size, run.now().finished) == (0, False)
        journal.add(Outcome("b", (row("b"),)), "1")
        journal.add(Outcome("x", failure=Failure("x", "x.npy", "ReadError", "damaged")), "2")
        grown = run.now()
        assert [key[1] for key in grown.rows.keys] == ["b"]
        assert [each.case for each in grown.failures] == ["x"]
        assert grown.rows.table.about["folder"] == str(Path.cwd())
        journal.add(Outcome("a", (row("a"),)), "3")
        journal.add(Outcome("\udcff", failure=Failure("\udcff", "", "ReadError", "\udcff")), "4")
        assert run.now().failures[1].case == "\\xff"
        assert run.now().rows.numbers.tolist() == [0, 1]
    time.sleep(0.01)
    write_table(table, Table.of([row("a", 0.7), row("b"), row("c")]))
    whole = run.now()
    assert whole.finished
    assert {key[1]: number for key, number in zip(whole.rows.keys, whole.rows.numbers, strict=True)} == {
        "a": 1,
        "b": 0,
        "c": 2,
    }
    assert whole.version > grown.version
    assert whole.rows.confidence[0] == 0.7


def test_a_table_that_is_damaged_for_a_moment_stays_as_it_was(tmp_path):
    path = tmp_path / "scores.csv"
    write_table(path, Table.of([row("a")]))
    run = Run(path)
    assert run.now().rows.size == 1
    path.write_text("case,structure\na,b,c,d,e\n")
    assert run.now().rows.size == 1
    write_table(path, Table.of([row("a"), row("b")]))
    assert run.now().rows.size == 2


def test_a_policy_of_other_confidences_is_refused(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    write_table(tmp_path / "scores.csv", Table.of(table.rows, {"estimators": {"sdc": {"empty": "agree"}}}))
    with pytest.raises(PolicyError, match="this policy was made with"):
        open_desk(Opening(tmp_path, policy))


def test_a_policy_stands_for_its_own_predictor(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    for predictor, standing in ((desks.PREDICTOR, "certified"), ("", "estimated")):
        desk = open_desk(Opening(tmp_path, policy, predictor))
        assert [str(each.standing) for each in desk.policies.values()] == [standing]
        desk.store.close()
