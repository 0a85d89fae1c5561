"""Folders that are watched."""

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest

from segtrust.confidence import SoftDice, get_estimator
from segtrust.engine.executors import make_executor
from segtrust.engine.outcomes import Outcome
from segtrust.engine.score_table import ScoreRun, log_beside, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.engine.triage import decide_rows
from segtrust.engine.watch import Rhythm, Settling, watch_cases
from segtrust.errors import OtherSettingsError, PairingError, ParameterError, SavedStateError
from segtrust.io import CaseFiles, Dataset, find_cases, read_table
from tests.engine.files import write_maps
from tests.policy.certified import policy
from tests.processes import wait_until

JOB = ScoreJob((SoftDice(),))


@dataclass(frozen=True)
class Touching(ScoreJob):
    """A job that does some other work."""

    work: Callable[[CaseFiles], Outcome] | None = None

    def __call__(self, files):
        return self.work(files)


STEADY = Rhythm(every_s=0.01, settle_s=0.5)
SHORT = Rhythm(every_s=0.01, settle_s=0.05, idle_s=0.1)


def watch(folder, out, look=None, rhythm=SHORT, **more):
    run = ScoreRun(out, make_executor(), overwrite=more.pop("overwrite", False))
    return watch_cases(look or (lambda: find_cases([folder])), JOB, run, rhythm=rhythm, **more)


@contextmanager
def watched(folder, out, **more):
    """A watch in the background until the end of the block; with what it has told."""
    told, found, is_over = [], [], threading.Event()

    def tell(news):
        told.append(news)
        if is_over.is_set():
            raise KeyboardInterrupt

    def run():
        found.append(watch(folder, out, rhythm=STEADY, tell=tell, **more))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield told
    finally:
        is_over.set()
        thread.join(60)
    assert found


def cases_in(table):
    return [row["case"] for row in read_table(table).rows] if table.exists() else []


def test_what_is_there_and_what_arrives_is_scored_in_that_order(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 2)
    with watched(maps, out) as told:
        wait_until(lambda: len(cases_in(out)) == 2)
        np.save(maps / "a_late_one.npy", np.full((4, 4), 0.9))
        wait_until(lambda: len(cases_in(out)) == 3)
    assert cases_in(out) == ["case_000", "case_001", "a_late_one"]
    assert (told[-1].scored, told[-1].failed, told[-1].coming, told[-1].problem) == (3, 0, 0, "")


