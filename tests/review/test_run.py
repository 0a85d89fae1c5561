"""Runs are found, finished or not, and read again when they have changed."""

import os
import time
from pathlib import Path

import pytest

from segtrust.engine import Outcome, find_table, log_beside
from segtrust.engine.run_log import RunLog
from segtrust.errors import ParameterError, PolicyError, WrongContentError
from segtrust.io import Failure, Table, write_table
from segtrust.review import run as run_module
from segtrust.review.desk import Opening, open_desk
from segtrust.review.run import Run
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
    with RunLog(log_beside(table), {"estimators": {"sdc": {}}}) as log:
        run = Run(find_table(tmp_path))
        assert (run.now().rows.size, run.now().finished) == (0, False)
        log.add(Outcome("b", (row("b"),)), "1")
        log.add(Outcome("x", failure=Failure("x", "x.npy", "ReadError", "damaged")), "2")
        log.sync()
        grown = run.now()
        assert [key[1] for key in grown.rows.keys] == ["b"]
        assert [each.case for each in grown.failures] == ["x"]
        assert grown.rows.table.about["folder"] == str(Path.cwd())
        log.add(Outcome("a", (row("a"),)), "3")
        log.add(Outcome("\udcff", failure=Failure("\udcff", "", "ReadError", "\udcff")), "4")
        log.sync()
        assert run.now().failures[1].case == "\\xff"
        assert run.now().rows.numbers.tolist() == [0, 1]
        write_table(table, Table.of([row("a", 0.7), row("b"), row("c")]))
        log.finish()
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
        assert [str(each.status) for each in desk.policies.values()] == [standing]
        desk.store.close()


def test_a_killed_run_is_told_from_one_that_goes_on(tmp_path):
    table = tmp_path / "scores.csv"
    with RunLog(log_beside(table), {"estimators": {"sdc": {}}}) as log:
        log.add(Outcome("a", (row("a"),)), "1")
        run = Run(table)
        assert (run.now().finished, run.now().stopped) == (False, False)
    assert (run.now().finished, run.now().stopped) == (False, True)
    with RunLog(log_beside(table), {"estimators": {"sdc": {}}}):
        assert not run.now().stopped


def test_a_copy_whose_log_is_newer_is_finished_all_the_same(tmp_path):
    table = tmp_path / "scores.csv"
    with RunLog(log_beside(table), {"estimators": {"sdc": {}}}) as log:
        log.add(Outcome("a", (row("a"),)), "1")
    write_table(table, Table.of([row("a")]))
    later = time.time() + 60
    os.utime(log_beside(table), (later, later))
    run = Run(table)
    assert (run.now().finished, run.now().stopped) == (True, False)
    with RunLog(log_beside(table), {"estimators": {"sdc": {}}}) as log:
        log.add(Outcome("b", (row("b"),)), "2")
    os.utime(log_beside(table), (later + 1, later + 1))
    assert (run.now().finished, run.now().stopped, run.now().rows.size) == (False, True, 2)


def test_tables_of_one_folder_have_verdicts_of_their_own(tmp_path):
    for name in ("fold0.csv", "fold1.csv"):
        write_table(tmp_path / name, Table.of([row("a")]))
    with desks.desk_on(tmp_path / "fold0.csv") as (_, client):
        desks.said(client, 0)
    for name, count in (("fold0.csv", 1), ("fold1.csv", 0)):
        with desks.desk_on(tmp_path / name) as (_, client):
            assert len(client.get("/api/verdicts").json()) == count


def test_a_verdict_is_about_the_map_that_was_seen(tmp_path):
    table = tmp_path / "scores.csv"
    write_table(table, Table.of([row("a", checksum="crc32:1"), row("b", checksum="")]))
    with desks.desk_on(table) as (_, client):
        first = desks.said(client, 0)
        desks.said(client, 1)
    write_table(table, Table.of([row("a", 0.6, checksum="crc32:2"), row("b", checksum="crc32:3")]))
    with desks.desk_on(table) as (_, client):
        rows = {each["case"]: each["verdict"] for each in client.get("/api/cases").json()["rows"]}
        assert rows == {"a": None, "b": "accept"}  # what has no fingerprint may be the same
        assert client.get("/api/cases/0").json()["verdict"] is None
        assert [each["holds"] for each in client.get("/api/verdicts").json()] == [False, True]
        again = desks.said(client, 0, "reject")
        assert (first["digest"], again["digest"], again["confidence"]) == ("crc32:1", "crc32:2", 0.6)
        assert client.get("/api/cases/0").json()["verdict"] == "reject"


