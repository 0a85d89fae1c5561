"""Threads are asked for by a block, by the environment, or not at all."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import ParameterError
from segtrust.settings import current_threads


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
    message = f"threads: expected a whole number of at least 1, got {count!r}"
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


FORK = """
    import multiprocessing
    import numpy as np
    import segtrust as st

    def score(queue, p):
        with st.use_threads(2):
            queue.put(st.soft_dice_confidence(p))

    p = np.random.default_rng(0).random(3 << 20, dtype=np.float32)
    with st.use_threads(2):
        want = st.soft_dice_confidence(p)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=score, args=(queue, p))
    child.start()
    assert queue.get(timeout=60) == want
    child.join(timeout=60)
    assert child.exitcode == 0
"""


def test_threads_work_after_a_fork():
    """In a process of its own, because libraries that other tests have loaded do not like to be forked."""
    command = [sys.executable, "-c", textwrap.dedent(FORK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
