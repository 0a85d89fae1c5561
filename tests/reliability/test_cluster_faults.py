"""A cluster whose workers die: the table is that of one whose workers live, and another would be seen."""

from pathlib import Path

import pytest

from tools.reliability.cluster_faults import TRIALS, Found, Study, compare

HEADS = ["case", "sdc"]
ROWS = [["a", "0.5"], ["b", "0.25"], ["c", "0.125"]]


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (ROWS, (0, 0, 0)),
        ([*ROWS, ROWS[0]], (1, 0, 0)),
        (ROWS[:2], (0, 1, 0)),
        ([*ROWS[:2], ["c", "0.126"]], (0, 0, 1)),
        ([], (0, 3, 0)),
    ],
)
def test_what_is_not_as_it_was_is_counted(rows, counts):
    found = Found(cases=3)
    compare(found, {"scores.csv": [HEADS, *ROWS]}, {"scores.csv": [HEADS, *rows]})
    assert (found.doubled, found.missing, found.different) == counts
    assert found.is_well == (rows == ROWS)


def test_a_list_of_failures_is_a_fault():
    found = Found(cases=3)
    table = {"scores.csv": [HEADS, *ROWS]}
    compare(found, table, {**table, "failures.csv": [["case"], ["d"]]})
    assert found.faults == ["failures.csv is another"]
    assert not found.is_well


@pytest.mark.slow
@pytest.mark.needs("distributed")
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="stops and kills processes as Linux does")
def test_no_case_is_lost_or_doubled_when_workers_are_killed(tmp_path, record_property):
    trial = next(each for each in TRIALS if each.name == "workers killed one by one")
    found = Study(tmp_path / "faults", cases=60, workers=2, seed=1).try_out(trial)
    record_property("faults", found.row(trial.name))
    assert found.is_well, found.row(trial.name)
    assert found.kills >= 1
