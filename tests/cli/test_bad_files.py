"""Files that end or stop the process that reads them, through the command line: one failure each."""

import os
import signal
from pathlib import Path

import pytest

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
    assert f"exit code {-signal.SIGBUS}" in failure["reason"]


@pytest.mark.slow
def test_a_map_that_is_truncated_while_it_is_mapped_and_its_folder_watched(score):
    """Attack 4: SIGBUS ended the watch. The map is read again, which tells that it is truncated."""
    assert "mmap length is greater than file size" in score("truncate", *WATCH)["reason"]


def test_a_reader_that_is_killed(score):
    assert f"exit code {-signal.SIGKILL}" in score("kill")["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), WATCH], ids=["one worker", "watch"])
def test_a_reader_that_hangs(score, options):
    failure = score("hang", "--timeout", "3s", *options)
    assert failure["kind"] == "TimeLimit"
    assert "took longer than 3 seconds" in failure["reason"]
