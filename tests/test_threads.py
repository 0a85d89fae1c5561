import threading
import time

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
