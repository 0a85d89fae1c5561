"""The score table of a data set: the same however often, and however, the run was broken off."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.confidence import ConfidenceEstimator, PatchLevel, SoftDice, get_estimator
from segtrust.engine import score_table
from segtrust.engine.executors import make_executor
from segtrust.engine.outcomes import Outcome
from segtrust.engine.run_log import RunLog, is_running as is_at_work, read_log
from segtrust.engine.score_table import (
    RunInterrupted,
    ScoreRun,
    files_in,
    log_beside,
    part_of,
    read_unfinished_run,
    run_cases,
    score_cases,
    write_failures,
)
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import OtherSettingsError, ParameterError, SavedStateError
from segtrust.io import (
    ArrayRef,
    CaseFiles,
    Dataset,
    Failure,
    ReadOptions,
    about_path,
    checksums,
    find_cases,
    read_table,
    stamps_of,
)
from tests.commands import segtrust_process
from tests.engine.files import write_maps
from tests.engine.works import cases, expected, name_length
from tests.processes import children, is_running, wait_until

JOB = ScoreJob((SoftDice(),))
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")


@pytest.fixture
def maps(tmp_path):
    write_maps(tmp_path / "maps", 6)
    return tmp_path / "maps"


def run(folder, out, job=JOB, **more):
    return score_cases(
        find_cases([folder]), job, ScoreRun(out, make_executor(more.pop("workers", 0)), **more)
    )


def lines(path):
    """The cells of a table, which does not show the time that each case took."""
    return [line.split(",") for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_rows_are_in_the_order_of_the_cases_and_say_what_they_were_made_with(maps, tmp_path):
    scored = run(maps, tmp_path / "new/folder/scores.csv")
    assert [row["case"] for row in scored.rows] == [f"case_{number:03d}" for number in range(6)]
    table = read_table(tmp_path / "new/folder/scores.csv")
    assert table.column("sdc") == [row["sdc"] for row in scored.rows]
    assert table.about["estimators"] == {"sdc": {"empty": "paper"}}
    assert table.about["format"] == "segtrust-scores-2"
    assert scored.seconds > 0


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_table_is_the_same_for_any_number_of_workers(maps, tmp_path, ending, workers):
    first = tmp_path / f"one/scores.{ending}"
    then = tmp_path / f"other/scores.{ending}"
    run(maps, first)
    run(maps, then, workers=workers)
    kept = [[{**row, "seconds": 0} for row in read_table(path).rows] for path in (first, then)]
    assert kept[0] == kept[1]


def test_a_second_run_takes_all_from_the_log_and_a_new_one_nothing(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = read_table(out).rows
    run(maps, out)
    assert read_table(out).rows == before  # the seconds too
    run(maps, out, resume=False)
    assert read_table(out).rows != before
    assert len(lines(out)) == 7


def test_other_settings_are_rejected_in_plain_words_unless_the_table_may_be_overwritten(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    job = replace(JOB, read=ReadOptions(threshold=0.4, labels=(1, 2)), with_truth=False)
    with pytest.raises(OtherSettingsError) as found:
        run(maps, out, job)
    assert str(found.value) == (
        f"{out}: it was made with labels none (now 1, 2); threshold 0.5 (now 0.4); with truth yes (now no). "
        "Use the same settings, choose another output, or replace the table: --overwrite."
    )
    run(maps, tmp_path / "pla.csv", replace(JOB, estimators=(PatchLevel(),)))
    with pytest.raises(OtherSettingsError, match=r"size 10 \(now 7\)"):
        run(maps, tmp_path / "pla.csv", replace(JOB, estimators=(PatchLevel(size=7),)))
    log_beside(out).unlink()  # the table knows too
    with pytest.raises(OtherSettingsError, match=r"threshold 0.5 \(now 0.4\)"):
        run(maps, out, job)
    assert out.read_bytes() == before
    run(maps, out, replace(JOB, read=ReadOptions(threshold=0.4)), overwrite=True)
    assert read_table(out).about["read"]["threshold"] == 0.4
    with pytest.raises(OtherSettingsError, match=r"threshold 0.4 \(now 0.5\)"):
        run(maps, out, resume=False)
    run(maps, out, resume=False, overwrite=True)
    assert read_table(out).about["read"]["threshold"] == 0.5


def test_scoring_again_replaces_no_table_of_other_cases(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    with pytest.raises(OtherSettingsError, match="5 cases that are not among those given now"):
        run(maps / "case_000.npy", out, resume=False)
    assert out.read_bytes() == before
    run(maps / "case_000.npy", out, resume=False, overwrite=True)
    assert len(lines(out)) == 2


def test_a_table_of_release_0_1_takes_the_same_command(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    log_beside(out).unlink()
    about = json.loads(about_path(out).read_text())
    for name in ("fill_missing", "truth_threshold"):
        del about["read"][name]
    about["read"]["resample"] = False  # a flag then
    about_path(out).write_text(json.dumps(about))
    run(maps, out)
    log_beside(out).unlink()
    with pytest.raises(OtherSettingsError, match=r"resample none \(now truth\)"):
        run(maps, out, replace(JOB, read=ReadOptions(resample="truth")))


def without_times(table):
    return [{**row, "seconds": 0} for row in table.rows]


@pytest.mark.parametrize("workers", [0, 1])
def test_another_estimator_adds_its_column_and_nothing_else_is_scored(maps, tmp_path, workers):
    """Issue: asking for another estimator in the same output adds its column."""
    out, sdc, pla, amsp = tmp_path / "scores.csv", SoftDice(), PatchLevel(), get_estimator("amsp")
    run(maps, out)
    before = read_table(out).rows
    run(maps, out, replace(JOB, estimators=(pla, amsp)), workers=workers)
    run(maps, tmp_path / "other.csv", replace(JOB, estimators=(sdc, pla, amsp)))
    table, other = read_table(out), read_table(tmp_path / "other.csv")
    assert without_times(table) == without_times(other)
    assert (table.columns, table.about["estimators"]) == (other.columns, other.about["estimators"])
    assert all(row["seconds"] > old["seconds"] for row, old in zip(table.rows, before, strict=True))
    kept = out.read_bytes()
    run(maps, out, replace(JOB, estimators=(amsp,)))  # nothing to do, and no column is lost
    assert out.read_bytes() == kept


def test_cases_that_are_new_or_changed_get_all_columns(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    np.save(maps / "case_001.npy", np.full((4, 4), 0.75))
    np.save(maps / "new.npy", np.full((4, 4), 0.75))
    run(maps, out, replace(JOB, estimators=(get_estimator("amsp"),)))
    both = replace(JOB, estimators=(SoftDice(), get_estimator("amsp")))
    run(maps, tmp_path / "other.csv", both)
    assert without_times(read_table(out)) == without_times(read_table(tmp_path / "other.csv"))


def test_columns_are_not_lost_with_the_log(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out)
    log_beside(out).unlink()
    run(maps, out, replace(JOB, estimators=(get_estimator("amsp"),)))
    assert {"sdc", "amsp"} <= set(read_table(out).columns)


class Failing(ConfidenceEstimator):
    """An estimator that fails for images with a large confidence."""

    name, needs = "failing", SoftDice.needs

    def read(self, summary):
        raise ZeroDivisionError("by design")


def test_an_estimator_that_fails_costs_no_result(maps, tmp_path):
    """A further estimator used to replace finished rows by its failure, in the log as well."""
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = read_table(out).rows
    added = run(maps, out, replace(JOB, estimators=(Failing(),)))
    assert [failure.kind for failure in added.failures] == ["ZeroDivisionError"] * 6
    assert read_table(out).rows == before, "nothing was scored as asked, so the table stays"
    log = read_log(log_beside(out))
    assert [outcome.rows[0]["sdc"] for outcome in log.outcomes] == [row["sdc"] for row in before]
    only_sdc = run(maps, out, overwrite=True)
    assert (only_sdc.failures, only_sdc.estimators) == ((), ("sdc",))
    assert not (tmp_path / "failures.csv").exists()


def test_estimators_are_dropped_if_the_table_may_be_overwritten(maps, tmp_path):
    out = tmp_path / "scores.csv"
    run(maps, out, replace(JOB, estimators=(SoftDice(), get_estimator("amsp"))))
    run(maps, out, overwrite=True)
    assert "amsp" not in read_table(out).columns
    assert read_table(out).about["estimators"] == {"sdc": {"empty": "paper"}}


def test_questions_stay_when_an_estimator_is_added(tmp_path):
    for number in range(6):
        (tmp_path / "maps").mkdir(exist_ok=True)
        labels = np.random.default_rng(number).integers(0, 4, (8, 8)).astype(np.uint8)
        np.save(tmp_path / f"maps/{number}.npy", labels)
    out = tmp_path / "scores.csv"
    questions = run(tmp_path / "maps", out).questions
    assert any("label images" in each for each in questions)
    both = replace(JOB, estimators=(SoftDice(), get_estimator("amsp")))
    assert run(tmp_path / "maps", out, both).questions == questions
    assert run(tmp_path / "maps", out).questions == questions


@pytest.mark.needs("h5py")
def test_links_of_hdf5_files_are_followed_in_a_worker_process(tmp_path, monkeypatch):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["p"] = np.full((4, 4), 0.75)

    def here(path):
        raise AssertionError(f"{path} was opened in this process")

    monkeypatch.setattr(checksums, "linked_files", here)
    assert run(tmp_path, tmp_path / "scores.csv", workers=1).cases == 1


def test_a_run_that_is_killed_while_columns_are_added_adds_the_others_later(maps, tmp_path):
    out, both = tmp_path / "scores.csv", replace(JOB, estimators=(SoftDice(), get_estimator("amsp")))
    run(maps, out)

    seen = []

    def stop(done):
        seen.append(done)
        if len(seen) == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(maps, out, both, advance=stop)
    run(maps, out)
    run(maps, tmp_path / "other.csv", both)
    assert without_times(read_table(out)) == without_times(read_table(tmp_path / "other.csv"))


def test_cases_that_would_be_lost_are_rejected_unless_the_table_may_be_overwritten(maps, tmp_path):
    """Issue: different input is rejected unless --overwrite is given."""
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    for number in (1, 3):
        (maps / f"case_{number:03d}.npy").unlink()
    with pytest.raises(
        OtherSettingsError, match="it has 2 cases that are not among those given now, such as case_001"
    ):
        run(maps, out)
    assert out.read_bytes() == before
    (warning,) = run(maps, out, overwrite=True).warnings
    assert warning == f"{out}: 2 cases that it had are no longer in it, such as case_001."
    assert set(files_in(out)) == {"case_000", "case_002", "case_004", "case_005"}
    assert run(maps, out).warnings == ()
    (maps / "case_002.npy").write_bytes(b"nothing")  # it is given, and fails
    assert [failure.case for failure in run(maps, out).failures] == ["case_002"]


@pytest.mark.parametrize("done", [0, 2])
def test_an_interruption_says_what_is_done_and_how_to_resume(maps, tmp_path, done):
    """Issue: Ctrl-C reports what is done and how to resume, even before the first case."""
    scored = []

    def interrupt(count):
        scored.append(count)
        if len(scored) == done:
            raise KeyboardInterrupt

    found = find_cases([maps])
    executor = Interrupting() if done == 0 else make_executor(1)
    with pytest.raises(RunInterrupted) as told:
        score_cases(found, JOB, ScoreRun(tmp_path / "scores.csv", executor, advance=interrupt))
    assert str(told.value) == f"Interrupted: {done} of 6 cases are scored. Rerun the same command to resume."
    scored.clear()
    assert run(maps, tmp_path / "scores.csv").cases == 6


class Interrupting:
    """An executor that is interrupted before its first case."""

    workers, is_remote = 1, False

    def run(self, work, cases):
        raise KeyboardInterrupt
        yield

    def close(self):
        pass


def test_an_unfinished_run_of_version_0_1_starts_again_and_says_so(maps, tmp_path, caplog):
    old = tmp_path / ".scores.csv.journal"
    old.write_text('{"format": "segtrust-journal-2", "made_with": {}}\n')
    run(maps, tmp_path / "scores.csv")
    assert [each.getMessage() for each in caplog.records] == [
        f"{tmp_path / 'scores.csv'}: an unfinished run of segtrust 0.1 cannot be resumed, so it starts again."
    ]
    assert not old.exists()


def test_a_run_leaves_its_table_and_its_log_behind(maps, tmp_path):
    run(maps, tmp_path / "out/scores.csv", workers=1)
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left == {"scores.csv", "scores.csv.about.json", ".scores.csv.log"}
    (tmp_path / "out/.scores.csv.log").unlink()
    run(maps, tmp_path / "out/scores.csv")


def test_runs_that_end_at_the_same_time_lose_no_failure(tmp_path):
    tables = [f"{number}.csv" for number in range(8)]
    for name in tables:
        (tmp_path / name).touch()
    failures = {name: [Failure(f"case of {name}", "f", "ReadError", "why")] for name in tables}
    threads = [
        threading.Thread(target=write_failures, args=(tmp_path / "failures.csv", failures[name], name))
        for name in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row["table"] for row in read_table(tmp_path / "failures.csv").rows} == set(tables)
    assert {path.name for path in tmp_path.iterdir()} == {*tables, "failures.csv"}


def test_failures_are_listed_and_the_list_goes_when_nothing_fails_any_more(maps, tmp_path):
    whole = (maps / "case_002.npy").read_bytes()
    (maps / "case_002.npy").write_bytes(whole[:-10])
    found = find_cases([maps])
    told = Dataset(
        found.cases, (Failure("x", "masks/x.png", "Unpaired", "a mask without a probability map"),)
    )
    out = tmp_path / "scores.csv"
    scored = score_cases(told, JOB, ScoreRun(out, make_executor(0)))
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
        score_cases(told, JOB, ScoreRun(tmp_path / f"part-{part}.csv", make_executor(0), part=part, parts=2))
    listed = [
        [row["case"] for row in read_table(tmp_path / f"part-{part}.failures.csv").rows] for part in (0, 1)
    ]
    assert listed == [["x"], ["case_005"]]


def test_what_can_only_be_finished_with_all_rows_is_added(maps, tmp_path):
    found = find_cases([maps])
    run_ = ScoreRun(tmp_path / "scores.csv", make_executor(0))
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
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
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
    assert done.stderr.startswith("error: [Errno ")
    assert done.stderr.count("\n") == 1
    assert ".scores.csv.log" in done.stderr
    assert not (tmp_path / "scores.csv").exists()
    assert segtrust_process(*arguments).returncode == 0
    assert lines(tmp_path / "scores.csv") == lines(tmp_path / "other.csv")


def scored_in(log):
    return len(read_log(log).outcomes) if log.exists() else 0


def kill_after(arguments, out, grown):
    """Start the command, and kill it when its log has so many cases more."""
    log = out.with_name(f".{out.name}.log")
    enough = scored_in(log) + grown
    running = subprocess.Popen([sys.executable, "-m", "segtrust", *map(str, arguments)])
    try:
        wait_until(lambda: scored_in(log) >= enough or running.poll() is not None, pause=0.0005)
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
        kill_after((*arguments, "-o", tmp_path / "broken.csv"), tmp_path / "broken.csv", rng.integers(1, 8))
    assert not (tmp_path / "broken.csv").exists()
    kept = scored_in(tmp_path / ".broken.csv.log")
    assert segtrust_process(*arguments, "-o", tmp_path / "broken.csv").returncode == 0
    assert scored_in(tmp_path / ".broken.csv.log") == 80 >= kept >= 5
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
        kill_after(job, out, 3)
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
    assert len(whole.pop("hidden columns")["rows"]) == len(one.pop("hidden columns")["rows"])
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

    def look(path, table, **options):
        taken.append(is_at_work(log_beside(out)))
        write(path, table, **options)

    monkeypatch.setattr(score_table, "write_table", look)
    run(maps, out)
    assert taken == [True]
    assert is_at_work(log_beside(out)) is False


# Cases that are done, and those that changed

NAMES = [f"case {number}" for number in range(7)]


def run_work(found, path, work=name_length, workers=0):
    """The outcomes, and which cases were worked on now."""
    done, advanced = [], []

    def noting(case):
        done.append(case.id)
        return work(case)

    executor, chosen = make_executor(workers), work if workers else noting
    with RunLog(path, {}) as log:
        outcomes = run_cases(chosen, found, executor=executor, log=log, advance=advanced.append)
    executor.close()
    assert sum(advanced) == len(found)
    return outcomes, done


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_outcomes_come_in_the_order_of_the_cases(tmp_path, workers):
    outcomes, _ = run_work(cases(NAMES[::-1]), tmp_path / "log", workers=workers)
    assert outcomes == expected(NAMES)
    assert list(outcomes) == NAMES[::-1]


def test_what_is_done_is_not_done_again(tmp_path):
    _, first = run_work(cases(NAMES[:3]), tmp_path / "log")
    outcomes, then = run_work(cases(NAMES), tmp_path / "log")
    assert (first, then) == (NAMES[:3], NAMES[3:])
    assert outcomes == expected(NAMES)


def fails(case):
    return Outcome(case.id, failure=Failure(case.id, "f", "OSError", "gone"))


def test_failures_are_tried_again(tmp_path):
    outcomes, _ = run_work(cases(NAMES[:2]), tmp_path / "log", fails)
    assert all(outcome.failure for outcome in outcomes.values())
    outcomes, done = run_work(cases(NAMES[:2]), tmp_path / "log")
    assert done == NAMES[:2]
    assert outcomes == expected(NAMES[:2])
    assert run_work(cases(NAMES[:2]), tmp_path / "log")[1] == []


def test_outcomes_of_before_a_fault_are_kept(tmp_path):
    def breaks(case):
        if case.id == NAMES[2]:
            raise ZeroDivisionError
        return name_length(case)

    with pytest.raises(ZeroDivisionError):
        run_work(cases(NAMES), tmp_path / "log", breaks)
    assert run_work(cases(NAMES), tmp_path / "log")[1] == NAMES[2:]


def write_later(path, content):
    """Write a file with a time that differs from that of before, however fast the test is."""
    path.write_bytes(content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("name", ["a.npz", "a.pkl", "dataset.json", "mask.npy", "truth.npy", "image.npy"])
def test_a_case_is_done_again_when_a_file_that_is_read_of_it_has_changed(tmp_path, name):
    folder = tmp_path / "maps"
    folder.mkdir()
    for each in ("a.npz", "a.pkl", "dataset.json", "mask.npy", "truth.npy", "image.npy"):
        (folder / each).write_bytes(b"before")
    mask, truth, image = (ArrayRef(folder / f"{each}.npy") for each in ("mask", "truth", "image"))
    found = [CaseFiles("a", ArrayRef(folder / "a.npz"), mask, truth, image), *cases(["b"])]
    run_work(found, tmp_path / "log")
    assert run_work(found, tmp_path / "log")[1] == []
    write_later(folder / name, b"after.")
    assert "a" in run_work(found, tmp_path / "log")[1]
    assert run_work(found, tmp_path / "log")[1] == []


def test_a_case_is_done_again_when_a_chunk_of_its_store_has_changed(tmp_path):
    chunk = tmp_path / "a.zarr/c/0/0"
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(b"before")
    found = [CaseFiles("a", ArrayRef(tmp_path / "a.zarr"))]
    run_work(found, tmp_path / "log")
    write_later(chunk, b"after.")
    assert run_work(found, tmp_path / "log")[1] == ["a"]


def test_a_case_is_done_again_when_its_notes_have_changed(tmp_path):
    run_work([CaseFiles("a", ArrayRef(tmp_path / "a.npy"), group="patient 1")], tmp_path / "log")
    changed = [CaseFiles("a", ArrayRef(tmp_path / "a.npy"), group="patient 2")]
    assert run_work(changed, tmp_path / "log")[1] == ["a"]


def test_a_file_that_is_written_while_it_is_scored_is_scored_again(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"before")
    found = [CaseFiles("a", ArrayRef(path))]

    def while_written(case):
        write_later(path, b"afterwards")
        return name_length(case)

    run_work(found, tmp_path / "log", while_written)
    assert run_work(found, tmp_path / "log")[1] == ["a"]


def test_stamps_can_be_written_down(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    stamps = stamps_of([CaseFiles("a", ArrayRef(tmp_path / "a.npy", None, 2)), *cases(["missing"])])
    assert json.loads(json.dumps(stamps)) == stamps


@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_parts_in_their_order_are_the_whole(parts):
    shared = [part_of(NAMES, part, parts) for part in range(parts)]
    assert [name for part in shared for name in part] == NAMES
    assert max(map(len, shared)) - min(map(len, shared)) <= 1


@pytest.mark.parametrize(("part", "parts"), [(3, 3), (-1, 2), (0, 0)])
def test_a_part_that_there_is_not(part, parts):
    with pytest.raises(ParameterError, match="part-id: expected a number from 0"):
        part_of(NAMES, part, parts)


# Tables that are replaced


@pytest.mark.parametrize("without_log", [False, True])
def test_a_table_is_left_as_it_was_where_nothing_can_be_scored(maps, tmp_path, without_log):
    out = tmp_path / "scores.csv"
    run(maps, out)
    before = out.read_bytes()
    for path in maps.iterdir():
        path.write_bytes(b"nothing")
    if without_log:
        (tmp_path / ".scores.csv.log").unlink()
    scored = run(maps, out)
    assert len(scored.failures) == 6
    assert "was not changed" in scored.warnings[0]
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
    assert run(maps, out).cases == 6


# Runs that are not finished


@pytest.fixture
def scores(tmp_path):
    write_maps(tmp_path / "maps", 4)
    out = tmp_path / "scores.csv"
    run(tmp_path / "maps", out)
    return out


def test_a_table_that_is_written_is_whole(scores):
    assert read_unfinished_run(scores) is None
    log_beside(scores).unlink()
    assert read_unfinished_run(scores) is None
    assert read_unfinished_run(scores.with_name("none.csv")) is None


def test_without_a_table_the_log_knows(scores):
    rows = read_table(scores).rows
    scores.unlink()
    found = read_unfinished_run(scores).table
    assert [row["sdc"] for row in found.rows] == [row["sdc"] for row in rows]
    assert found.source == str(scores)
    assert found.about["folder"]


def test_a_run_that_was_stopped_is_read_from_its_log(scores, tmp_path):
    write_maps(tmp_path / "maps", 5)

    seen = []

    def stop(done):
        seen.append(done)
        if len(seen) == 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "maps", scores, advance=stop)
    found = read_unfinished_run(scores)
    assert (len(found.table.rows), found.stopped) == (5, True)
    run(tmp_path / "maps", scores)
    assert read_unfinished_run(scores) is None


def test_a_run_at_work_is_read_from_its_log(scores):
    with RunLog(log_beside(scores), {}):
        found = read_unfinished_run(scores)
        assert (len(found.table.rows), found.stopped) == (4, False)
    assert read_unfinished_run(scores) is None  # nothing came
