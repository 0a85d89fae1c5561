"""The log of verdicts loses nothing, changes nothing, and knows what holds."""

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest
import sqlalchemy
from hypothesis import given, strategies as st

from segtrust.errors import (
    OthersVerdictError,
    ParameterError,
    SavedStateError,
    UndoneVerdictError,
    UnknownVerdictError,
)
from segtrust.review.entries import Entry, Seen, Standings, Verdict
from segtrust.review.store import Store, database_url

KEY = ("", "a", "organ")
REQUEST = "0123456789abcdef"
SEEN = Seen("f" * 64, "crc32:0123abcd", 0.1 + 0.2, "defer")
WRITER = """
import sys
from pathlib import Path
from segtrust.review.entries import Seen, Verdict
from segtrust.review.store import Store, database_url
store = Store.open(database_url("", Path(sys.argv[1])))
for number in range(10_000):
    store.add(("", str(number), "organ"), Verdict.ACCEPT, Seen(), comment="", reviewer="ann")
    print(number, flush=True)
"""


@pytest.fixture
def store(tmp_path):
    found = Store.open(database_url("", tmp_path))
    yield found
    found.close()


def add(store, key=KEY, verdict=Verdict.ACCEPT, reviewer="ann", **more):
    return store.add(key, verdict, SEEN, comment="seen", reviewer=reviewer, **more)


def holding(store):
    found = Standings()
    found.take(store.entries())
    return [(entry.reviewer, entry.verdict) for entry in found.holding(KEY)]


def test_entries_come_back_as_they_were(store):
    first, second = add(store), add(store, verdict=Verdict.REJECT, reviewer="bob")
    assert store.entries() == [first, second]
    assert store.entries(after=first.id) == [second]
    assert store.entries(limit=1) == [first]
    assert holding(store) == [("ann", "accept"), ("bob", "reject")]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first.time)


def test_an_undo_brings_back_what_was_said_before(store):
    add(store)
    second = add(store, verdict=Verdict.CORRECT)
    undo = store.undo(second.id, "ann")
    assert (undo.undoes, undo.verdict, undo.key) == (second.id, "", KEY)
    assert holding(store) == [("ann", "accept")]
    assert len(store.entries()) == 3


def test_what_cannot_be_taken_back(store):
    entry = add(store)
    with pytest.raises(UnknownVerdictError, match="no verdict of the number 7"):
        store.undo(7, "ann")
    with pytest.raises(OthersVerdictError, match="of ann: only they"):
        store.undo(entry.id, "bob")
    undo = store.undo(entry.id, "ann")
    with pytest.raises(UndoneVerdictError, match="taken back already"):
        store.undo(entry.id, "ann")
    with pytest.raises(UndoneVerdictError, match="cannot be taken back"):
        store.undo(undo.id, "ann")


def test_a_request_that_comes_again_is_written_once(store, tmp_path):
    first = add(store, request=REQUEST)
    assert add(store, request=REQUEST) == first
    assert add(store).id != first.id  # without a name nothing tells that it came before
    with pytest.raises(ParameterError, match="request: expected a new one, got that of verdict 1"):
        add(store, verdict=Verdict.REJECT, request=REQUEST)
    with pytest.raises(ParameterError, match="request: expected a new one"):
        add(store, ("", "b", "organ"), request=REQUEST)
    other = Store.open(database_url("", tmp_path), "another run")
    assert add(other, request=REQUEST).id == 3
    other.close()
    assert [entry.id for entry in store.entries()] == [1, 2]


def test_of_the_same_request_many_times_at_once_one_is_written(tmp_path):
    url, ids = database_url("", tmp_path), []

    def write():
        own = Store.open(url)
        ids.extend((number, add(own, request=f"{REQUEST}-{number}").id) for number in range(20))
        own.close()

    threads = [threading.Thread(target=write) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    store = Store.open(url)
    assert [entry.id for entry in store.entries()] == list(range(1, 21))
    store.close()
    assert len(ids) == 100
    assert len(set(ids)) == 20


@pytest.mark.skipif(os.name != "posix", reason="asks for rights of POSIX")
def test_a_new_log_is_for_its_owner_alone_and_an_old_one_keeps_its_rights(tmp_path):
    for place in (tmp_path / "verdicts.sqlite", f"sqlite:///{tmp_path}/other.sqlite"):
        store = Store.open(place)
        add(store)
        assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}
        store.close()
    (tmp_path / "verdicts.sqlite").chmod(0o660)
    Store.open(tmp_path / "verdicts.sqlite").close()
    assert stat.S_IMODE((tmp_path / "verdicts.sqlite").stat().st_mode) == 0o660