def standing_of(folder, policy, predictor=desks.PREDICTOR):
    with desks.desk_on(folder, policy=policy, predictor=predictor) as (_, client):
        (found,) = client.get("/api/run").json()["policies"].values()
        certified = client.get("/api/threshold", params={"value": found["threshold"]}).json()["certified"]
        assert certified["standing"] == found["standing"]
        return found["standing"], found["text"]


def test_a_policy_is_certified_only_for_masks_and_reading_of_its_own_kind(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    assert standing_of(tmp_path, policy)[0] == "certified"
    rows = [{**row, "mask": "delivered"} if at == 7 else row for at, row in enumerate(table.rows)]
    write_table(tmp_path / "scores.csv", Table.of(rows))
    standing, text = standing_of(tmp_path, policy)
    assert (standing, "masks of another kind" in text) == ("estimated", True)
    other = {"read": {**desks.READING["read"], "threshold": 0.3}}
    write_table(tmp_path / "scores.csv", Table.of(table.rows, other))
    with pytest.raises(PolicyError, match=r"read with threshold 0\.5, not 0\.3"):
        open_desk(Opening(tmp_path, policy))


def test_a_policy_stands_no_longer_once_cases_are_read_otherwise(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    with desks.desk_on(tmp_path, policy=policy, predictor=desks.PREDICTOR) as (_, client):
        for about in (
            {"read": {**desks.READING["read"], "threshold": 0.3}},
            {"estimators": {"sdc": {"empty": "agree"}}},
        ):
            write_table(tmp_path / "scores.csv", Table.of(table.rows, about))
            (found,) = client.get("/api/run").json()["policies"].values()
            assert (found["standing"], "made with" in found["text"]) == ("estimated", True)


def test_a_policy_stands_as_the_rows_are_by_now(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    with desks.desk_on(tmp_path, policy=policy, predictor=desks.PREDICTOR) as (_, client):
        assert client.get("/api/threshold?value=1").json()["certified"]["standing"] == "certified"
        more = {**table.rows[0], "case": "another", "mask": "delivered"}
        write_table(tmp_path / "scores.csv", Table.of([*table.rows, more]))
        assert client.get("/api/threshold?value=1").json()["certified"]["standing"] == "estimated"


def test_a_verdict_on_what_is_no_longer_there_is_refused(tmp_path):
    path = tmp_path / "scores.csv"
    write_table(
        path, Table.of([row("a", checksum="crc32:1"), row("a", structure="tumour", checksum="crc32:1")])
    )
    with desks.desk_on(path) as (_, client):
        seen = {"set": "", "case": "a", "structure": "organ", "digest": "crc32:1"}
        desks.said(client, 0, **seen)
        for name, value in (("structure", "tumour"), ("digest", "crc32:2"), ("set", "x"), ("case", "b")):
            body = {"number": 0, "verdict": "accept", "reviewer": "ann", **seen, name: value}
            answer = client.post("/api/verdicts", json=body)
            assert (answer.status_code, "Look at it again" in desks.detail(answer)) == (409, True)
        assert len(client.get("/api/verdicts").json()) == 1


def test_a_shared_database_knows_a_run_by_its_folder_whichever_way_it_is_opened(tmp_path):
    database = f"sqlite:///{tmp_path / 'all.sqlite'}"
    for name in ("a/scores.csv", "b/scores.csv", "a/fold0.csv"):
        write_table(tmp_path / name, Table.of([row("x")]))
    with desks.desk_on(tmp_path / "a/scores.csv", database=database) as (_, client):
        desks.said(client, 0)
    for name, count in (("a", 1), ("a/scores.csv", 1), ("b/scores.csv", 0), ("a/fold0.csv", 0)):
        with desks.desk_on(tmp_path / name, database=database) as (_, client):
            assert len(client.get("/api/verdicts").json()) == count
