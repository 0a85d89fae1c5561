"""Cases in worker processes: none is lost, and each that harms its process is one named failure."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.files import make_zarr
from segtrust._processes import block_interrupts
from segtrust.confidence import get_estimators
from segtrust.engine import executors
from segtrust.engine.executors import (
    DaskExecutor,
    InProcessExecutor,
    Limits,
    ProcessExecutor,
    Sandbox,
    WorkerGroup,
    available_memory,
    compute_in_processes,
    is_huge,
    make_executor,
    spread_over_processes,
)
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import ParameterError, WorkerError
from segtrust.io import ArrayRef, CaseFiles, ReadOptions, find_cases
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
    touch_truncated,
)
from tests.processes import descendants, interruptible, is_running

NAMES = [f"case {number}" for number in range(9)]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")
MIB = 1 << 20


def run(work, found, *, workers=2, memory=10, seconds=None, cost=lambda case: 1):
    executor = ProcessExecutor(workers, Limits(memory, seconds), cost)
    try:
        outcomes = list(executor.run(work, found))
    finally:
        executor.close()
    assert len({case.id for case, _ in outcomes}) == len(outcomes)  # each comes once
    return {case.id: outcome for case, outcome in outcomes}


# Executors


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(workers):
    here = {case.id: outcome for case, outcome in InProcessExecutor().run(name_length, cases(NAMES))}
    assert run(name_length, cases(NAMES), workers=workers) == here == expected(NAMES)


@pytest.mark.parametrize(
    ("limits", "told"),
    [({"seconds": "5min"}, "timeout"), ({"seconds": 0}, "timeout"), ({"seconds": float("nan")}, "timeout"),
     ({"memory": "8GiB"}, "memory"), ({"memory": -1}, "memory")],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_rejected(limits, told):
    with pytest.raises(ParameterError, match=f"{told}: expected a positive number"):
        Limits(**limits)


UNGUARDED = """
import sys
from pathlib import Path
import segtrust as st
from segtrust.confidence import ConfidenceEstimator, SoftDice

class Mine(SoftDice):
    name = "mine"

