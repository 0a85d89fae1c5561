"""A cluster without workers is told after a while, and again."""

import pytest

from segtrust.engine import absence
from segtrust.engine.absence import Absence


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(absence.time, "monotonic", lambda: now[0])
    return now


def told_at(clock, caplog, looks):
    """Seconds at which something is told."""
    found, watched = [], Absence("tcp://node:8786")
    for second, workers in looks:
        clock[0] = 1000.0 + second
        caplog.clear()
        watched.look(workers)
        found += [second] * len(caplog.records)
    return found


def test_it_is_told_after_half_a_minute_and_then_each_minute(clock, caplog):
    assert told_at(clock, caplog, [(second, 0) for second in range(200)]) == [30, 90, 150]
    assert told_at(clock, caplog, [(second, 1) for second in range(200)]) == []


def test_workers_that_come_and_go_are_waited_for_anew(clock, caplog):
    looks = [(second, int(second == 20)) for second in range(60)]
    assert told_at(clock, caplog, looks) == [51]


def test_it_says_where_and_what_to_do(clock, caplog):
    told_at(clock, caplog, [(0, 0), (31, 0)])
    assert "the scheduler tcp://node:8786 has had no worker for 31 s" in caplog.text
    assert "dask worker tcp://node:8786" in caplog.text
