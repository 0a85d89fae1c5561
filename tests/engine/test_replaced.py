"""A table that is replaced: no case leaves it in silence, and one of another version is left alone."""

import json
import shutil

import pytest

from segtrust.confidence import SoftDice
from segtrust.engine.replaced import cases_in
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import SavedStateError
from segtrust.io import find_cases
from tests.engine.files import write_maps


@pytest.fixture
def maps(tmp_path):
    write_maps(tmp_path / "maps", 4)
    return tmp_path / "maps"


def run(folder, out):
    return score_cases(find_cases([folder]), ScoreJob((SoftDice(),)), ScoreRun(out, Engine()))


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
def test_cases_that_are_no_longer_given_are_told(maps, tmp_path, ending):
    out = tmp_path / f"scores.{ending}"
    assert run(maps, out).warnings == ()
    for number in (1, 3):
        next(maps.glob(f"case_{number:03d}*")).unlink()
    (told,) = run(maps, out).warnings
    assert told.startswith(f"{out}: it had cases before")
    assert told.endswith(": 2, as case_001.")
    assert cases_in(out) == {"case_000", "case_002"}
    assert run(maps, out).warnings == ()


def test_cases_that_fail_now_are_told_as_failed_alone(maps, tmp_path):
    run(maps, tmp_path / "scores.csv")
    next(maps.glob("case_001*")).write_bytes(b"nothing")
    scored = run(maps, tmp_path / "scores.csv")
    assert [failure.case for failure in scored.failures] == ["case_001"]
    assert scored.warnings == ()


@pytest.mark.parametrize("without_diary", [False, True])
def test_a_table_is_left_as_it_was_where_nothing_can_be_scored(maps, tmp_path, without_diary):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    for path in maps.iterdir():
        path.write_bytes(b"nothing")
    if without_diary:
        (tmp_path / ".scores.csv.journal").unlink()
    scored = run(maps, out)
    assert len(scored.failures) == 4
    assert "left as it was" in scored.warnings[0]
    assert out.read_bytes() == before


def test_a_table_of_another_version_is_refused_and_left_as_it_is(maps, tmp_path):
    out, beside = tmp_path / "scores.csv", tmp_path / "scores.csv.about.json"
    run(maps, out)
    about = json.loads(beside.read_text())
    beside.write_text(json.dumps({**about, "format": "segtrust-scores-9"}))
    before = out.read_bytes()
    with pytest.raises(SavedStateError, match="segtrust-scores-9"):
        run(maps, out)
    assert out.read_bytes() == before
    shutil.move(out, tmp_path / "old.csv")
    assert run(maps, out).cases == 4
