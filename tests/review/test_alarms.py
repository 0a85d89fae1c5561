"""Alarms name the sets that drift, and only those; they are found once for each state of the table."""

import pytest

from segtrust.io import Table, write_table
from tests.review import desks

KNOWN, ALL = 400, 700


def desk_with(folder, shift, *, one_set=False, with_policy=True):
    """A desk whose new cases of the set `other` are less confident by so much."""
    rows = desks.rows_of(ALL, seed=2)
    for row in rows[KNOWN:]:
        row["sdc"] = max(row["sdc"] - shift * (row["set"] == "other"), 0.0)
    rows = [{**row, "set": "ID"} for row in rows] if one_set else rows
    table = Table.of(rows, desks.READING)
    write_table(folder / "scores.csv", table)
    how = {"policy": desks.write_policy(folder / "policy.json", table, risk=0.22)} if with_policy else {}
    return desks.desk_on(folder, predictor=desks.PREDICTOR, **how)


@pytest.mark.parametrize(
    ("shift", "one_set", "expected"),
    [
        (0.0, False, []),
        (0.5, False, [{"structure": "foreground", "sets": ["other"]}]),
        (0.5, True, [{"structure": "foreground", "sets": []}]),
    ],
)
def test_an_alarm_names_the_set_that_it_is_about(tmp_path, shift, one_set, expected):
    with desk_with(tmp_path, shift, one_set=one_set) as (desk, client):
        assert client.get("/api/alarms").json() == expected
        assert desk.monitoring(None).alarm is bool(expected)
        assert desk.alarms() is desk.alarms()


def test_without_a_policy_there_is_no_alarm(tmp_path):
    with desk_with(tmp_path, 0.5, with_policy=False) as (_, client):
        assert client.get("/api/alarms").json() == []
