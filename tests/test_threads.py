import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import segtrust as st
from segtrust.threads import in_order


def test_no_task_gives_no_result():
    with st.use_threads(2):
        assert in_order(abs, []) == []


@pytest.mark.parametrize("threads", [1, 2, 5, 40])
def test_results_come_in_the_order_of_the_tasks(threads):
    def slow_at_first(task):
        time.sleep(0.02 if task == 0 else 0.0)
        return 10 * task

    with st.use_threads(threads):
        assert in_order(slow_at_first, range(20)) == list(range(0, 200, 10))


def test_helpers_work_beside_the_calling_thread():
    both_here = threading.Barrier(2, timeout=10)

    def meet(task):
        both_here.wait()  # breaks unless another thread comes here meanwhile
        return threading.current_thread()

    with st.use_threads(2):
        workers = in_order(meet, range(6))
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
        in_order(fails_from_3_on, range(100))
    assert len(begun) <= 3 + 2 * threads


def test_work_inside_work_does_not_wait_for_itself():
    def outer(task):
        with st.use_threads(2):
            return sum(in_order(abs, range(task)))

    with st.use_threads(2):
        assert in_order(outer, range(50)) == [n * (n - 1) // 2 for n in range(50)]


def test_many_callers_share_the_helpers():
    results = {}

    def caller(number):
        with st.use_threads(3):
            results[number] = in_order(lambda task: task + number, range(30))

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(timeout=30)
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
