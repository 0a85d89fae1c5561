"""The log of a run: what was acknowledged is there after any kill, and nothing in it is taken for another."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from pathlib import Path
from socket import gethostname

import pytest
from hypothesis import given, settings, strategies as st

from segtrust.engine import run_log
from segtrust.engine.outcomes import Outcome
from segtrust.engine.run_log import RunLog, is_finished, is_running, lock_folder, mark_of, read_log
from segtrust.errors import ParameterError, SavedStateError, SegtrustError
from segtrust.io import Failure

A = Outcome("a", ({"case": "a", "sdc": 0.1 + 0.2},))
FAILED = Outcome("b", failure=Failure("b", "b.npy", "ReadError", "b.npy: truncated"))
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


def write(path, *outcomes, mark=b"1", **more):
    with RunLog(path, more.pop("settings", {}), **more) as log:
        for outcome in outcomes:
            log.add(outcome, mark)


def test_outcomes_are_found_again_exactly(tmp_path):
    path = tmp_path / "log"
    write(path, A, FAILED)
    with RunLog(path, {}) as log:
        assert log.find("a", b"1") == A
        assert log.find("a", b"2") is None
        assert log.find("b", b"1") is None  # failures are tried again
        assert (log.counts(), log.cases(), log.failures()) == ((1, 1), {"a", "b"}, [FAILED.failure])
        assert list(log.rows()) == list(A.rows)


def test_only_the_log_is_left_behind(tmp_path):
    write(tmp_path / "log", A)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_failure_of_an_earlier_run_is_tried_again_and_one_of_this_run_is_not(tmp_path):
    write(tmp_path / "log", FAILED)
    with RunLog(tmp_path / "log", {}) as log:
        assert not log.knows("b", b"1")
        log.add(FAILED, b"1")
        assert log.knows("b", b"1")
        assert not log.knows("b", b"2")


def test_the_last_outcome_of_a_case_counts_and_keeps_its_place(tmp_path):
    later = Outcome("a", ({"case": "a", "sdc": 0.7},))
    write(tmp_path / "log", A, Outcome("c", ({"case": "c"},)), later)
    with RunLog(tmp_path / "log", {}) as log:
        assert list(log.rows()) == [*later.rows, {"case": "c"}]
        assert list(log.rows()) == list(log.rows())
    assert list(log.rows()) == [*later.rows, {"case": "c"}]  # also after the run


def test_settings_are_those_of_the_first_run_until_they_are_replaced(tmp_path):
    write(tmp_path / "log", A, settings={"threshold": 0.5})
    for other in (0.4, 0.3):
        with RunLog(tmp_path / "log", {"threshold": other}) as log:
            assert log.previous == {"threshold": 0.5}
    with RunLog(tmp_path / "log", {"threshold": 0.4}) as log:
        log.clear()
        assert log.cases() == set()
        log.add(A, b"1")
    assert read_log(tmp_path / "log").settings == {"threshold": 0.4}


def test_without_scored_cases_any_settings_are_taken(tmp_path):
    write(tmp_path / "log", FAILED, settings={"key": None})
    with RunLog(tmp_path / "log", {"key": "p"}) as log:
        assert log.previous is None
    assert read_log(tmp_path / "log").settings == {"key": "p"}


def test_a_log_that_is_cleared_has_no_cases(tmp_path):
    write(tmp_path / "log", A, settings={"key": None})
    with RunLog(tmp_path / "log", {"key": "p"}) as log:
        log.clear()
        assert (log.previous, log.cases()) == (None, set())
    assert read_log(tmp_path / "log").settings == {"key": "p"}


def test_names_of_files_that_are_no_text(tmp_path):
    odd = Outcome("a\udcff/ü", ({"case": "a\udcff/ü"},))
    write(tmp_path / "log", odd)
    with RunLog(tmp_path / "log", {}) as log:
        assert log.find("a\udcff/ü", b"1") == odd
        assert log.cases() == {"a\udcff/ü"}


def test_a_log_is_read_while_it_is_written(tmp_path):
    path = tmp_path / "log"
    with RunLog(path, {"threshold": 0.5}, command=["score", "maps"]) as log:
        log.add(A, b"1")
        log.sync()
        found = read_log(path)
        assert (found.settings, found.command, found.outcomes) == (
            {"threshold": 0.5},
            ("score", "maps"),
            (A,),
        )
        assert found.folder == str(Path.cwd())
        assert (is_running(path), is_finished(path)) == (True, False)
        log.add(FAILED, b"1")  # nobody is in the way
        log.finish()
    assert read_log(path).outcomes == (A, FAILED)
    assert (is_running(path), is_finished(path)) == (False, True)
    assert is_running(tmp_path / "none") is None


def test_a_run_is_at_work_between_two_transactions(tmp_path):
    path = tmp_path / "log"
    with RunLog(path, {}) as log:
        log._connection.execute("COMMIT")
        again = threading.Timer(0.01, lambda: log._connection.execute("BEGIN IMMEDIATE"))
        again.start()
        assert is_running(path)
        again.join()
        assert is_running(path)
    assert is_running(path) is False


def test_outcomes_are_on_the_disk_soon_though_nobody_asks(tmp_path):
    committed, commit = threading.Event(), RunLog._commit
    with RunLog(tmp_path / "log", {}) as log:
        log._commit = lambda: (commit(log), committed.set())
        log.add(A, b"1")
        assert committed.wait(30)
        with sqlite3.connect(f"file:{tmp_path / 'log'}?mode=ro", uri=True) as reader:
            assert reader.execute("SELECT count(*) FROM cases").fetchone() == (1,)
        reader.close()


HOLDS = """
    import sys, time
    from pathlib import Path
    from segtrust.engine.run_log import RunLog
    from segtrust.engine.outcomes import Outcome

    with RunLog(Path(sys.argv[1]), {}) as log:
        for number in range(10**6):
            log.add(Outcome(f"{number}", ({"case": f"{number}"},)), b"1")
            if number % 100 == 0:
                log.sync()
                print(number, flush=True)
