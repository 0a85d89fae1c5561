"""The audit of accepted cases in the monitoring answer."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import segtrust as st
from segtrust.io import Table, write_table
from segtrust.review.audit import audit_accepted
from segtrust.review.run import Run
from segtrust.selective import Target
from tests.review import desks

KNOWN, ALL = 400, 900
FAILURES = Target(0.2, below_dice=0.5)


def desk_for(folder, *targets, truth=True):
    """A desk with a policy on the first rows of its table; the others have ground truth or not."""
    table = desks.write_scores(folder / "scores.csv", ALL, seed=3)
    policy = desks.write_policy(folder / "policy.json", table, rows=KNOWN, targets=targets)
    if not truth:
        rows = [{**row, "dice": row["dice"] if at < KNOWN else None} for at, row in enumerate(table.rows)]
        write_table(folder / "scores.csv", Table.of(rows))
    return desks.desk_on(folder, policy=policy, predictor=desks.PREDICTOR)


def audit_in(client):
    answer = client.get("/api/monitoring")
    assert answer.status_code == 200, answer.text
    return answer.json()["audit"]


def drawn_of(desk):
    """Numbers of the audit cases in the order of their draw, by the documented rule."""
    (policy,) = desk.policies.values()
    rows = desk.run.now().rows
    accepted = {
        json.dumps(rows.keys[at]): int(rows.numbers[at])
        for at in range(KNOWN, ALL)
        if rows.confidence[at] >= policy.threshold
    }
    return [accepted[name] for name in st.draw_audit(list(accepted), share=0.1, seed=policy.fingerprint)]


def test_verdicts_are_counted_in_the_order_of_the_draw(tmp_path):
    with desk_for(tmp_path, FAILURES) as (desk, client):
        (policy,) = desk.policies.values()
        drawn = drawn_of(desk)
        assert 20 < len(drawn) < 80
        found = audit_in(client)
        assert (found["judged"], found["total"], found["next"]) == (0, len(drawn), drawn[0])
        assert (found["seed"], found["share"], found["by_verdict"]) == (policy.fingerprint, 0.1, True)
        assert found["text"] == "No accepted case has been audited yet."
        assert (found["lower"], found["upper"], found["alarm"], found["confirmed"]) == (
            0.0,
            1.0,
            False,
            False,
        )

        others = [number for number in range(ALL) if number not in drawn]
        desks.said(client, others[-1], "reject")
        assert audit_in(client) == found  # not an audit case

        for at in (1, 2, 5):
            desks.said(client, drawn[at])
        found = audit_in(client)
        assert (found["judged"], found["counted"], found["next"]) == (3, 0, drawn[0])
        entry = desks.said(client, drawn[0], "correct")
        found = audit_in(client)
        assert (found["judged"], found["counted"], found["next"]) == (4, 3, drawn[3])
        audit = st.AuditBound(FAILURES, delta=policy.delta)
        audit.extend([1, 0, 0])
        assert (found["text"], found["upper"], found["lower"]) == (audit.explain(), audit.upper, audit.lower)

        client.post(f"/api/verdicts/{entry['id']}/undo", json={"reviewer": "ann"})
        assert audit_in(client)["counted"] == 0


def test_a_broken_guarantee_is_an_alarm(tmp_path):
    with desk_for(tmp_path, FAILURES) as (desk, client):
        for number in drawn_of(desk):
            desks.said(client, number, "reject")
        found = audit_in(client)
    assert found["alarm"]
    assert found["next"] is None
    assert found["counted"] == found["judged"] == found["total"]
    assert found["text"].endswith("The guarantee (at most 20 %) is broken.")


def test_a_mean_loss_is_audited_by_the_losses_of_the_table(tmp_path):
    with desk_for(tmp_path) as (desk, client):  # the mean loss is at most 0.35
        found, rows = audit_in(client), desk.run.now().rows
        losses = [1 - rows.row(rows.places[number])["dice"] for number in drawn_of(desk)]
        audit = st.AuditBound(0.35)
        audit.extend(losses)
    assert not found["by_verdict"]
    assert found["counted"] == found["total"] == len(losses)
    assert found["text"] == audit.explain()


def test_a_mean_loss_without_ground_truth_gets_the_failure_rate_alone(tmp_path):
    with desk_for(tmp_path, truth=False) as (desk, client):
        drawn = drawn_of(desk)
        for number in drawn[:5]:
            desks.said(client, number)
        found = audit_in(client)
    assert found["by_verdict"]
    assert found["text"].startswith("Audit of 5 accepted cases: failure rate at most ")
    assert "guarantee" not in found["text"]


def test_without_a_policy_there_is_no_audit(tmp_path):
    desks.write_scores(tmp_path / "scores.csv", 30)
    with desks.desk_on(tmp_path) as (_, client):
        assert audit_in(client) is None
        assert client.get("/api/monitoring?structure=none").status_code == 404


@pytest.mark.parametrize(("places", "finished"), [([], True), (range(50), False)])
def test_nothing_drawn_and_an_unfinished_run(tmp_path, places, finished):
    desks.write_scores(tmp_path / "scores.csv", 50)
    rows = Run(tmp_path / "scores.csv").now().rows
    policy = SimpleNamespace(fingerprint="2f7a", targets=(FAILURES,), delta=0.05)
    found = audit_accepted(
        rows,
        np.array(list(places), int),
        np.full(50, "accept", object),
        np.full(50, "accept", object),
        policy,
        finished=finished,
        share=0.5,
    )
    assert (found.counted, found.upper) == (0, 1.0)
    assert found.text == (
        "No accepted case has been drawn for the audit."
        if finished
        else "The audit starts when all cases of the run are scored."
    )