print("started")
st.score_cases(Path(sys.argv[1]), [Mine()], progress=False)
"""


def test_an_estimator_of_an_unguarded_script_is_one_error_and_no_failure_of_a_case(tmp_path):
    np.save(tmp_path / "a.npy", np.full((8, 8), 0.7))
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "a.npy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "WorkerError: Worker processes exit with code 1 before their first task" in done.stderr
    assert "move into a module" in done.stderr


def test_no_cases():
    assert run(name_length, []) == {}


@pytest.mark.parametrize("workers", [1, 2])
def test_this_process_reads_no_case_itself(workers):
    pids = {outcome.rows[0]["pid"] for outcome in run(note_times, cases("abc"), workers=workers).values()}
    assert os.getpid() not in pids
    assert len(pids) <= workers


@pytest.mark.parametrize(
    ("options", "kind"), [((), ProcessExecutor), ((0,), InProcessExecutor), ((2, "h:1"), DaskExecutor)]
)
def test_options_choose_an_executor(options, kind):
    assert type(make_executor(*options)) is kind


@pytest.mark.parametrize("workers", [-2, 1.5, "2"])
def test_workers_are_a_whole_number(workers):
    with pytest.raises(ParameterError, match=f"workers: expected a whole number, 0 or more, got {workers!r}"):
        make_executor(workers)


def test_an_address_may_lack_its_protocol():
    assert (DaskExecutor("node7:8786").address, DaskExecutor("local").address) == (
        "tcp://node7:8786",
        "local",
    )


def test_a_case_whose_process_dies_is_done_by_another(tmp_path):
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
def test_a_case_that_kills_two_processes_is_skipped_and_named(tmp_path, workers):
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
        assert "died twice" in failure.reason
        assert "it exited with code -9" in failure.reason
        assert (tmp_path / f"{name}.deaths").read_text() == "xx"


@LINUX
@pytest.mark.parametrize("workers", [1, 2])
def test_a_memory_map_that_is_truncated_is_one_failure(tmp_path, workers):
    """Attack 4: SIGBUS. With one worker it used to end the whole run."""
    found = run(touch_truncated, cases(["a", "cut", "b"], tmp_path), workers=workers)
    assert found["cut"].failure.kind == "Quarantined"
    assert (
        f"exited with code {-signal.SIGBUS} (often a file that was truncated" in found["cut"].failure.reason
    )
    assert {name: found[name] for name in "ab"} == expected("ab")


@LINUX
@pytest.mark.parametrize("workers", [1, 2])
def test_a_case_that_needs_too_much_memory_is_one_failure(tmp_path, workers):
    found = run(fill_memory, cases(["a", "large", "b"], tmp_path), workers=workers, memory=300 * MIB)
    failure = found["large"].failure
    assert failure.kind == "MemoryLimit"
    assert failure.reason.startswith(
        f"{tmp_path / 'large.npy'}: needed more than 300 MiB of memory. Allow more"
    )
    assert {name: found[name] for name in "ab"} == expected("ab")


@LINUX
def test_a_case_that_is_killed_for_the_memory_of_others_is_tried_alone(tmp_path):
    names = ["large 1", "large 2", "a"]
    found = run(fill_memory, cases(names, tmp_path), memory=900 * MIB)
    assert found == expected(names)


def test_a_case_that_takes_too_long_is_one_failure(tmp_path):
    found = run(take_long, cases(["a", "long", "b"], tmp_path), seconds=1.0)
    assert found["long"].failure.kind == "TimeLimit"
    assert "long.npy: took longer than 1 seconds. Allow more with --timeout" in found["long"].failure.reason
    assert {name: found[name] for name in "ab"} == expected("ab")


def flights(found):
    """Begin and end of each case."""
    return {name: (outcome.rows[0]["begin"], outcome.rows[0]["end"]) for name, outcome in found.items()}


def most_at_once(times, costs):
    """The largest sum of the costs of cases that overlap, and of how many."""
    moments = [begin for begin, _ in times.values()]
    at = [[name for name, (begin, end) in times.items() if begin <= moment < end] for moment in moments]
    return max(sum(costs[name] for name in names) for names in at), max(map(len, at))


def test_the_announced_memory_is_never_exceeded():
    costs = {f"case {number}": cost for number, cost in enumerate([4, 4, 4, 2, 6, 1, 1, 1, 8])}
    times = flights(run(note_times, cases(costs), workers=3, memory=8, cost=lambda case: costs[case.id]))
    load, count = most_at_once(times, costs)
    assert load <= 8
    assert count >= 2


def test_a_case_larger_than_the_memory_runs_alone():
    costs = {"a": 1, "huge": 100, "b": 1, "c": 1, "d": 1}
    times = flights(run(note_times, cases(costs), workers=3, memory=4, cost=lambda case: costs[case.id]))
    begin, end = times.pop("huge")
    assert all(other_end <= begin or other_begin >= end for other_begin, other_end in times.values())


def test_the_size_of_a_case_is_asked_for_once():
    asked = []
    run(name_length, cases(NAMES), workers=3, memory=1, cost=lambda case: asked.append(case.id) or 1)
    assert sorted(asked) == sorted(NAMES)


def raises(case):
    raise ZeroDivisionError(case.id)


def test_an_error_of_the_work_itself_is_raised():
    with pytest.raises(ZeroDivisionError, match="case"):
        run(raises, cases(NAMES))


@LINUX
def test_processes_stay_for_the_next_run_and_end_with_the_executor(tmp_path):
    before = set(descendants(os.getpid()))
    executor = ProcessExecutor(2)
    pids = [
        {outcome.rows[0]["pid"] for _, outcome in executor.run(note_times, cases("abcd"))} for _ in range(2)
    ]
    assert pids[0] == pids[1]
    executor.close()
    assert not any(map(is_running, pids[0]))
    running = executor.run(slow, cases(NAMES, tmp_path))
    next(running)
    begun = set(descendants(os.getpid())) - before
    running.close()
    assert len([pid for pid in begun if is_running(pid)]) <= len(begun) - 2  # the fork server stays


def test_memory_can_be_told():
    assert available_memory() > MIB
    assert Limits(2 << 30).memory_limit() == 2 << 30
    assert Limits().memory_limit() > MIB


# Single tasks and calls


def rest(seconds):
    time.sleep(seconds)
    return seconds


def square(number):
    return number**2


def fail_at_two(number):
    if number == 2:
        raise ZeroDivisionError("two")
    return number


def die_at_two(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def large(number):
    return np.zeros(3_000_000) + number  # far more than a pipe holds


def cannot_be_sent(number):
    return lambda: number


class NeedsTwoError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fail_with_two(number):
    raise NeedsTwoError("one", "two")


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_each_task_comes_with_its_result(workers):
    assert dict(compute_in_processes(square, range(7), workers)) == {number: number**2 for number in range(7)}
    assert list(compute_in_processes(square, [], workers)) == []


def test_an_error_is_raised_here_and_says_where_it_happened():
    with pytest.raises(ZeroDivisionError, match="two") as found:
        dict(compute_in_processes(fail_at_two, range(5), 2))
    assert "in fail_at_two" in str(found.value.__cause__)


def test_a_process_that_is_killed_is_told_from_its_task():
    with pytest.raises(WorkerError, match=r"2: the process that computed it exited with code -9"):
        dict(compute_in_processes(die_at_two, range(5), 2))


def test_what_cannot_be_sent_is_an_error():
    with pytest.raises(Exception, match=r"pickle|local object"):
        dict(compute_in_processes(cannot_be_sent, range(2), 2))
    with pytest.raises(WorkerError, match="NeedsTwoError: one and two"):
        dict(compute_in_processes(fail_with_two, range(2), 2))


def test_broken_off_while_large_results_are_on_their_way():
    for taken in range(6):
        found = compute_in_processes(large, range(8), 2)
        for _ in range(taken):
            next(found)
        time.sleep(0.02 * taken)
        found.close()
    assert threading.active_count() < 20


def test_a_task_is_not_killed_for_the_memory_of_the_one_before(monkeypatch):
    measuring, next_begun = threading.Event(), threading.Event()

    def measure(pids):
        """Return the memory of a task that has finished meanwhile."""
        first, _ = not measuring.is_set(), measuring.set()
        next_begun.wait(10)
        return [(10 << 30) * first for _ in pids]

    with WorkerGroup(rest, 1, Limits(memory=300 * MIB)) as group:
        group.submit(0.0)
        group.finished()  # the process has begun
        monkeypatch.setattr(executors, "_private_memory", measure)
        group.submit(0.5)
        assert measuring.wait(10)
        assert group.finished() == [(0.5, 0.5)]
        group.submit(0.6)
        next_begun.set()
        assert group.finished() == [(0.6, 0.6)]


@LINUX
def test_a_sandbox_survives_all_its_calls_from_several_threads(tmp_path):
    with Sandbox(memory=300 * MIB, seconds=20) as sandbox:
        first = sandbox.call(os.getpid)
        assert sandbox.call(os.getpid) == first  # it stays warm
        with pytest.raises(WorkerError, match="exited with code -9"):
            sandbox.call(die_at_two, 2)
        with pytest.raises(ZeroDivisionError):
            sandbox.call(fail_at_two, 2)
        with pytest.raises(WorkerError, match="needed more than 300 MiB"):
            sandbox.call(fill_memory, cases(["large"])[0])
        results = []
        threads = [
            threading.Thread(target=lambda number=number: results.append(sandbox.call(square, number)))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [number**2 for number in range(8)]


def test_a_process_that_died_while_it_was_idle_is_replaced():
    with WorkerGroup(square, 1) as group:
        group.submit(2)
        assert group.finished() == [(2, 4)]
        group._idle[0]._process.kill()
        group._idle[0]._process.join()
        group.submit(3)
        ((task, result),) = group.finished()
        assert task == 3
        assert result == 9 or isinstance(result, WorkerError)


INTERRUPTED = """
    import numpy as np
    from segtrust.engine.executors import compute_in_processes

    def large(number):
        return np.zeros(3_000_000)

    if __name__ == "__main__":
        for task, _ in compute_in_processes(large, range(10**6), 2):
            print(task, flush=True)
