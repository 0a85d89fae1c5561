"""Files that end or stop the process that reads them, through the command line: one failure each."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.engine import write_masks
from tests import plugged
from tests.behaviour.helpers import read_csv
from tests.commands import segtrust_process
from tests.engine.files import write_maps
from tests.tuning_cases import blob

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="signals of Linux")
WATCH = ("--watch", "--settle", "0.1", "--idle", "0.3")


@pytest.fixture
def score(tmp_path):
    """Return a function that scores three maps and one whose reader does something."""
    package = plugged.trap_package(tmp_path / "packages")
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    write_maps(tmp_path / "maps", 3)

    def score_with(does, *options):
        plugged.write_trap(
            tmp_path / "maps/trap.trap", blob(9, shape=(200, 200)).prediction.probabilities, does
        )
        command = ("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
        done = segtrust_process(*command, *options, env={**os.environ, "PYTHONPATH": path}, timeout=60)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert [row["case"] for row in read_csv(tmp_path / "scores.csv")] == [
            f"case_{number:03d}" for number in range(3)
        ]
        (failure,) = read_csv(tmp_path / "failures.csv")
        assert (failure["case"], Path(failure["file"]).name) == ("trap", "trap.trap")
        return failure

    return score_with


@pytest.mark.parametrize("workers", [1, 2])
def test_a_map_that_is_truncated_while_it_is_mapped(score, workers):
    """Attack 4: SIGBUS ended `score` with one worker, without a message or a table."""
    failure = score("truncate always", "--workers", workers)
    assert failure["kind"] == "Quarantined"
    assert f"exited with code {-signal.SIGBUS}" in failure["reason"]


@pytest.mark.slow
def test_a_map_that_is_truncated_while_it_is_mapped_and_its_folder_watched(score):
    """Attack 4: SIGBUS ended the watch. The map is read again, which tells that it is truncated."""
    assert "mmap length is greater than file size" in score("truncate", *WATCH)["reason"]


def test_a_reader_that_raises_an_interrupt(score):
    """It used to end the whole run, as if somebody had pressed Ctrl-C."""
    assert "died twice on this case: it exited with code 1." in score("interrupt")["reason"]


def test_a_reader_that_is_killed(score):
    assert f"exited with code {-signal.SIGKILL}" in score("kill")["reason"]


@pytest.mark.needs("pyarrow")
def test_a_map_that_ends_its_reader_while_an_estimator_learns_from_the_set(tmp_path):
    """TLA reads all maps of a set before they are scored: one that ends its process is one failure."""
    package = plugged.trap_package(tmp_path / "packages")
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    write_maps(tmp_path / "maps", 6, truths=tmp_path / "truth")
    trap = tmp_path / "maps/trap.trap"
    plugged.write_trap(trap, blob(9, shape=(200, 200)).prediction.probabilities, "truncate always")
    np.save(tmp_path / "truth/trap.npy", np.zeros((200, 200), np.uint8))
    command = ("evaluate", tmp_path / "maps", "--truth", tmp_path / "truth", "--estimators", "sdc,tla")
    done = segtrust_process(
        *command, "-o", tmp_path / "out", env={**os.environ, "PYTHONPATH": path}, timeout=120
    )
    assert done.returncode == 1, done.stderr
    (failure,) = read_csv(tmp_path / "out/failures.csv")
    assert failure["case"] == "trap"
    assert "tla" in (tmp_path / "out/tables/areas.csv").read_text()


def test_a_map_that_ends_its_reader_while_masks_are_written(tmp_path, monkeypatch):
    with plugged.installed(monkeypatch, plugged.trap_package(tmp_path / "packages")):
        trap = tmp_path / "maps/trap.trap"
        write_maps(tmp_path / "maps", 2)
        plugged.write_trap(trap, blob(9).prediction.probabilities)
        table = st.score_cases(tmp_path / "maps", ["sdc"], progress=False)
        trap.with_suffix(".does").write_text("kill")
        (failure,) = write_masks(tmp_path / "masks", table.rows, table.about, {})
    assert failure.case == "trap"
    assert "the process that read them exited with code -9" in failure.reason
    assert len(list((tmp_path / "masks").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), WATCH], ids=["one worker", "watch"])
def test_a_reader_that_hangs(score, options):
    failure = score("hang", "--timeout", "3s", *options)
    assert failure["kind"] == "TimeLimit"
    assert "took longer than 3 seconds" in failure["reason"]
