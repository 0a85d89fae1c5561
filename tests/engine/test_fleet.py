"""Workers of a Dask cluster that hang, do not come, or have less memory than others."""

import threading

import pytest

from segtrust.engine.cluster import run_on_dask
from segtrust.engine.fleet import Fleet
from tests.engine.dask_parts import scheduler, small_cluster, worker
from tests.engine.works import cases, expected, hold_back_once, name_length, slow, stop_once, take_long
from tests.processes import wait_until

NAMES = [f"case {number}" for number in range(12)]
MB = 10**6
pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]


def outcomes(work, found, address):
    given = list(run_on_dask(work, found, address, workers=1, budget=None))
    assert len(given) == len({case.id for case, _ in given})  # each once
    return {case.id: outcome for case, outcome in given}


@pytest.mark.parametrize(("work", "name"), [(stop_once, "stops"), (hold_back_once, "held")])
def test_a_worker_that_hangs_holds_up_nobody(tmp_path, monkeypatch, work, name):
    """In its work, or with a result that it keeps; the scheduler would wait for it for five minutes."""
    monkeypatch.setattr("segtrust.engine.fleet._PATIENCE_S", 1.0)
    names = [NAMES[0], name, *NAMES[1:]]
    with scheduler(tmp_path) as (process, address), worker(address, tmp_path), worker(address, tmp_path):
        end = threading.Timer(100, process.kill)  # instead of waiting for ever
        end.start()
        assert outcomes(work, cases(names, tmp_path), address) == expected(names)
        end.cancel()
    assert list(tmp_path.glob(f"{name}.{name[:3]}*"))  # so it did hang


def large(names, folder):
    """Cases with files that would take 300 MB of memory, and no room on the disk."""
    found = cases(names, folder)
    for case in found:
        with case.probabilities.path.open("wb") as file:
            file.truncate(150 * MB)
    return found


def pids(folder, names):
    return {int((folder / f"{name}.pid").read_text()) for name in names}


def test_large_cases_go_to_workers_that_have_room(tmp_path):
    with (
        scheduler(tmp_path) as (_, address),
        worker(address, tmp_path, memory="500MB") as small,
        worker(address, tmp_path, memory="1GB") as roomy,
    ):
        wait_for(address, 2)
        found = [*cases(NAMES, tmp_path), *large(["large 0", "large 1", "large 2"], tmp_path)]
        given = outcomes(slow, found, address)
        assert given == expected([case.id for case in found])
        assert pids(tmp_path, ["large 0", "large 1", "large 2"]) == {roomy.pid}
        assert pids(tmp_path, NAMES) == {small.pid, roomy.pid}


def test_large_cases_wait_for_another_worker_with_room_when_theirs_dies(tmp_path):
    names = [f"large {number}" for number in range(8)]
    with (
        scheduler(tmp_path) as (_, address),
        worker(address, tmp_path, memory="500MB") as small,
        worker(address, tmp_path, memory="1GB") as roomy,
    ):
        wait_for(address, 2)
        running = run_on_dask(slow, large(names, tmp_path), address, workers=1, budget=None)
        given = [next(running), next(running)]
        roomy.kill()
        with worker(address, tmp_path, memory="1GB"):
            given += running
    assert {case.id: outcome for case, outcome in given} == expected(names)
    assert len(given) == len(names)
    assert small.pid not in pids(tmp_path, names)


def wait_for(address, workers):
    import distributed

    with distributed.Client(address, set_as_default=False) as client:
        wait_until(lambda: len(client.nthreads()) == workers)


def test_a_cluster_without_workers_is_told_and_waited_for(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("segtrust.engine.absence._SILENCE_S", 0.5)
    monkeypatch.setattr("segtrust.engine.absence._AGAIN_S", 0.5)
    monkeypatch.setattr("segtrust.engine.fleet._LOOK_S", 0.1)
    with small_cluster(workers=0) as (cluster, _):
        address = cluster.scheduler_address
        late = threading.Timer(2.0, cluster.scale, [1])
        late.start()
        found = outcomes(name_length, cases(NAMES[:3], tmp_path), address)
        late.join()
    told = [each.getMessage() for each in caplog.records if each.name == "segtrust.engine.absence"]
    assert found == expected(NAMES[:3])
    assert 2 <= len(told) <= 5
    assert f"the scheduler {address} has had no worker for 1 s" in told[1]
    assert f"dask worker {address}" in told[0]


def test_a_cluster_that_has_workers_is_left_in_peace(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("segtrust.engine.absence._SILENCE_S", 0.0)
    monkeypatch.setattr("segtrust.engine.fleet._LOOK_S", 0.1)
    with small_cluster(workers=1) as (cluster, _):
        outcomes(slow, cases(NAMES[:6], tmp_path), cluster.scheduler_address)
    assert not [each for each in caplog.records if each.name == "segtrust.engine.absence"]


def test_a_case_that_was_sent_twice_has_taken_as_long_as_the_answer_that_came(tmp_path, monkeypatch):
    """Counted from the second time it would seem quick, and others like it would be sent twice too."""
    import distributed

    monkeypatch.setattr("segtrust.engine.fleet._PATIENCE_S", 0.5)
    monkeypatch.setattr("segtrust.engine.fleet._LOOK_S", 0.2)
    sent = []
    with small_cluster(workers=2) as (_, client):
        fleet = Fleet(distributed, client, take_long)
        send = fleet._send
        monkeypatch.setattr(fleet, "_send", lambda flight: (sent.append(flight.case.id), send(flight)))
        names = [*NAMES[:4], "long"]
        found = {case.id: outcome for case, outcome in fleet.run(cases(names, tmp_path))}
    assert found == expected(names)
    assert sent.count("long") >= 2
    assert max(fleet._took) >= 2.5
