"""Doubling studies: they run, in processes that are warm, and count the memory of all workers."""

import subprocess
import sys

import pytest

from segtrust.io import read_table
from tools.reliability.growth import assessed, in_turns, memory_of, rows_of, studies_of
from tools.reliability.powers import Study

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")


@linux
@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_small_sizes_are_measured_and_drawn(tmp_path):
    command = [sys.executable, "-m", "tools.reliability.growth", "--small", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| cases of a folder | 10 to 20 |" in done.stdout
    assert "Warning" not in done.stderr
    voxels, _, workers = studies_of(read_table(tmp_path / "growth.csv").rows)
    assert voxels.fit("mib").power == pytest.approx(1.0, abs=0.1)  # that of the map itself
    assert voxels.base["seconds"] < min(0.005, voxels.found[1 << 22]["seconds"])  # it was not the first
    assert workers.found[2]["mib"] > workers.found[1]["mib"]  # those of the workers count
    assert (tmp_path / "growth.svg").stat().st_size > 1000


@linux
def test_a_map_is_assessed_in_a_process_that_is_warm():
    """The first one of a process takes nearly a second, in which loops are loaded."""
    assert assessed(1 << 14, times=1)["seconds"] < 0.1


def test_sizes_take_turns_and_the_least_of_each_counts():
    order = []

    def run(size, is_looked_at):
        order.append((size, is_looked_at))
        return {"mib": 7.0} if is_looked_at else {"seconds": size + 10.0 / len(order)}

    found = in_turns((1, 2), run, rounds=2)
    assert order == [(1, False), (2, False), (1, False), (2, False), (1, True), (2, True)]
    assert found == {1: {"seconds": 1 + 10 / 3, "mib": 7.0}, 2: {"seconds": 2 + 10 / 4, "mib": 7.0}}


def test_what_was_measured_can_be_told_again():
    found = {n: {"seconds": 2.0 * n, "mib": 100.0 + n} for n in (1, 2, 4)}
    studies = [Study(what, found, {"seconds": 1.0, "mib": 90.0}, 8) for what in ("cases", "workers")]
    assert studies_of([row for each in studies for row in rows_of(each)]) == studies


@linux
def test_the_memory_of_all_processes_of_a_session_counts():
    hold = "import sys; held = bytearray(b'x' * (50 << 20)); print('held', flush=True); sys.stdin.read()"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline() == b"held\n"
        assert 50 < memory_of(process.pid) < 100
        process.stdin.close()