"""


@POSIX
def test_a_second_run_is_rejected_until_the_first_is_killed_and_no_acknowledged_case_is_lost(tmp_path):
    path, acknowledged = tmp_path / "log", -1
    for _ in range(3):
        command = [sys.executable, "-c", textwrap.dedent(HOLDS), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            try:
                acknowledged = max(acknowledged, *(int(first.stdout.readline()) for _ in range(7)))
                owner = rf"another run \(process {first.pid} on {gethostname()}\) writes this output. Wait"
                with pytest.raises(ParameterError, match=owner):
                    RunLog(path, {}).__enter__()
            finally:
                os.kill(first.pid, signal.SIGKILL)
        with RunLog(path, {}) as log:
            assert all(log.find(str(number), b"1") for number in range(acknowledged + 1))


def test_a_run_that_failed_does_not_keep_others_out(tmp_path):
    with pytest.raises(ZeroDivisionError), RunLog(tmp_path / "log", {}):
        raise ZeroDivisionError
    assert '"owner"' not in repr(read_log(tmp_path / "log"))
    opens = "import sys; from pathlib import Path; from segtrust.engine.run_log import RunLog; "
    opens += "RunLog(Path(sys.argv[1]), {}).__enter__()"
    subprocess.run([sys.executable, "-c", opens, tmp_path / "log"], check=True)


@pytest.mark.parametrize(
    "content", [b"case,sdc\na,0.5\n", b'{"format": "x"}', b"SQLite format 3\x00" + bytes(500)]
)
def test_another_file_is_rejected_and_left_as_it_was(tmp_path, content):
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(SavedStateError, match="log"):
        RunLog(tmp_path / "log", {}).__enter__()
    with pytest.raises(SavedStateError):
        read_log(tmp_path / "log")
    assert (tmp_path / "log").read_bytes() == content


def test_another_database_is_rejected(tmp_path):
    with sqlite3.connect(tmp_path / "log") as connection:
        connection.execute("CREATE TABLE verdicts (verdict TEXT)")
    connection.close()
    with pytest.raises(SavedStateError, match="expected the log of a run, got another file"):
        RunLog(tmp_path / "log", {}).__enter__()


def change(path, sql, *values):
    with sqlite3.connect(path) as connection:
        connection.execute(sql, values)
    connection.close()


def test_a_log_of_another_version_is_named(tmp_path):
    write(tmp_path / "log", A)
    change(tmp_path / "log", "UPDATE run SET value = '\"segtrust-log-9\"' WHERE key = 'format'")
    for read in (lambda: RunLog(tmp_path / "log", {}).__enter__(), lambda: read_log(tmp_path / "log")):
        with pytest.raises(SavedStateError, match="got 'segtrust-log-9', of another version"):
            read()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE cases SET outcome = replace(outcome, '0.3', '0.4')",
        "UPDATE cases SET outcome = NULL",
        "UPDATE cases SET outcome = '{}', checksum = 2745614147",
        "CREATE TRIGGER harm AFTER INSERT ON cases BEGIN DELETE FROM cases; END",
        "ALTER TABLE cases ADD COLUMN more TEXT",
        "UPDATE run SET value = '{'",
    ],
)
def test_a_changed_log_is_rejected_as_a_whole(tmp_path, sql):
    write(tmp_path / "log", A)
    try:
        change(tmp_path / "log", sql)
    except sqlite3.IntegrityError:
        return  # the table itself does not allow it
    with (
        pytest.raises(SavedStateError, match=r"corrupt. Delete it: the cases are scored again"),
        RunLog(tmp_path / "log", {}) as log,
    ):
        log.find("a", b"1")
    with pytest.raises(SavedStateError):
        read_log(tmp_path / "log")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log"
    write(
        path,
        *(Outcome(f"{number:02d}", ({"case": f"{number:02d}", "sdc": number / 40},)) for number in range(40)),
    )
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 1 << 15), st.integers(1, 255)), min_size=1, max_size=3),
    size=st.sampled_from([1 << 20, 1 << 14, 4096, 100]),
)
def test_whatever_bytes_change_no_number_is_taken_for_another(whole, tmp_path_factory, changes, size):
    path = tmp_path_factory.mktemp("changed") / "log"
    broken = bytearray(whole)
    for place, change in changes:
        broken[place % len(whole)] ^= change
    path.write_bytes(bytes(broken[:size]))
    try:
        with RunLog(path, {}) as log:
            found = {case: log.find(case, b"1") for case in log.cases()}
            rows = list(log.rows())
    except (SegtrustError, OSError):
        return
    assert all(outcome.rows[0]["sdc"] == int(outcome.case) / 40 for outcome in found.values() if outcome)
    assert all(row["sdc"] == int(row["case"]) / 40 for row in rows)


@POSIX
@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_log_costs_a_run_nothing_and_is_reported_to_who_asks(tmp_path, replaced):
    path = tmp_path / "log"
    with RunLog(path, {}) as log:
        log.add(A, b"1")
        log.sync()
        log.check_place()
        path.unlink()
        if replaced:
            path.write_bytes(b"another")
        log.add(FAILED, b"1")
        log.sync()
        with pytest.raises(SavedStateError, match=r"deleted or replaced while the run was at work\. Rerun"):
            log.check_place()
        assert list(log.rows()) == list(A.rows)
    assert path.exists() == replaced


@POSIX
def test_a_disk_that_is_full_is_an_error_of_the_system(tmp_path):
    code = f"""
    import resource, signal
    from pathlib import Path
    from segtrust.engine.run_log import RunLog
    from segtrust.engine.outcomes import Outcome
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
    with RunLog(Path({str(tmp_path / "log")!r}), {{}}) as log:
        for number in range(1000):
            log.add(Outcome(str(number), ({{"case": "x" * 1000}},)), b"1")
            log.sync()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert "OSError: [Errno" in done.stderr.splitlines()[-1]
    assert str(tmp_path / "log") in done.stderr.splitlines()[-1]
    with RunLog(tmp_path / "log", {}) as log:
        assert log.counts()[0] > 5


