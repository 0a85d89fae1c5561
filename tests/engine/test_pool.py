"""Cases in several processes: none is lost, and never more at a time than fit into the memory."""

import os
import signal
import sys
import threading
import time

import pytest

from segtrust.engine.pool import run_here, run_in_processes
from segtrust.engine.team import Worker
from tests.engine.works import cases, die_always, die_once, expected, name_length, note_times, slow
from tests.processes import descendants, is_running

NAMES = [f"case {number}" for number in range(9)]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")


def run(work, found, *, workers=2, budget=10, cost=lambda case: 1):
    outcomes = run_in_processes(work, found, workers=workers, budget=budget, cost=cost)
    return {case.id: outcome for case, outcome in outcomes}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_processes_changes_nothing(workers):
    here = {case.id: outcome for case, outcome in run_here(name_length, cases(NAMES))}
    assert run(name_length, cases(NAMES), workers=workers) == here == expected(NAMES)


def test_no_cases():
    assert run(name_length, []) == {}


def test_a_case_whose_process_dies_is_done_elsewhere(tmp_path):
    names = ["a", "once", "b", "once more", "c"]
    assert run(die_once, cases(names, tmp_path)) == expected(names)
    assert len(list(tmp_path.glob("*.died"))) == 2


@LINUX
def test_processes_killed_from_outside_lose_nothing(tmp_path):
    names = [f"case {number}" for number in range(12)]
    killed = []

    def kill():
        while len(killed) < 2:
            for path in list(tmp_path.glob("*.pid")):
                pid = int(path.read_text() or 0)
                if pid and pid not in killed and len(killed) < 2:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert run(slow, cases(names, tmp_path)) == expected(names)
    killer.join(10)
    assert len(killed) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_that_kills_twice_is_left_alone_and_named(tmp_path, workers):
    names = ["a", "deadly", "b", "c", "deadly too"]
    found = run(die_always, cases(names, tmp_path), workers=workers)
    assert {name: found[name] for name in "abc"} == expected("abc")
    for name in ("deadly", "deadly too"):
        failure = found[name].failure
        assert (failure.case, failure.file, failure.kind) == (
            name,
            str(tmp_path / f"{name}.npy"),
            "Quarantined",
        )
        assert "died 2 times" in failure.reason
        assert f"{name}: the process that computed it ended with exit code -9" in failure.reason
        assert (tmp_path / f"{name}.deaths").read_text() == "xx"


def flights(found):
    """Begin and end of each case."""
    return {name: (outcome.rows[0]["begin"], outcome.rows[0]["end"]) for name, outcome in found.items()}


def most_at_once(times, costs):
    """The largest sum of the costs of cases that overlap, and of how many."""
    moments = [begin for begin, _ in times.values()]
    at = [[name for name, (begin, end) in times.items() if begin <= moment < end] for moment in moments]
    return max(sum(costs[name] for name in names) for names in at), max(map(len, at))


def test_the_budget_is_never_exceeded():
    costs = {f"case {number}": cost for number, cost in enumerate([4, 4, 4, 2, 6, 1, 1, 1, 8])}
    times = flights(run(note_times, cases(costs), workers=3, budget=8, cost=lambda case: costs[case.id]))
    load, count = most_at_once(times, costs)
    assert load <= 8
    assert count >= 2


def test_a_case_larger_than_the_budget_runs_alone():
    costs = {"a": 1, "huge": 100, "b": 1, "c": 1, "d": 1}
    times = flights(run(note_times, cases(costs), workers=3, budget=4, cost=lambda case: costs[case.id]))
    begin, end = times.pop("huge")
    assert all(other_end <= begin or other_begin >= end for other_begin, other_end in times.values())


def test_what_a_case_costs_is_asked_once():
    asked = []
    run(name_length, cases(NAMES), workers=3, budget=1, cost=lambda case: asked.append(case.id) or 1)
    assert sorted(asked) == sorted(NAMES)


def raises(case):
    raise ZeroDivisionError(case.id)


def test_a_fault_of_the_work_itself_is_raised_and_nobody_is_left():
    with pytest.raises(ZeroDivisionError, match="case"):
        run(raises, cases(NAMES))


@LINUX
def test_broken_off_it_ends_its_processes(tmp_path):
    before = descendants(os.getpid())
    running = run_in_processes(slow, cases(NAMES, tmp_path), workers=2, budget=9, cost=lambda case: 1)
    next(running)
    begun = set(descendants(os.getpid())) - set(before)
    assert len(begun) >= 2
    running.close()
    left = [pid for pid in begun if is_running(pid)]
    assert len(left) <= len(begun) - 2  # the process that they are copies of is kept


def test_a_process_that_is_dead_before_it_gets_its_case_is_told_by_the_case():
    worker = Worker(name_length)
    worker._process.kill()
    worker._process.join()
    worker.begin(cases(["a"])[0])
    with pytest.raises(RuntimeError, match="a: the process that computed it ended with exit code -9"):
        worker.finish()
    worker.end()
