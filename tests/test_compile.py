"""Threads: how many a call uses, and results that come in the order of the tasks."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import segtrust as st
from segtrust._compile import current_threads, map_in_threads
from segtrust.errors import ParameterError


def test_one_thread_unless_asked(monkeypatch):
    monkeypatch.delenv("SEGTRUST_THREADS", raising=False)
    assert current_threads() == 1


def test_environment_then_block(monkeypatch):
    monkeypatch.setenv("SEGTRUST_THREADS", "3")
    assert current_threads() == 3
    with st.use_threads(2):
        assert current_threads() == 2
    assert current_threads() == 3


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_environment_must_be_a_whole_number(monkeypatch, text):
    monkeypatch.setenv("SEGTRUST_THREADS", text)
    with pytest.raises(ParameterError, match="SEGTRUST_THREADS"):
        current_threads()


@pytest.mark.parametrize("count", [0, -1, "2", 1.5, None])
def test_a_block_needs_a_whole_number_of_threads(count):
    message = "threads: expected a whole number of at least 1, got"
    with pytest.raises(ParameterError, match=message), st.use_threads(count):
        pass


def test_a_whole_number_may_come_from_numpy():
    with st.use_threads(np.int64(2)):
        assert current_threads() == 2


def test_the_count_is_given_back_after_an_error():
    before = current_threads()
    with pytest.raises(ZeroDivisionError), st.use_threads(2):
        raise ZeroDivisionError
    assert current_threads() == before


def test_no_task_gives_no_result():
    with st.use_threads(2):
        assert map_in_threads(abs, []) == []


@pytest.mark.parametrize("threads", [1, 2, 5, 40])
def test_results_come_in_the_order_of_the_tasks(threads):
    def slow_at_first(task):
        time.sleep(0.02 if task == 0 else 0.0)
        return 10 * task

    with st.use_threads(threads):
        assert map_in_threads(slow_at_first, range(20)) == list(range(0, 200, 10))


def test_helpers_work_beside_the_calling_thread():
    both_here = threading.Barrier(2, timeout=10)

    def meet(task):
        both_here.wait()  # breaks unless another thread comes here meanwhile
        return threading.current_thread()

    with st.use_threads(2):
        workers = map_in_threads(meet, range(6))
    assert len(set(workers)) == 2
    assert threading.current_thread() in workers


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_of_several_faults_is_raised_and_nothing_is_begun_after_it(threads):
    begun = []

    def fails_from_3_on(task):
        begun.append(task)
        time.sleep(0.05 if task == 3 else 0.0)  # its fault is the last to be noticed
        if task >= 3:
            raise ValueError(f"task {task}")

    with st.use_threads(threads), pytest.raises(ValueError, match="task 3"):
        map_in_threads(fails_from_3_on, range(100))
    assert len(begun) <= 3 + 2 * threads


def test_work_inside_work_does_not_wait_for_itself():
    def outer(task):
        with st.use_threads(2):
            return sum(map_in_threads(abs, range(task)))

    with st.use_threads(2):
        assert map_in_threads(outer, range(50)) == [n * (n - 1) // 2 for n in range(50)]


def test_many_callers_share_the_helpers():
    results = {}

    def caller(number):
        with st.use_threads(3):
            results[number] = map_in_threads(lambda task: task + number, range(30))

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=30)
    assert results == {number: list(range(number, number + 30)) for number in range(8)}


class Meeting:
    """A chunked map that can be read only while three others like it are."""

    chunks, shape, dtype = ((8,),), (8,), np.dtype("float32")

    def __init__(self, all_here):
        self.all_here = all_here

    def __getitem__(self, index):
        self.all_here.wait()  # breaks unless the others come here meanwhile
        return np.full(8, 0.7, np.float32)[index]


@pytest.mark.parametrize("confidence", [st.soft_dice_confidence, st.ideal_dice_confidence])
def test_maps_are_read_side_by_side(confidence):
    """On Python 3.11 a cached property would let one thread read at a time."""
    maps = [Meeting(threading.Barrier(4, timeout=20))] * 4
    with ThreadPoolExecutor(4) as callers:
        assert len(set(callers.map(confidence, maps))) == 1


def run_python(code):
    """Run code in an interpreter of its own, and give what it prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_forked_while_another_thread_is_at_work():
    found = run_python("""
import os, signal, threading, warnings
import numpy as np, segtrust as st
warnings.simplefilter("ignore")
p, done = np.full(1_200_000, 0.7, np.float32), threading.Event()
st.soft_dice_confidence(p)  # imports and compiled loops are there
def work():
    while not done.is_set():
        with st.use_threads(2):
            st.soft_dice_confidence(p)
busy = threading.Thread(target=work)
busy.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends it where it hangs
        with st.use_threads(2):
            os._exit(0 if st.soft_dice_confidence(p) > 0 else 1)
    print(os.waitpid(child, 0)[1], end=" ")
done.set()
""")
    assert found.split() == ["0"] * 5


def test_threads_while_the_interpreter_ends():
    found = run_python("""
import atexit, numpy as np, segtrust as st
p = np.full(1_200_000, 0.7, np.float32)
def last():
    with st.use_threads(3):
        print(round(st.soft_dice_confidence(p), 3))
with st.use_threads(3):
    st.soft_dice_confidence(p)
atexit.register(last)
""")
    assert found == "0.824\n"