def test_memory_does_not_grow_with_the_number_of_cases(tmp_path):
    with RunLog(tmp_path / "log", {}) as log:
        tracemalloc.start()
        for number in range(3000):
            log.add(Outcome(str(number), ({"case": str(number), "file": "x" * 500},)), mark_of(number))
        log.sync()
        tracemalloc.reset_peak()
        assert sum(1 for _ in log.rows()) == 3000
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1_500_000


@pytest.mark.slow
def test_a_hundred_thousand_cases(tmp_path):
    with RunLog(tmp_path / "log", {}) as log:
        for number in range(100_000):
            log.add(Outcome(str(number), ({"case": str(number), "sdc": number / 1e5},)), b"1")
    with RunLog(tmp_path / "log", {}) as log:
        assert log.counts() == (100_000, 0)
        assert log.find("99999", b"1").rows[0]["sdc"] == 0.99999
        assert sum(row["sdc"] for row in log.rows()) == pytest.approx(49999.5)


def test_two_threads_are_not_in_the_same_folder_at_once(tmp_path):
    order, inside = [], threading.Event()

    def wait():
        inside.wait()
        with lock_folder(tmp_path):
            order.append("second")

    thread = threading.Thread(target=wait)
    thread.start()
    with lock_folder(tmp_path):
        inside.set()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"] or run_log.fcntl is None
    assert list(tmp_path.iterdir()) == []
