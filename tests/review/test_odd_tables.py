"""Tables that have little to tell, or grow, are shown all the same."""

import math

import numpy as np
import pytest

from segtrust.engine import (
    Calibration,
    Outcome,
    calibrate_table,
    check_drift,
    load_policies,
    log_beside,
    make_policy,
)
from segtrust.engine.run_log import RunLog
from segtrust.io import Table, write_table
from segtrust.review import run as run_module
from segtrust.review.monitoring import Monitor
from segtrust.review.rows import Rows
from segtrust.review.thresholds import Numbers
from segtrust.selective import Target
from tests.review import desks

PATHS = (
    "run",
    "cases",
    "threshold?value=0.5",
    "curve",
    "budget?per_day=3",
    "monitoring",
    "verdicts",
    "export.csv",
)


def row(name, confidence, **more):
    return {"case": name, "structure": "organ", "sdc": confidence, "k": 1, "file": "", **more}


def numbers_of(confidence, loss=None, **more):
    size = len(confidence)
    loss = np.full(size, math.nan) if loss is None else np.array(loss, float)
    values = {"is_empty": np.zeros(size, bool), "agrees": False, "policy": None, **more}
    return Numbers(np.array(confidence, float), loss, **values)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row("a", 0.5)],
        [row("a", None), row("b", 0.5)],
        [row("a", None), row("b", None)],
        [row("a", 0.5, dice=0.2), row("b", 0.5, dice=None), row("c", 0.5, dice=0.9)],
        [row("a", 0.5, loss=7.0), row("b", 0.2, loss=0.0)],
        [row("a", 0.5, loss="bad"), row("b", 0.2, loss=0.0)],
        [row("a", 0.5, loss=0.0), row("b", 0.2, loss=0.0)],
        [row("a", 0.5, structure=name) for name in ("organ", "lesion")],
        [{"case": "a", "sdc": 0.5}, {"case": "b", "sdc": 0.7}],
    ],
)
def test_every_route_answers(tmp_path, rows):
    table = Table.of(rows) if rows else Table(("case", "structure", "sdc"), ())
    write_table(tmp_path / "scores.csv", table)
    with desks.desk_on(tmp_path) as (_, client):
        for path in PATHS:
            answer = client.get(f"/api/{path}")
            assert answer.status_code == 200, (path, answer.text)
        for number in range(len(rows)):
            assert client.get(f"/api/cases/{number}").json()["problem"]


def test_a_table_grows_under_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_BREATH_S", 0.0)
    monkeypatch.setattr(run_module, "_PATIENCE", 0.0)
    table = tmp_path / "scores.csv"
    begun = RunLog(log_beside(table), {"estimators": {"sdc": {}}})
    with begun as log, desks.desk_on(tmp_path) as (_, client):
        run = client.get("/api/run").json()
        assert (run["rows"], run["finished"]) == (0, False)
        for number, name in enumerate(("b", "a")):
            log.add(Outcome(name, (row(name, 0.5 - 0.1 * number),)), "stamp")
            log.sync()
            assert client.get("/api/run").json()["rows"] == number + 1
        desks.said(client, 0)
        assert [each["case"] for each in client.get("/api/cases").json()["rows"]] == ["a", "b"]
        write_table(table, Table.of([row("a", 0.4), row("b", 0.5)]))
        log.finish()
        log.sync()
        assert client.get("/api/run").json()["finished"]
        found = client.get("/api/cases/0").json()
        assert (found["case"], found["verdict"]) == ("b", "accept")


def test_empty_masks_that_agree_are_no_findings():
    found = numbers_of([0.9, 0.8, 0.1], is_empty=np.array([True, False, True]), agrees=True).at_threshold(
        0.5, 60
    )
    assert (found.accepted, found.no_finding, found.deferred, found.hours) == (1, 1, 1, 1.0)
    assert (found.risk, found.certified) == (None, None)


def test_empty_masks_are_never_accepted_where_they_cannot_be_right():
    numbers = numbers_of([0.9, 0.8, 0.1], is_empty=np.array([True, False, True]), agrees=False)
    found = numbers.at_threshold(0.05, 60)
    assert (found.accepted, found.no_finding, found.deferred) == (1, 0, 2)
    assert numbers.with_budget(2, 60).threshold == 0.8
    assert numbers.with_budget(2, 60).reviewed == 2


def test_cases_without_a_confidence_are_deferred_and_reviewed_first():
    numbers = numbers_of([0.9, math.nan, 0.1, 0.5], [0.0, 1.0, 1.0, 0.5])
    assert numbers.at_threshold(0.0, 1).deferred == 1
    assert numbers.with_budget(2, 1).threshold == 0.5
    assert numbers.with_budget(2, 1).reviewed == 2
    assert numbers.with_budget(4, 1).threshold is None


def test_losses_above_1_have_no_interval():
    found = numbers_of([0.9, 0.5], [3.0, 1.0]).at_threshold(0.2, 1)
    assert (found.risk, found.low, found.high) == (2.0, None, None)


def test_all_right_means_nothing_to_catch():
    assert numbers_of([0.9, 0.5], [0.0, 0.0]).with_budget(1, 1).caught is None


def test_a_watch_goes_on_and_begins_anew(tmp_path):
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    policies = load_policies(policy)
    monitor = Monitor(policies)

    def look(order):
        chosen = tuple(table.rows[place] for place in order)
        rows = Rows(Table(table.columns, chosen), "sdc", np.arange(len(chosen)))
        fresh = Monitor(policies).look(rows, None)
        found = monitor.look(rows, None)
        assert found == fresh
        return found

    assert look(range(400)).new == []
    assert len(look(range(450)).martingale.values) == 50
    assert len(look(range(500)).martingale.values) == 100
    look(range(499, -1, -1))


def test_alarms_of_several_structures_share_the_chance_of_a_false_one(tmp_path):
    rows = [{**row, "structure": name} for row in desks.rows_of(300) for name in ("liver", "spleen")]
    known = Table.of(rows, desks.READING)
    found = calibrate_table(known, Calibration("sdc", (Target(0.35),), predictor=desks.PREDICTOR, seed=0))
    make_policy(found, known).save(tmp_path / "policy.json")
    policies = load_policies(tmp_path / "policy.json")
    new = [{**row, "case": f"new {row['case']}", "sdc": row["sdc"] / 2} for row in rows]
    found = Monitor(policies).look(Rows(Table.of(new), "sdc", np.arange(len(new))), "liver")
    assert found.martingale.alarm_at == -np.log10(0.05 / 2)
    assert found.drift.text == check_drift(new, policies)["liver"].explain()


def test_limits_are_about_losses_of_their_own_kind(tmp_path):
    """A run judged by the Hamming loss, and a policy that does not name its loss: it is not checked."""
    table = desks.write_scores(tmp_path / "scores.csv", 500)
    policy = desks.write_policy(tmp_path / "policy.json", table)
    told = [{**row, "loss": 0.01} for row in table.rows]
    write_table(tmp_path / "scores.csv", Table.of(told, {**table.about, "loss": "hamming"}))
    with desks.desk_on(tmp_path / "scores.csv", policy=policy) as (_, client):
        assert client.get("/api/run").json()["loss"] == {
            "name": "hamming",
            "label": "Hamming loss",
            "unit": "",
        }
        found = client.get("/api/threshold?value=0.0").json()
        assert found["risk"] == pytest.approx(0.01)
        (limit,) = found["certified"]["limits"]
        assert limit["observed"] is None
