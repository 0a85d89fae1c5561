"""Rows that only the table has stay, or are refused by name; none is lost in silence."""

import json

import pytest

from segtrust.confidence import SoftDice, get_estimators
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, journal_beside
from segtrust.engine.scoring import ScoreJob
from segtrust.engine.triage import decide_rows
from segtrust.engine.watching import Rhythm, watch_cases
from segtrust.errors import OtherSettingsError, SavedStateError
from segtrust.io import Table, find_cases, read_table, write_table
from tests.engine.files import write_maps
from tests.policy.certified import policy

SHORT = Rhythm(every_s=0.01, settle_s=0.02, idle_s=0.05)
JOB = ScoreJob((SoftDice(),))
ENDINGS = ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]


def watch(out, job=JOB, resume=True, **more):
    run = ScoreRun(out, Engine(), resume)
    return watch_cases(lambda: find_cases([out.parent / "maps"]), job, run, rhythm=SHORT, **more)


@pytest.fixture
def watched(tmp_path):
    """A watch of three cases that is over; the files of the second were moved away."""

    def make(ending="csv", **more):
        out = tmp_path / f"scores.{ending}"
        write_maps(tmp_path / "maps", 3)
        watch(out, **more)
        (tmp_path / "maps/case_001.npy").unlink()
        return out

    return make


def damage(out, case="case_001", noise=None):
    """Damage the last line of a case, and give its number."""
    path = journal_beside(out)
    lines = path.read_bytes().splitlines(keepends=True)
    at = max(place for place, line in enumerate(lines) if f'"case": "{case}"'.encode() in line)
    lines[at] = lines[at].replace(b"}", b"]") if noise is None else noise
    path.write_bytes(b"".join(lines))
    return at + 1


def by_case(out):
    return {row["case"]: {**row, "seconds": 0} for row in read_table(out).rows}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_row_whose_line_is_damaged_and_whose_file_is_gone_is_taken_from_the_table(watched, caplog, ending):
    out = watched(ending)
    before = by_case(out)
    damage(out)
    for is_told in (True, False):  # the second time goes by what the first has written down
        caplog.clear()
        assert watch(out).failures == ()
        assert by_case(out) == before
        assert ("what its diary had lost was taken from it. Cases: case_001." in caplog.text) is is_told
    out.unlink()
    watch(out)
    assert by_case(out) == before


def test_what_cannot_be_made_good_is_told_with_file_and_line(watched, caplog):
    out = watched()
    number = damage(out)
    out.unlink()
    for _ in range(2):
        caplog.clear()
        (failure,) = watch(out).failures
        assert (failure.case, failure.kind) == ("case_001", "DamagedLine")
        assert f"{journal_beside(out)}, line {number}: " in failure.reason
        assert failure.reason in caplog.text
        assert [row["kind"] for row in read_table(out.with_name("failures.csv")).rows] == ["DamagedLine"]
    write_maps(out.parent / "maps", 3)  # put back
    assert watch(out).failures == ()
    assert set(by_case(out)) == {"case_000", "case_001", "case_002"}


def test_what_may_have_hidden_in_noise_is_told_also_where_rows_were_taken_over(watched):
    out = watched()
    before = by_case(out)
    number = damage(out, noise=bytes(500) + b"\n")
    for _ in range(2):
        (failure,) = watch(out).failures
        assert failure.case == f"line {number}"
        assert by_case(out) == before
    path = journal_beside(out)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[: number - 1], *lines[number:]]))  # as the failure says
    assert watch(out).failures == ()
    assert by_case(out) == before


def test_of_a_case_that_was_scored_twice_the_row_of_the_damaged_line_stays(watched):
    out = watched()
    write_maps(out.parent / "maps", 3, first=5)
    watch(out)
    before, whole = by_case(out), out.read_bytes()
    (out.parent / "maps/case_001.npy").unlink()
    damage(out)
    diary = journal_beside(out).read_bytes()
    assert watch(out).failures == ()
    assert by_case(out) == before
    journal_beside(out).write_bytes(diary)
    out.write_bytes(whole.replace(*row_of_first_time(out)))
    assert [each.case for each in watch(out).failures] == ["case_001"]  # the table has the earlier one


def row_of_first_time(out):
    """Give how long a case took the second time and the first, as the table and the diary say."""
    second = next(row["seconds"] for row in read_table(out).rows if row["case"] == "case_001")
    lines = journal_beside(out).read_text().splitlines()
    first = next(json.loads(line)["rows"][0]["seconds"] for line in lines if '"case": "case_001"' in line)
    return str(second).encode(), str(first).encode()


def test_without_its_diary_the_table_stays_and_its_cases_are_scored_again_where_they_are(watched):
    out = watched(finish=decide_rows({"": policy()}))
    before = by_case(out)
    journal_beside(out).unlink()
    watch(out)
    found = by_case(out)
    assert set(found) == set(before)
    assert all("decision" not in row for row in found.values())  # nobody has asked for one now
    assert found["case_001"]["sdc"] == before["case_001"]["sdc"]


def test_rows_of_other_settings_are_refused_and_stay(watched):
    out = watched()
    before = out.read_bytes()
    journal_beside(out).unlink()
    with pytest.raises(
        OtherSettingsError, match=r"scores.csv: it has rows .* 'case_000', and was made with "
    ):
        watch(out, ScoreJob(tuple(get_estimators(["idc"]))))
    assert out.read_bytes() == before
    watch(out, ScoreJob(tuple(get_estimators(["idc"]))), resume=False)
    assert set(by_case(out)) == {"case_000", "case_002"}


def test_rows_that_do_not_say_how_they_were_made_are_refused(watched):
    out = watched()
    damage(out)
    out.with_name("scores.csv.about.json").unlink()
    with pytest.raises(SavedStateError, match=r"such as that of 'case_001'\. Expected rows that say how"):
        watch(out)


@pytest.mark.parametrize("lacks", ["sdc", "k", "file", "seconds"])
def test_a_row_that_is_not_whole_is_refused(watched, lacks):
    out = watched()
    damage(out)
    table = read_table(out)
    write_table(out, Table.of([{**row, lacks: None} for row in table.rows], table.about))
    with pytest.raises(SavedStateError, match=rf"a row of 'case_001' .* got one without '{lacks}'\. Put"):
        watch(out)


def test_a_table_that_cannot_be_read_is_made_anew_only_where_the_diary_has_all_of_it(watched):
    out = watched()
    before = by_case(out)
    out.write_bytes(b"case,k\n\xff\xfe,1\n")
    assert watch(out).failures == ()
    assert by_case(out) == before
    damage(out)
    out.write_bytes(b"case,k\n\xff\xfe,1\n")
    with pytest.raises(SavedStateError, match="Its diary has not all of it either"):
        watch(out)


def test_a_row_of_a_case_that_has_failed_since_is_not_taken_over(watched):
    out = watched()
    whole = out.read_bytes()
    (out.parent / "maps/case_000.npy").write_bytes(b"no map")
    watch(out)
    out.write_bytes(whole)  # as if the run had been killed before it wrote the table
    assert [each.case for each in watch(out).failures] == ["case_000"]
    assert set(by_case(out)) == {"case_001", "case_002"}


def test_names_that_a_table_spells_otherwise_are_the_same_cases(watched):
    out = watched()
    (out.parent / "maps/case_002.npy").rename(out.parent / "maps/a\rb.npy")
    watch(out)
    before = by_case(out)
    assert "a\\rb" in before
    watch(out)
    assert by_case(out) == before
