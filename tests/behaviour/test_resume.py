"""Runs that are killed and resumed, spread over workers or an array of jobs: always the same table."""

import csv
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from tests.behaviour.helpers import assert_same, read_csv
from tests.behaviour.maps import FLAT, blob, write_cases
from tests.commands import segtrust

CASES = 40
TIMES = ("seconds",)
POSIX = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process as POSIX does")


def command(folder, *options):
    return (
        "score",
        folder / "maps",
        "-o",
        folder / "out/scores.csv",
        "--truth",
        folder / "truth",
        "--details",
        *options,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Forty cases, one of them broken, large enough that scoring them all takes a while; and their table."""
    folder = tmp_path_factory.mktemp("cases")
    write_cases(folder / "maps", CASES, shape=(900, 1200), truths=folder / "truth")
    p = blob(FLAT)
    p[1, 2] = np.nan
    np.save(folder / "maps/case_007.npy", p)
    done = segtrust(*command(folder))
    assert done.returncode == 1, done.stderr
    rows = read_csv(folder / "out/scores.csv", without=TIMES)
    assert len(rows) == CASES - 1
    shutil.move(folder / "out", folder / "unbroken")
    return folder, rows


def written(folder):
    """Return the size of the files of a run: its log grows with each finished case."""
    return sum(path.stat().st_size for path in folder.glob("**/*") if not path.name.endswith("-journal"))


def start_and_kill(folder, size, *options):
    """Start a run and kill it when its files have this size; return whether that was before its table."""
    running = subprocess.Popen(
        [sys.executable, "-m", "segtrust", *map(str, command(folder, *options))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end, now = time.monotonic() + 120, 0
        while now < size and running.poll() is None and time.monotonic() < end:
            with suppress(FileNotFoundError):  # a file was replaced meanwhile
                now = written(folder / "out")
            time.sleep(0.001)
    finally:
        running.kill()
        running.wait()
    left = [path.name for path in (folder / "out").iterdir()]
    is_written = any(name == "scores.csv" or name.endswith(".part") for name in left)
    return running.returncode == -signal.SIGKILL and not is_written


def kill_midway(folder, *options):
    """Kill a run that has finished some of its cases, and not all, and keep a copy of what it leaves."""
    for size in (40_000, 36_000, 32_000, 28_000):  # less where the run was over before it could be killed
        for name in ("out", "kept"):
            shutil.rmtree(folder / name, ignore_errors=True)
        if start_and_kill(folder, size, *options):
            shutil.copytree(folder / "out", folder / "kept")
            return
    pytest.fail("every run was over before it could be killed")


def resume(folder, expected):
    """Resume a run from what was left, check its table, and return the time of each case."""
    out = folder / "out"
    shutil.rmtree(out)
    shutil.copytree(folder / "kept", out)
    done = segtrust(*command(folder))
    assert done.returncode == 1, done.stderr
    assert_same(read_csv(out / "scores.csv", without=TIMES), expected)
    assert [row["case"] for row in read_csv(out / "failures.csv")] == ["case_007"]
    return [row["seconds"] for row in read_csv(out / "scores.csv")]


@POSIX
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one worker", "two workers"])
def test_a_run_that_was_killed_is_resumed(made, options):
    """The same table as without the kill, and what was finished before it is not scored again.

    The run is resumed twice from the same state. Rows with the same time in both were kept from before the
    kill: a case that is scored twice never takes the same time to the last digit.
    """
    folder, expected = made
    kill_midway(folder, *options)
    first, second = resume(folder, expected), resume(folder, expected)
    kept = sum(one == other for one, other in zip(first, second, strict=True))
    assert 0 < kept < CASES - 1


def test_a_finished_run_is_not_scored_again(tmp_path):
    write_cases(tmp_path / "maps", 4, truths=tmp_path / "truth")
    tables = []
    for options in ((), (), ("--no-resume",)):
        assert segtrust(*command(tmp_path, *options)).returncode == 0
        tables.append(read_csv(tmp_path / "out/scores.csv"))
    seconds = [[row["seconds"] for row in rows] for rows in tables]
    assert seconds[0] == seconds[1]
    assert seconds[0] != seconds[2]
    for rows in tables[1:]:
        assert_same(without_times(rows), without_times(tables[0]))


def without_times(rows):
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def test_what_changed_or_came_is_scored(tmp_path):
    """Cases that are added, removed or changed between two runs of the same command."""
    write_cases(tmp_path / "maps", 4, truths=tmp_path / "truth")
    assert segtrust(*command(tmp_path)).returncode == 0
    before = {row["case"]: row for row in read_csv(tmp_path / "out/scores.csv")}
    np.save(tmp_path / "maps/case_001.npy", blob((11, 17), at=0.2))
    (tmp_path / "maps/case_002.npy").unlink()
    (tmp_path / "truth/case_002.npy").unlink()
    write_cases(tmp_path / "maps", 1, truths=tmp_path / "truth", first=4)
    done = segtrust(*command(tmp_path))
    assert done.returncode == 2
    assert "it has 1 cases that are not among those given now, such as case_002" in done.stderr
    assert segtrust(*command(tmp_path, "--overwrite")).returncode == 0
    after = {row["case"]: row for row in read_csv(tmp_path / "out/scores.csv")}
    assert list(after) == ["case_000", "case_001", "case_003", "case_004"]
    kept = [case for case in after if after[case] == before.get(case)]
    assert kept == ["case_000", "case_003"]


def test_another_estimator_adds_its_column(tmp_path):
    write_cases(tmp_path / "maps", 3, truths=tmp_path / "truth")
    for names in ("sdc", "amsp", "sdc"):
        assert segtrust(*command(tmp_path, "--estimators", names)).returncode == 0
    added = read_csv(tmp_path / "out/scores.csv", without=TIMES)
    assert segtrust(*command(tmp_path, "--estimators", "sdc,amsp", "--no-resume")).returncode == 0
    assert_same(read_csv(tmp_path / "out/scores.csv", without=TIMES), added)
    done = segtrust(*command(tmp_path, "--threshold", "0.4"))
    assert done.returncode == 2
    assert "it was made with threshold 0.5 (now 0.4)" in done.stderr
    assert "{" not in done.stderr


def test_workers_and_job_arrays_give_the_same_table(made):
    folder, expected = made
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    done = segtrust(*command(folder, "--workers", 2))
    assert done.returncode == 1, done.stderr
    assert_same(read_csv(out / "scores.csv", without=TIMES), expected)
    parts = [out / f"part-{part}.csv" for part in range(3)]
    sizes = []
    for part, path in enumerate(parts):
        array = ("--num-parts", 3, "--part-id", part)
        done = segtrust(
            "score", folder / "maps", "-o", path, "--truth", folder / "truth", "--details", *array
        )
        assert done.returncode in (0, 1), done.stderr
        sizes.append(len(read_csv(path)))
    assert sum(sizes) == CASES - 1
    assert min(sizes) > 0
    merged = segtrust("merge", *parts, "-o", out / "merged.csv", "--details")
    assert merged.returncode == 1, merged.stderr  # one case failed
    assert_same(read_csv(out / "merged.csv", without=TIMES), expected)
    assert segtrust("merge", *parts[:2], "-o", out / "two.csv").returncode == 2
    assert not (out / "two.csv").exists()


def test_cases_from_other_files_are_rejected(tmp_path):
    """Issue 24: "Different input is rejected unless `--overwrite` is given." Models share names of files."""
    for number, model in enumerate(("one", "two")):
        write_cases(tmp_path / model, 3)
        np.save(tmp_path / model / "case_001.npy", blob(FLAT, at=0.3 + 0.2 * number))
    truths = tmp_path / "truth"
    write_cases(tmp_path / "other", 3, truths=truths)
    out = tmp_path / "scores.csv"
    assert segtrust("score", tmp_path / "one", "-o", out).returncode == 0
    before = out.read_bytes()
    other = segtrust("score", tmp_path / "two", "-o", out)
    assert other.returncode == 2
    changed = f"3 of its cases were scored from other files: the map of case_000 was {tmp_path}/one"
    assert changed in other.stderr
    assert "--overwrite" in other.stderr
    assert out.read_bytes() == before
    (tmp_path / "link").symlink_to(tmp_path / "one", target_is_directory=True)
    assert segtrust("score", tmp_path / "link", "-o", out).returncode == 0  # the same files
    with_truth = ("score", tmp_path / "one", "--truth", truths, "-o", out)
    assert segtrust(*with_truth).returncode == 0  # ground truth is added
    assert "dice" in read_csv(out)[0]
    without = segtrust("score", tmp_path / "one", "-o", out)
    assert (without.returncode, "the ground truth of case_000 was" in without.stderr) == (2, True)
    assert "dice" in read_csv(out)[0]
    assert segtrust("score", tmp_path / "two", "-o", out, "--overwrite").returncode == 0
    assert "dice" not in read_csv(out)[0]
    assert read_csv(out)[1]["sdc"] != read_csv_of(before)[1]["sdc"]


def read_csv_of(content):
    return list(csv.DictReader(content.decode().splitlines()))
