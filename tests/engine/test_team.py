"""Work in other processes: results, faults, and that it can be broken off at any moment."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from segtrust.engine.team import compute_side_by_side, leaving_interrupts
from segtrust.errors import WorkerError
from tests.processes import interruptible


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


def what_cannot_be_sent(number):
    return lambda: number


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_each_task_comes_with_its_result(workers):
    found = dict(compute_side_by_side(square, range(7), workers))
    assert found == {number: number**2 for number in range(7)}


def test_no_tasks():
    assert list(compute_side_by_side(square, [], 2)) == []


def test_a_fault_is_raised_here_and_says_where_it_happened():
    with pytest.raises(ZeroDivisionError, match="two") as found:
        dict(compute_side_by_side(fail_at_two, range(5), 2))
    assert "in fail_at_two" in found.value.__notes__[0]


def test_a_process_that_is_killed_is_told_from_its_task():
    with pytest.raises(WorkerError, match=r"2: the process that computed it ended with exit code -9"):
        dict(compute_side_by_side(die_at_two, range(5), 2))


def test_a_result_that_cannot_be_sent():
    with pytest.raises(WorkerError, match="The result cannot be sent"):
        dict(compute_side_by_side(what_cannot_be_sent, range(2), 2))


class NeedsTwoError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fail_with_two(number):
    raise NeedsTwoError("one", "two")


def test_a_fault_that_cannot_be_put_together_again_keeps_its_words():
    with pytest.raises(WorkerError, match="NeedsTwoError: one and two"):
        dict(compute_side_by_side(fail_with_two, range(2), 2))


def test_broken_off_while_large_results_are_on_their_way():
    for taken in range(6):
        found = compute_side_by_side(large, range(8), 2)
        for _ in range(taken):
            next(found)
        time.sleep(0.02 * taken)
        begin = time.monotonic()
        found.close()
        assert time.monotonic() - begin < 4


INTERRUPTED = """
    import sys, time
    import numpy as np
    from segtrust.engine.team import compute_side_by_side

    def large(number):
        return np.zeros(3_000_000)

    if __name__ == "__main__":
        for task, _ in compute_side_by_side(large, range(10**6), 2):
            print(task, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="interrupts a group of processes")
def test_interrupted_at_many_moments_it_always_ends(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    rng = np.random.default_rng(0)
    for _ in range(25):
        with subprocess.Popen(
            interruptible(script),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as running:
            running.stdout.readline()
            time.sleep(rng.uniform(0, 0.3))
            os.killpg(running.pid, signal.SIGINT)
            try:
                assert running.wait(timeout=20) != 0
            finally:
                running.kill()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back here")
def test_processes_begin_deaf_to_interrupts():
    shows_its_mask = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    command = [sys.executable, "-c", shows_its_mask]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with leaving_interrupts():
        said = subprocess.check_output(command, text=True)
    assert said.strip() == "True"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
