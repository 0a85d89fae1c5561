"""Cases on a Dask cluster of separate processes, some of which die."""

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from segtrust.engine import executors
from segtrust.engine.executors import DaskExecutor, Limits
from segtrust.engine.run_log import read_log
from segtrust.errors import ParameterError, WorkerError
from segtrust.io import read_table
from tests.commands import segtrust_process
from tests.engine.dask_parts import scheduler, small_cluster, worker
from tests.engine.works import (
    cases,
    die_always,
    die_once,
    expected,
    fill_memory,
    name_length,
    note_times,
    slow,
    take_long,
)
from tests.processes import is_running, wait_until

NAMES = [f"case {number}" for number in range(24)]
pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]


def run(work, found, address="local", *, workers=2, memory=None, seconds=None):
    given = {}
    for case, outcome in DaskExecutor(address, workers, Limits(memory, seconds)).run(work, found):
        assert case.id not in given  # each case comes once
        given[case.id] = outcome
    return given


def test_a_cluster_of_ones_own_scores_each_case_once_and_is_gone_afterwards(tmp_path):
    assert run(slow, cases(NAMES[:8], tmp_path)) == expected(NAMES[:8])
    pids = {int(path.read_text()) for path in tmp_path.glob("*.pid")}
    assert os.getpid() not in pids
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_deadly_case_is_left_alone_and_its_neighbours_are_not_blamed(tmp_path):
    names = ["once", "deadly", *NAMES]
    found = run(die_always, cases(names, tmp_path))
    failure = found.pop("deadly").failure
    assert (failure.case, failure.kind) == ("deadly", "Quarantined")
    assert failure.file == str(tmp_path / "deadly.npy")
    assert "died twice" in failure.reason
    assert "it was the only case on the cluster" in failure.reason
    assert "http" not in failure.reason
    assert found == expected(["once", *NAMES])
    assert (tmp_path / "deadly.deaths").read_text() == "xx"


def test_a_case_that_takes_too_long_is_a_failure(tmp_path):
    found = run(take_long, cases(["long", "a"], tmp_path), seconds=1)
    assert found["a"] == expected(["a"])["a"]
    assert found["long"].failure.kind == "TimeLimit"
    assert "took longer than 1 seconds" in found["long"].failure.reason


def test_a_case_that_takes_too_much_memory_is_a_failure(tmp_path):
    found = run(fill_memory, cases(["large", "a"], tmp_path), memory=300 << 20)
    assert found["a"] == expected(["a"])["a"]
    assert found["large"].failure.kind == "Quarantined"
    assert "--memory" in found["large"].failure.reason


def test_a_case_that_dies_once_is_scored(tmp_path):
    names = ["a", "once", *NAMES[:6]]
    assert run(die_once, cases(names, tmp_path)) == expected(names)


def test_cases_that_fill_the_memory_do_not_run_side_by_side(tmp_path):
    found = cases(NAMES[:6], tmp_path)
    for case in found:
        case.probabilities.path.write_bytes(bytes(1000))  # which takes 2000 bytes in memory
    outcomes = run(note_times, found, memory=2000)
    times = sorted((row["begin"], row["end"]) for each in outcomes.values() for row in each.rows)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(times))


def test_a_running_cluster_whose_worker_is_killed_in_the_middle_loses_nothing(tmp_path):
    with scheduler(tmp_path) as (_, address), worker(address, tmp_path), worker(address, tmp_path):
        killed = []

        def kill():
            while not killed:
                found = [path for path in tmp_path.glob("case *.pid") if path.read_text()]
                if len(found) >= 6:
                    killed.append(int(found[0].read_text()))
                    os.kill(killed[0], signal.SIGKILL)
                time.sleep(0.02)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        assert run(slow, cases(NAMES, tmp_path), address) == expected(NAMES)
        killer.join(10)
        assert killed
        assert not is_running(killed[0])
        assert run(name_length, cases(["after", "it"]), address) == expected(["after", "it"])