"""


@pytest.mark.slow
@LINUX
def test_interrupted_at_many_moments_it_always_ends(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    rng = np.random.default_rng(0)
    for _ in range(25):
        with subprocess.Popen(
            interruptible(script), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as running:
            running.stdout.readline()
            time.sleep(rng.uniform(0, 0.3))
            os.killpg(running.pid, signal.SIGINT)
            try:
                assert running.wait(timeout=20) != 0
            finally:
                running.kill()


def interrupt_inside(reached):
    with block_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        reached.append(True)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here")
def test_processes_start_with_interrupts_blocked_and_here_they_wait():
    shows_its_mask = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGINT)
    with block_interrupts():
        said = subprocess.check_output([sys.executable, "-c", shows_its_mask], text=True)
    assert said.strip() == "True"
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    reached = []
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt_inside(reached)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert reached
    assert (signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGINT)) == before


# Huge maps


def fail_at_forty(number):
    if number == 40:
        raise ValueError("forty is too many")
    return number


def test_results_come_in_the_order_of_the_tiles():
    with spread_over_processes(2) as mapper:
        assert list(mapper(square, range(100))) == [number**2 for number in range(100)]
        assert list(mapper(square, [])) == []
        with pytest.raises(ValueError, match="forty is too many"):
            list(mapper(fail_at_forty, range(100)))


@pytest.fixture
def small_is_huge(monkeypatch):
    """Workers are forks of a process that does not know of patches, so sizes are set where they start."""
    monkeypatch.setattr(executors, "_HUGE", 1 << 16)
    monkeypatch.setattr("segtrust.io.formats._common._AT_ONCE", 1 << 16)


def score_in_this_process(job, case, workers):
    """Do what a worker process does."""
    return executors._Spreading(job, workers)(case)


@pytest.mark.needs("zarr")
class TestZarr:
    ALL = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla")

    def test_what_is_huge(self, tmp_path, small_is_huge):
        make_zarr(tmp_path / "large.zarr", side=40)
        make_zarr(tmp_path / "small.zarr", side=8)
        np.save(tmp_path / "large.npy", np.zeros((100, 1000), np.float32))
        found = {
            name: is_huge(CaseFiles("a", ArrayRef(tmp_path / name)))
            for name in ("large.zarr", "small.zarr", "large.npy", "none.zarr")
        }
        assert found == {"large.zarr": True, "small.zarr": False, "large.npy": False, "none.zarr": False}
        masked = CaseFiles("a", ArrayRef(tmp_path / "large.zarr"), mask=ArrayRef(tmp_path / "large.npy"))
        assert not is_huge(masked), "its mask would be sent with each tile"

    @pytest.mark.parametrize("with_mask", [False, True])
    def test_two_processes_give_what_one_gives(self, tmp_path, small_is_huge, with_mask):
        import zarr

        p = make_zarr(tmp_path / "p.zarr", side=96)
        case = CaseFiles("p", ArrayRef(tmp_path / "p.zarr"))
        if with_mask:
            mask = zarr.create_array(
                store=str(tmp_path / "mask.zarr"), shape=p.shape, chunks=(32, 48, 96), dtype="uint8"
            )
            mask[:] = (np.asarray(p[:]) > 0.3).astype(np.uint8)
            case = replace(case, mask=ArrayRef(tmp_path / "mask.zarr"))
        job = ScoreJob(tuple(get_estimators(self.ALL)))
        rows = []
        for workers in (1, 2):
            outcome = score_in_this_process(job, case, workers)
            assert outcome.failure is None, outcome.failure
            rows.append({name: value for name, value in outcome.rows[0].items() if name != "seconds"})
        assert rows[0] == rows[1]
        assert (rows[0]["mask_difference"] is None) != with_mask

    def test_huge_and_small_cases_in_one_run(self, tmp_path):
        import zarr

        zarr.create_array(
            store=str(tmp_path / "p.zarr"),
            shape=(1030, 512, 512),
            chunks=(103, 512, 512),
            dtype="float32",
            fill_value=0.75,
        )[:103] = 0.25
        np.save(tmp_path / "q.npy", np.full((4, 5), 0.25))
        assert is_huge(CaseFiles("p", ArrayRef(tmp_path / "p.zarr")))
        job = ScoreJob(tuple(get_estimators(["sdc", "amsp"])), ReadOptions(fill_missing=True))
        outcomes = run(job, find_cases([tmp_path]).cases, memory=None)
        assert {name: outcome.failure for name, outcome in outcomes.items()} == {"p": None, "q": None}

    def test_a_broken_chunk_is_a_failure_that_names_the_file(self, tmp_path, small_is_huge):
        make_zarr(tmp_path / "p.zarr", side=96)
        (piece, *_) = (each for each in (tmp_path / "p.zarr/c").rglob("*") if each.is_file())
        piece.write_bytes(b"nothing")
        job = ScoreJob(tuple(get_estimators(["sdc"])))
        outcome = score_in_this_process(job, CaseFiles("p", ArrayRef(tmp_path / "p.zarr")), 2)
        assert "p.zarr" in outcome.failure.reason
