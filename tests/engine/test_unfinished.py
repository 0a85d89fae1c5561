"""Tables whose scoring goes on, was stopped, or is done."""

import os

import pytest

from segtrust.confidence import get_estimators
from segtrust.engine.locks import take
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, journal_beside, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.engine.unfinished import unfinished_run
from segtrust.io.case_files import Dataset
from segtrust.io.datasets import find_cases
from segtrust.io.tables import about_beside, read_table
from tests.engine.files import write_maps


@pytest.fixture
def scores(tmp_path):
    write_maps(tmp_path / "maps", 4)
    out = tmp_path / "scores.csv"
    score_cases(find_cases([tmp_path / "maps"]), job(), ScoreRun(out, Engine()))
    return out


def job():
    return ScoreJob(tuple(get_estimators(["sdc"])))


def make_newer(path, than):
    time = than.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(time, time))


def test_a_table_that_is_written_is_whole(scores):
    assert unfinished_run(scores) is None
    journal_beside(scores).unlink()
    assert unfinished_run(scores) is None
    assert unfinished_run(scores.with_name("none.csv")) is None


def test_without_a_table_the_diary_knows(scores):
    rows = read_table(scores).rows
    scores.unlink()
    found = unfinished_run(scores).table
    assert [row["sdc"] for row in found.rows] == [row["sdc"] for row in rows]
    assert found.source == str(scores)
    assert found.about["folder"]


def test_a_newer_diary_with_other_cases_is_of_a_run_that_goes_on(scores, tmp_path):
    cases = find_cases([tmp_path / "maps"]).cases
    time = scores.stat().st_mtime_ns
    before = {path: path.read_bytes() for path in (scores, about_beside(scores))}
    score_cases(Dataset(cases[:2]), job(), ScoreRun(scores, Engine(), resume=False))
    for path, content in before.items():
        path.write_bytes(content)
    os.utime(scores, ns=(time, time))
    assert len(unfinished_run(scores).table.rows) == 2


def test_a_newer_diary_with_the_same_cases_is_of_a_run_only_while_somebody_writes_to_it(scores):
    journal = journal_beside(scores)
    make_newer(journal, scores)
    assert unfinished_run(scores) is None
    with journal.open("ab") as file:
        assert take(file)
        assert len(unfinished_run(scores).table.rows) == 4
    assert unfinished_run(scores) is None