def test_the_command_gives_the_table_of_one_process_though_a_worker_is_killed(tmp_path):
    maps = tmp_path / "maps"
    maps.mkdir()
    p = np.random.default_rng(0).random((600, 500))
    for number in range(60):
        np.save(maps / f"{number:02d}.npy", p ** (1 + number / 7))
    assert segtrust_process("score", maps, "-o", tmp_path / "here.json").returncode == 0
    log = tmp_path / ".there.json.log"
    with scheduler(tmp_path) as (_, address), worker(address, tmp_path) as first, worker(address, tmp_path):
        command = ("score", maps, "-o", tmp_path / "there.json", "--dask", address)
        running = subprocess.Popen(
            [sys.executable, "-m", "segtrust", *map(str, command)], stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: log.exists() and len(read_log(log).outcomes) >= 8, pause=0.001)
        first.kill()
        assert running.poll() is None, "it came to its end before the worker was killed"
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (0, "")
    assert len(read_log(log).outcomes) == 60
    tables = [read_table(tmp_path / f"{name}.json").rows for name in ("here", "there")]
    assert [{**row, "seconds": 0} for row in tables[0]] == [{**row, "seconds": 0} for row in tables[1]]


def test_a_scheduler_that_goes_away_is_told(tmp_path):
    with scheduler(tmp_path) as (process, address), worker(address, tmp_path):
        running = DaskExecutor(address).run(slow, cases(NAMES, tmp_path))
        next(running)
        process.kill()
        with pytest.raises(WorkerError, match=r"the scheduler is gone .* Rerun the same command to resume"):
            list(running)


def test_work_that_workers_do_not_know_is_told(tmp_path):
    with scheduler(tmp_path) as (_, address), worker(address, tmp_path):
        sys.path.insert(0, str(tmp_path))
        (tmp_path / "known_here_only.py").write_text("def work(case):\n    return None\n")
        try:
            from known_here_only import work

            with pytest.raises(WorkerError, match=r"known_here_only.*Install the same"):
                run(work, cases(["a"]), address)
        finally:
            sys.path.remove(str(tmp_path))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1:9"])
def test_an_address_without_a_scheduler_is_told(address):
    import dask as settings

    with (
        settings.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        pytest.raises(ParameterError, match="dask: expected the address of a running scheduler"),
    ):
        run(name_length, cases(["a"]), address)


def large(names, folder):
    """Cases with files that would take 300 MB of memory, and no room on the disk."""
    found = cases(names, folder)
    for case in found:
        with case.probabilities.path.open("wb") as file:
            file.truncate(150 * 10**6)
    return found


def pids(folder, names):
    return {int((folder / f"{name}.pid").read_text()) for name in names}


def test_large_cases_go_to_workers_that_have_declared_enough_memory(tmp_path):
    import distributed

    with (
        scheduler(tmp_path) as (_, address),
        worker(address, tmp_path, declared=2e8) as small,
        worker(address, tmp_path, declared=5e8) as roomy,
    ):
        with distributed.Client(address, set_as_default=False) as client:
            wait_until(lambda: len(client.nthreads()) == 2)
        found = [*cases(NAMES, tmp_path), *large(["large 0", "large 1", "large 2"], tmp_path)]
        assert run(slow, found, address) == expected([case.id for case in found])
        assert pids(tmp_path, ["large 0", "large 1", "large 2"]) == {roomy.pid}
        assert pids(tmp_path, NAMES) == {small.pid, roomy.pid}


def test_a_cluster_without_workers_is_waited_for_with_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(executors, "_SILENCE_S", 0.3)
    with small_cluster(workers=0) as (cluster, _):
        address = cluster.scheduler_address
        late = threading.Timer(2.0, cluster.scale, [1])
        late.start()
        assert run(name_length, cases(NAMES[:3], tmp_path), address) == expected(NAMES[:3])
        late.join()
        warnings = [each.getMessage() for each in caplog.records if each.name == executors.__name__]
        assert f"the scheduler {address} has no workers" in warnings[0]
        caplog.clear()
        run(slow, cases(NAMES[:6], tmp_path), address)
        assert not [each for each in caplog.records if each.name == executors.__name__]


def square(number):
    return number**2


def test_tiles_of_a_huge_map_are_spread_over_a_cluster():
    with small_cluster(workers=2) as (_, client):
        results = executors.map_on_dask(client, square, range(50))
        assert list(results) == [number**2 for number in range(50)]
