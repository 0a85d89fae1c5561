"""The score table of a data set: the same however often, and however, the run was broken off."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, SoftDice
from segtrust.engine import score_table
from segtrust.engine.locks import is_taken
from segtrust.engine.run import Engine
from segtrust.engine.score_table import ScoreRun, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import ParameterError
from segtrust.io import Dataset, Failure, ReadOptions, find_cases, read_table
from tests.commands import segtrust_process
from tests.engine.files import write_maps
from tests.processes import children, is_running, wait_until

JOB = ScoreJob((SoftDice(),))
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")


@pytest.fixture
def maps(tmp_path):
    write_maps(tmp_path / "maps", 6)
    return tmp_path / "maps"


def run(folder, out, job=JOB, **more):
    return score_cases(find_cases([folder]), job, ScoreRun(out, more.pop("engine", Engine()), **more))


def lines(path):
    """The lines of a table without the time that each case took."""
    rows = [line.split(",") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    at = rows[0].index("seconds")
    return [row[:at] + row[at + 1 :] for row in rows]


def test_rows_are_in_the_order_of_the_cases_and_say_what_they_were_made_with(maps, tmp_path):
    scored = run(maps, tmp_path / "new/folder/scores.csv")
    assert [row["case"] for row in scored.rows] == [f"case_{number:03d}" for number in range(6)]
    table = read_table(tmp_path / "new/folder/scores.csv")
    assert table.column("sdc") == [row["sdc"] for row in scored.rows]
    assert table.about["estimators"] == {"sdc": {"empty": "paper"}}
    assert table.about["format"] == "segtrust-scores-1"
    assert scored.seconds > 0


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_table_is_the_same_for_any_number_of_workers(maps, tmp_path, ending, workers):
    first = tmp_path / f"one/scores.{ending}"
    then = tmp_path / f"other/scores.{ending}"
    run(maps, first)
    run(maps, then, engine=Engine(workers))
    kept = [[{**row, "seconds": 0} for row in read_table(path).rows] for path in (first, then)]
    assert kept[0] == kept[1]


def test_a_second_run_takes_all_from_the_diary_and_a_new_one_nothing(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    run(maps, out)
    assert out.read_bytes() == before  # the seconds too
    run(maps, out, resume=False)
    assert out.read_bytes() != before
    assert len(lines(out)) == 7


def test_other_settings_are_refused_and_named_unless_begun_anew(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    job = replace(JOB, estimators=(SoftDice(), PatchLevel(size=7)), read=ReadOptions(threshold=0.4))
    with pytest.raises(ParameterError, match=r"read.threshold 0.5, not 0.4") as found:
        run(maps, out, job)
    assert "estimators.pla None, not {'size': 7}" in str(found.value)
    run(maps, out, job, resume=False)
    assert read_table(out).about["estimators"]["pla"] == {"size": 7}


def test_failures_are_listed_and_the_list_goes_when_nothing_fails_any_more(maps, tmp_path):
    whole = (maps / "case_002.npy").read_bytes()
    (maps / "case_002.npy").write_bytes(whole[:-10])
    found = find_cases([maps])
    told = Dataset(
        found.cases, (Failure("x", "masks/x.png", "Unpaired", "a mask without a probability map"),)
    )
    out = tmp_path / "scores.csv"
    scored = score_cases(told, JOB, ScoreRun(out, Engine()))
    assert len(scored.rows) == 5
    listed = read_table(tmp_path / "failures.csv").rows
    assert [row["case"] for row in listed] == ["case_002", "x"]
    assert [row["kind"] for row in listed] == ["DamagedFileError", "Unpaired"]
    assert str(maps / "case_002.npy") in listed[0]["reason"]
    (maps / "case_002.npy").write_bytes(whole)
    assert not run(maps, out).failures
    assert not (tmp_path / "failures.csv").exists()
    assert len(lines(out)) == 7


def test_parts_have_lists_of_their_own_and_one_of_them_tells_what_has_no_partner(maps, tmp_path):
    (maps / "case_005.npy").write_bytes(b"")
    found = find_cases([maps])
    told = Dataset(found.cases, (Failure("x", "masks/x.png", "Unpaired", "alone"),))
    for part in range(2):
        score_cases(told, JOB, ScoreRun(tmp_path / f"part-{part}.csv", Engine(), part=part, parts=2))
    listed = [
        [row["case"] for row in read_table(tmp_path / f"part-{part}.failures.csv").rows] for part in (0, 1)
    ]
    assert listed == [["x"], ["case_005"]]


def test_what_can_only_be_finished_with_all_rows_is_added(maps, tmp_path):
    found = find_cases([maps])
    run_ = ScoreRun(tmp_path / "scores.csv", Engine())
    score_cases(found, JOB, run_, finish=lambda rows: [{**row, "count": len(rows)} for row in rows])
    assert read_table(tmp_path / "scores.csv").column("count") == [6.0] * 6


@pytest.mark.parametrize("out", ["scores.txt", "scores", "folder.csv", "file.csv/scores.csv"])
def test_an_output_that_cannot_be_is_refused_before_anything_is_done(maps, tmp_path, out):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file.csv").write_text("")
    with pytest.raises(
        ParameterError, match=r"expected a table|cannot write to this folder|expected the name of a table"
    ):
        run(maps, tmp_path / out, lambda files: pytest.fail("work was begun"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(maps, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(ParameterError, match="closed: cannot write to this folder"):
        run(maps, tmp_path / "closed/scores.csv")


# A limit that a process sets itself: to set it between fork and exec is not safe beside the threads of JAX.
SMALL_FILES = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
runpy.run_module("segtrust", run_name="__main__", alter_sys=True)
"""