def test_two_runs_share_a_database(tmp_path):
    url = database_url(f"sqlite:///{tmp_path}/shared.sqlite", tmp_path)
    monday, tuesday = Store.open(url, "monday"), Store.open(url, "tuesday")
    entry = add(monday)
    assert (len(monday.entries()), len(tuesday.entries())) == (1, 0)
    with pytest.raises(UnknownVerdictError):
        tuesday.undo(entry.id, "ann")
    monday.close()
    tuesday.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE segtrust_verdicts SET comment = ''",
        "DELETE FROM segtrust_verdicts",
        "REPLACE INTO segtrust_verdicts SELECT 1, run, set_name, case_name, structure, 'reject', comment, "
        "reviewer, time, policy, digest, confidence, decision, undoes FROM segtrust_verdicts",
        "UPDATE segtrust_requests SET request = ''",
        "DELETE FROM segtrust_requests",
        "REPLACE INTO segtrust_requests SELECT run, request, verdict FROM segtrust_requests",
    ],
)
def test_nobody_can_change_the_log(store, tmp_path, change):
    entry = add(store, request=REQUEST)
    other = sqlite3.connect(tmp_path / "verdicts.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        other.execute(change)
    other.close()
    assert store.entries() == [entry]


def test_many_writers_at_once(tmp_path):
    url = database_url("", tmp_path)

    def write(name):
        own = Store.open(url)
        for number in range(25):
            add(own, ("", str(number), "organ"), reviewer=name)
        own.close()

    threads = [threading.Thread(target=write, args=(f"reviewer {i}",)) for i in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    store = Store.open(url)
    entries = store.entries()
    store.close()
    assert [entry.id for entry in entries] == list(range(1, 151))
    assert len({(entry.reviewer, entry.case) for entry in entries}) == 150


def test_of_two_undos_at_once_one_is_refused(store, tmp_path):
    entries = [add(store) for _ in range(20)]
    told = []

    def undo():
        own = Store.open(database_url("", tmp_path))
        for entry in entries:
            try:
                own.undo(entry.id, "ann")
                told.append("done")
            except UndoneVerdictError:
                told.append("refused")
        own.close()

    threads = [threading.Thread(target=undo) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(told) == ["done"] * 20 + ["refused"] * 20
    assert len(store.entries()) == 40


def test_a_log_of_another_release_is_refused(store, tmp_path):
    with store.engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE segtrust_formats SET format = 'segtrust-verdicts-9'"))
    with pytest.raises(SavedStateError, match="segtrust-verdicts-9', of another version"):
        Store.open(database_url("", tmp_path))


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "verdicts.sqlite").write_text("case,verdict\n" * 100)
    with pytest.raises(SavedStateError, match=r"verdicts.sqlite: expected a database .* not a database"):
        Store.open(database_url("", tmp_path))


def test_a_database_that_is_not_there_keeps_its_password(tmp_path):
    with pytest.raises(SavedStateError, match="expected a database") as found:
        Store.open(database_url("postgresql://ann:secret@127.0.0.1:9/x?connect_timeout=2", tmp_path))
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("text", ["postgresql://ann:secret@host:port/x", "postgresql://ann:secret@[::1/x"])
def test_an_address_that_cannot_be_read_keeps_its_password(tmp_path, text):
    with pytest.raises(ParameterError, match="expected an address such as") as found:
        Store.open(database_url(text, tmp_path))
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("name", ["a?b=c", "50%", "#1", "<run>", "a b\u00fc"])
def test_folders_of_any_name(tmp_path, name):
    (tmp_path / name).mkdir()
    store = Store.open(database_url("", tmp_path / name))
    add(store)
    store.close()
    assert [each.name for each in (tmp_path / name).iterdir()] == ["verdicts.sqlite"]


@pytest.mark.parametrize("text", ["mysql://x", "verdicts", "postgresql:x"])
def test_other_addresses_are_refused(tmp_path, text):
    with pytest.raises(ParameterError, match="database: expected postgresql://"):
        database_url(text, tmp_path)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["ann", "bob"]), st.booleans()), max_size=20)
)
def test_what_holds_is_the_last_that_is_not_taken_back(steps):
    entries, open_ones = [], {}
    for case, reviewer, undoes in steps:
        stack = open_ones.setdefault((case, reviewer), [])
        target = stack.pop() if undoes and stack else None
        said = "" if target else "accept"
        entries.append(Entry(len(entries) + 1, "", reviewer, "", case, "organ", said, "", "", target))
        if target is None:
            stack.append(len(entries))
    expected = {key: stack[-1] for key, stack in open_ones.items() if stack}
    found = Standings()
    for entry in entries:
        found.take([entry])
    held = {(key[1], each.reviewer): each.id for key, those in found.all_holding() for each in those}
    assert held == expected
    assert found.reviewers == list(dict.fromkeys(entry.reviewer for entry in entries))


@pytest.mark.slow
def test_what_was_said_survives_a_kill(tmp_path):
    for _ in range(3):
        before = len(Store.open(database_url("", tmp_path)).entries())
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            told = [writer.stdout.readline() for _ in range(40)]
            os.kill(writer.pid, signal.SIGKILL)
            told += writer.stdout.readlines()
        whole = [line for line in told if line.endswith("\n")]
        store = Store.open(database_url("", tmp_path))
        cases = [entry.case for entry in store.entries()][before:]
        store.close()
        assert cases[: len(whole)] == [line.strip() for line in whole]
        assert len(cases) <= len(whole) + 1