def test_a_file_is_left_alone_while_it_is_being_written(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 1)
    whole = (maps / "case_000.npy").read_bytes()
    with watched(maps, out) as told:
        with (maps / "slow.npy").open("wb") as file:
            for at in range(0, len(whole), len(whole) // 6):
                file.write(whole[at : at + len(whole) // 6])
                file.flush()
                time.sleep(0.1)
        wait_until(lambda: len(cases_in(out)) == 2)
    assert cases_in(out) == ["case_000", "slow"]
    assert not any(each.failed for each in told)
    assert any(each.coming for each in told)


def test_what_is_broken_is_told_once_and_tried_again_when_it_changes(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 1)
    whole = (maps / "case_000.npy").read_bytes()
    (maps / "broken.npy").write_bytes(whole[:-100])
    failures = tmp_path / "failures.csv"
    with watched(maps, out) as told:
        wait_until(failures.exists)
        wait_until(lambda: told[-1].failed == 1)
        (maps / "broken.npy").write_bytes(whole)
        wait_until(lambda: cases_in(out) == ["broken", "case_000"])
    assert not failures.exists()
    assert told[-1].failed == 0


def write_with_mask(folder, case):
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{case}.npz", probabilities=np.full((4, 4), 0.9))
    np.save(folder / f"{case}.npy", np.ones((4, 4), np.uint8))


def test_files_without_a_partner_are_told_while_they_have_none(tmp_path):
    maps, out, failures = tmp_path / "maps", tmp_path / "scores.csv", tmp_path / "failures.csv"
    write_with_mask(maps, "a")
    with watched(maps, out) as told:
        wait_until(lambda: cases_in(out) == ["a"])
        np.save(maps / "lonely.npy", np.full((4, 4), 0.9))
        wait_until(failures.exists)
        wait_until(lambda: (told[-1].scored, told[-1].failed) == (1, 1))
        row = read_table(failures).rows[0]
        (maps / "lonely.npy").unlink()
        wait_until(lambda: not failures.exists())
        wait_until(lambda: told[-1].failed == 0)
    assert (row["case"], row["kind"], row["file"]) == ("lonely", "Unpaired", str(maps / "lonely.npy"))
    assert "a.npy next to a.npz makes all of that ending masks" in row["reason"]


def test_a_partner_that_comes_a_moment_later_is_no_failure(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_with_mask(maps, "a")
    with watched(maps, out) as told:
        wait_until(lambda: cases_in(out) == ["a"])
        np.save(maps / "b.npy", np.ones((4, 4), np.uint8))
        looks = len(told)
        wait_until(lambda: len(told) >= looks + 2, pause=0.01)
        write_with_mask(maps, "b")
        wait_until(lambda: cases_in(out) == ["a", "b"])
    assert not any(each.failed for each in told)


def test_rows_stay_when_files_are_moved_away_also_for_the_next_watch(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 3)
    with watched(maps, out):
        wait_until(lambda: len(cases_in(out)) == 3)
        (maps / "case_001.npy").unlink()
    before = out.read_bytes()
    watch(maps, out)
    assert out.read_bytes() == before
    np.save(maps / "case_000.npy", np.full((4, 4), 0.25))
    watch(maps, out)
    rows = read_table(out).rows
    assert [row["case"] for row in rows] == ["case_000", "case_001", "case_002"]
    assert rows[0]["k"] == 0


def test_a_further_estimator_is_computed_for_the_cases_that_are_there(tmp_path):
    """Another estimator in the same output adds its column; a watch used to leave it empty."""
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 3)
    watch(maps, out)
    before = read_table(out).rows
    (maps / "case_001.npy").unlink()
    both = replace(JOB, estimators=(SoftDice(), get_estimator("amsp")))
    run, finish = ScoreRun(out, make_executor()), decide_rows({"": policy()})
    table = watch_cases(lambda: find_cases([maps]), both, run, rhythm=SHORT, finish=finish)
    assert [row["sdc"] for row in table.rows] == [row["sdc"] for row in before]
    assert [row["amsp"] is None for row in table.rows] == [False, True, False]


def test_a_drive_that_is_away_for_a_while_costs_no_result(tmp_path):
    maps, out, away = tmp_path / "maps", tmp_path / "scores.csv", tmp_path / "away"
    write_maps(maps, 2)

    def look():
        if not maps.exists():
            raise PairingError("maps: not there")
        return find_cases([maps])

    with watched(maps, out, look=look) as told:
        wait_until(lambda: len(cases_in(out)) == 2)
        maps.rename(away)
        wait_until(lambda: told[-1].problem)
        away.rename(maps)
        np.save(maps / "next.npy", np.full((4, 4), 0.9))
        wait_until(lambda: len(cases_in(out)) == 3)
    assert cases_in(out) == ["case_000", "case_001", "next"]


def test_an_interruption_keeps_all_that_is_scored(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 2)

    def interrupt(news):
        if news.scored:
            raise KeyboardInterrupt

    found = watch(maps, out, rhythm=STEADY, tell=interrupt)
    assert (found.cases, cases_in(out)) == (2, ["case_000", "case_001"])


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
def test_the_table_is_that_of_a_run_in_one_go_also_with_decisions(tmp_path, ending):
    maps = tmp_path / "maps"
    write_maps(maps, 4)
    (maps / "case_001.npy").write_bytes(b"no map")
    tables, decide = (
        [tmp_path / f"{name}/scores.{ending}" for name in ("one", "other")],
        decide_rows({"": policy()}),
    )
    scored = watch(maps, tables[0], finish=decide)
    expected = score_cases(find_cases([maps]), JOB, ScoreRun(tables[1], make_executor()), finish=decide)
    found = [read_table(path) for path in tables]
    assert found[0].about == found[1].about
    rows = [[{**row, "seconds": 0} for row in table.rows] for table in found]
    assert rows[0] == rows[1]
    assert {row["decision"] for row in rows[0]} <= {"accept", "defer"}
    assert (scored.cases, scored.failures, len(scored.rows)) == (3, expected.failures, 3)
    assert [{**row, "seconds": 0} for row in scored.rows] == [{**row, "seconds": 0} for row in expected.rows]


def test_outcomes_are_on_the_disk_and_not_in_memory(tmp_path):
    maps, held = tmp_path / "maps", []
    write_maps(maps, 20)

    def outcomes():
        return sum(type(each) is Outcome for each in gc.get_objects())  # isinstance would ask proxies

    def count(news):
        if news.scored == 20:
            held.append(outcomes())

    before = outcomes()
    found = watch(maps, tmp_path / "scores.csv", tell=count)
    assert (found.cases, found.rows[19]["case"]) == (20, "case_019")
    assert max(held) - before <= 1  # that of the case that was scored last


def test_what_fails_after_it_went_well_and_is_as_it_was_again_has_its_row_again(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 1)
    path = maps / "case_000.npy"
    whole, times = path.read_bytes(), path.stat()
    watch(maps, out)
    with watched(maps, out) as told:
        path.write_bytes(b"no map")
        wait_until(lambda: told and told[-1].failed == 1)
        path.write_bytes(whole)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        wait_until(lambda: cases_in(out) == ["case_000"] and told[-1].failed == 0)


@pytest.mark.parametrize("arrives", [False, True])
def test_a_log_that_is_deleted_ends_the_watch_and_the_table_has_all_rows(tmp_path, arrives):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 3)

    def delete(status):
        if status.scored == 3 and log_beside(out).exists():
            (maps / "case_001.npy").unlink()
            log_beside(out).unlink()
            if arrives:
                np.save(maps / "late.npy", np.full((4, 4), 0.9))

    with pytest.raises(
        SavedStateError, match=r"\.scores\.csv\.log: the log of this run was deleted or replaced"
    ):
        watch(maps, out, tell=delete)
    assert not log_beside(out).exists()
    assert cases_in(out) == ["case_000", "case_001", "case_002"]
    with pytest.raises(
        OtherSettingsError, match=r"it has 1 cases that are not among those given now, such as case_001"
    ):
        watch(maps, out)
    assert cases_in(out) == ["case_000", "case_001", "case_002"]
    watch(maps, out, overwrite=True)
    assert sorted(cases_in(out)) == ["case_000", "case_002", *["late"] * arrives]


def test_a_log_that_is_replaced_while_cases_are_scored_gets_no_more_rows(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 3)

    def replace(_):
        log_beside(out).unlink()
        log_beside(out).write_bytes(b"of another run")

    run = ScoreRun(out, make_executor(), advance=replace)
    with pytest.raises(SavedStateError, match="deleted or replaced"):
        watch_cases(lambda: find_cases([maps]), JOB, run, rhythm=SHORT)
    assert log_beside(out).read_bytes() == b"of another run"
    assert cases_in(out) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="truncates a file that is mapped")
def test_a_file_that_is_truncated_while_it_is_read_is_one_failure(tmp_path):
    """Attack 4: SIGBUS used to end the watch."""
    from tests.engine.works import cases, touch_truncated

    (tmp_path / "maps").mkdir()
    found = cases(["cut", "good"], tmp_path / "maps")
    for case in found:
        case.probabilities.path.write_bytes(b"1")
    job = Touching(JOB.estimators, work=touch_truncated)
    run = ScoreRun(tmp_path / "scores.csv", make_executor())
    scored = watch_cases(lambda: Dataset(tuple(found)), job, run, rhythm=SHORT)
    assert [(each.case, each.kind) for each in scored.failures] == [("cut", "Quarantined")]
    assert cases_in(tmp_path / "scores.csv") == ["good"]


def test_what_failed_is_told_until_it_goes_well_also_when_its_file_is_gone(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 1)
    (maps / "broken.npy").write_bytes(b"no map")
    watch(maps, out)
    (maps / "broken.npy").unlink()
    told = []
    for _ in range(2):
        scored = watch(maps, out, tell=told.append)
        assert ([each.case for each in scored.failures], told[-1].failed) == (["broken"], 1)
    np.save(maps / "broken.npy", np.full((4, 4), 0.9))
    assert watch(maps, out).failures == ()
    assert cases_in(out) == ["broken", "case_000"]


def test_a_table_that_was_there_is_not_emptied_where_nothing_can_be_scored(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 2)
    watch(maps, out)
    before = out.read_bytes()
    for each in maps.iterdir():
        each.write_bytes(b"no map")
    scored = watch(maps, out)
    assert out.read_bytes() == before
    assert [each.case for each in scored.failures] == ["case_000", "case_001"]
    assert scored.warnings == (f"{out}: no case could be scored, so the table was not changed.",)
    assert len(read_table(tmp_path / "failures.csv").rows) == 2


def test_nothing_at_all_is_no_error(tmp_path):
    found = watch(tmp_path, tmp_path / "scores.csv")
    assert (list(found.rows), found.failures) == ([], ())


def test_settled_is_what_has_not_changed_for_long_enough():
    settling = Settling(1.0)
    looks = [({"a": 1, "b": 1}, 0.0), ({"a": 1, "b": 2}, 0.9), ({"a": 1, "b": 2}, 1.0), ({"b": 2}, 2.0)]
    assert [settling.look(stamps, now) for stamps, now in looks] == [set(), set(), {"a"}, {"b"}]
    assert settling.look({"a": 1}, 9.0) == set()  # it was away


@pytest.mark.parametrize("how", [{"settle_s": -1.0}, {"idle_s": float("nan")}, {"every_s": float("inf")}])
def test_times_that_are_none_are_refused(how):
    with pytest.raises(ParameterError, match="expected seconds"):
        Rhythm(**how)