@LINUX
def test_a_disk_that_is_full_is_told_and_the_run_goes_on_when_there_is_room(maps, tmp_path):
    run(maps, tmp_path / "other.csv")  # compiles what is needed, which could not be kept later
    arguments = ("score", maps, "-o", tmp_path / "scores.csv", "--estimators", "sdc")
    bare = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", SMALL_FILES, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
    assert done.returncode == 2
    journal = tmp_path / ".scores.csv.journal"
    assert done.stderr == f"error: [Errno 27] File too large: '{journal}'\n"
    assert not (tmp_path / "scores.csv").exists()
    assert journal.stat().st_size == 2000
    assert segtrust_process(*arguments).returncode == 0
    assert lines(tmp_path / "scores.csv") == lines(tmp_path / "other.csv")


def size_of(path):
    return path.stat().st_size if path.exists() else 0


def kill_after(arguments, out, grown):
    """Start the command, and kill it when its diary has grown by so many bytes."""
    journal = out.with_name(f".{out.name}.journal")
    enough = size_of(journal) + grown
    running = subprocess.Popen([sys.executable, "-m", "segtrust", *map(str, arguments)])
    try:
        wait_until(lambda: size_of(journal) >= enough or running.poll() is not None, pause=0.0005)
        assert running.poll() is None, "it came to its end before it was killed"
        below = children(running.pid)
        os.kill(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    wait_until(lambda: not any(map(is_running, below)))


def write_many(folder):
    """Maps that take some milliseconds each."""
    folder.mkdir()
    p = np.random.default_rng(0).random((300, 400)).astype(np.float32)
    for number in range(80):
        np.save(folder / f"{number:02d}.npy", p ** (1 + number / 7))


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_moments_the_table_is_that_of_an_unbroken_run(tmp_path, workers):
    write_many(tmp_path / "maps")
    rng = np.random.default_rng(workers)
    arguments = ("score", tmp_path / "maps", "--estimators", "sdc,pla", "--workers", workers)
    assert segtrust_process(*arguments, "-o", tmp_path / "unbroken.csv").returncode == 0
    for _ in range(5):
        kill_after(
            (*arguments, "-o", tmp_path / "broken.csv"), tmp_path / "broken.csv", rng.integers(1, 4000)
        )
    assert not (tmp_path / "broken.csv").exists()
    kept = size_of(tmp_path / ".broken.csv.journal")
    assert segtrust_process(*arguments, "-o", tmp_path / "broken.csv").returncode == 0
    assert size_of(tmp_path / ".broken.csv.journal") > kept > 2000
    assert lines(tmp_path / "broken.csv") == lines(tmp_path / "unbroken.csv")


@pytest.mark.slow
@LINUX
def test_killed_parts_that_went_on_are_merged_into_the_table_of_an_unbroken_run(tmp_path):
    write_many(tmp_path / "maps")
    (tmp_path / "maps/77.npy").write_bytes(b"")
    arguments = ("score", tmp_path / "maps", "--estimators", "sdc,pla")
    assert segtrust_process(*arguments, "-o", tmp_path / "one/scores.csv").returncode == 1
    parts = [tmp_path / f"parts/{part}.csv" for part in range(3)]
    for part, out in enumerate(parts):
        job = (*arguments, "-o", out, "--num-parts", 3, "--part-id", part)
        kill_after(job, out, 1500)
        assert segtrust_process(*job).returncode == (1 if part == 2 else 0)
    merged = segtrust_process("merge", *parts, "-o", tmp_path / "merged/scores.csv", "--json")
    assert merged.returncode == 1
    assert json.loads(merged.stdout)["failed"] == 1
    assert lines(tmp_path / "merged/scores.csv") == lines(tmp_path / "one/scores.csv")
    both = [tmp_path / name for name in ("merged", "one")]
    assert len({(folder / "failures.csv").read_bytes() for folder in both}) == 1
    whole, one = (json.loads((folder / "scores.csv.about.json").read_text()) for folder in both)
    assert len(whole.pop("commands")) == 4  # of the parts, and of their merging
    assert len(one.pop("commands")) == 1
    assert whole == one


def test_two_tables_in_one_folder_keep_their_lists(maps, tmp_path):
    (maps / "case_002.npy").write_bytes(b"")
    assert run(maps, tmp_path / "first.csv").failures
    other = tmp_path / "others"
    other.mkdir()
    np.save(other / "a.npy", np.full((3, 4), 0.5))
    assert not run(other, tmp_path / "second.csv").failures
    listed = read_table(tmp_path / "failures.csv").rows
    assert [(row["case"], row["table"]) for row in listed] == [("case_002", "first.csv")]


def test_a_table_without_rows_has_columns(tmp_path):
    (tmp_path / "a.npy").write_bytes(b"")
    run(tmp_path, tmp_path / "out/scores.csv")
    assert (tmp_path / "out/scores.csv").read_text() == "case,structure\n"


@LINUX
def test_nobody_else_begins_before_the_table_is_written(maps, tmp_path, monkeypatch):
    out, taken, write = tmp_path / "scores.csv", [], score_table.write_table

    def look(path, table):
        taken.append(is_taken(score_table.journal_beside(out)))
        write(path, table)

    monkeypatch.setattr(score_table, "write_table", look)
    run(maps, out)
    assert taken == [True]
    assert is_taken(score_table.journal_beside(out)) is False
