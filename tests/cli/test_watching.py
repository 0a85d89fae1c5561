"""``segtrust score --watch``."""

import shutil
import signal
import subprocess

import numpy as np
import pytest

from segtrust.io import read_table
from tests.commands import segtrust
from tests.engine.files import write_maps
from tests.processes import interruptible, wait_until

pytestmark = pytest.mark.slow


def cases_in(table):
    return [row["case"] for row in read_table(table).rows] if table.exists() else []


def test_it_ends_when_nothing_more_comes(tmp_path):
    write_maps(tmp_path / "maps", 2)
    out = tmp_path / "scores.csv"
    done = segtrust("score", "--watch", tmp_path / "maps", "-o", out, "--settle", 0.1, "--idle", 0.3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 maps (`*.npy`), ")
    assert "\n2 cases scored in " in done.stdout
    assert "watching: 2 cases scored, 0 failed, 0 arriving" in done.stderr
    assert cases_in(out) == ["case_000", "case_001"]


def test_failures_are_told_at_the_end(tmp_path):
    write_maps(tmp_path / "maps", 1)
    (tmp_path / "maps/broken.npy").write_bytes(b"no map")
    out = tmp_path / "scores.csv"
    done = segtrust("score", "--watch", tmp_path / "maps", "-o", out, "--settle", 0.1, "--idle", 0.3)
    assert done.returncode == 1
    assert "1 failure; " in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["missing"], "missing: expected a folder to watch, got nothing of that name"),
        (["maps/case_000.npy"], "expected a folder to watch, got a file"),
        (["maps", "--num-parts", "2", "--part-id", "0"], "num-parts: expected 1 while folders are watched"),
        (["maps", "--write-masks", "masks"], "write-masks: expected nothing while folders are watched"),
        (["maps", "--settle", "-1"], "settle: expected seconds, 0 or more, got -1.0"),
    ],
)
def test_what_cannot_be_watched_is_2_and_one_line(tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    write_maps(tmp_path / "maps", 1)
    done = segtrust("score", "--watch", *options, "-o", "scores.csv")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_of_results_that_is_deleted_is_2_and_says_what_to_do(tmp_path):
    maps, out = tmp_path / "maps", tmp_path / "results/scores.csv"
    write_maps(maps, 1)
    command = interruptible("-m", "segtrust", "score", "--watch", maps, "-o", out, "--settle", 0.1)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: cases_in(out) == ["case_000"])
        shutil.rmtree(out.parent)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    error = said.splitlines()[-1]
    assert ".scores.csv.log: the log of this run was deleted or replaced" in error
    assert "Rerun the same command" in error
    assert "Traceback" not in said


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_watch_that_is_stopped_has_its_table_and_goes_on(tmp_path, how):
    maps, out = tmp_path / "maps", tmp_path / "scores.csv"
    write_maps(maps, 2)
    command = ["-m", "segtrust", "score", "--watch", maps, "-o", out, "--settle", "0.1"]
    with subprocess.Popen(
        interruptible(*command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: len(cases_in(out)) == 2)
        process.send_signal(how)
        said, _ = process.communicate(timeout=60)
    if how != signal.SIGKILL:
        assert process.returncode == 0
        assert "\n2 cases scored " in said.decode()
    np.save(maps / "next.npy", np.full((4, 4), 0.9))
    done = segtrust("score", "--watch", maps, "-o", out, "--settle", 0.1, "--idle", 0.3)
    assert done.returncode == 0
    assert cases_in(out) == ["case_000", "case_001", "next"]
