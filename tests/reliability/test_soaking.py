"""A soak of seconds: all that was sent is in the table, and what is wrong would be seen."""

import mmap
import os

import numpy as np
import pytest

from segtrust.io import Table, read_table, write_table
from tools.reliability import soaking
from tools.reliability.soaking import (
    Sender,
    cases_in,
    draw,
    grows_too_fast,
    memory_of,
    parcel,
    score_of,
    slope,
    soak,
    wrong_failures,
    wrong_rows,
)


@pytest.mark.slow
def test_all_that_was_sent_is_in_the_table_and_what_is_wrong_would_be_seen(tmp_path):
    done = soak(tmp_path / "soak", minutes=0.25, every_s=0.2)
    sender, table = done.sender, done.table
    assert len(done.memory) > 35
    assert "case_000007" in sender.mended
    assert "case_000024" in sender.broken
    assert done.code == 1
    assert not any(done.wrong().values())
    assert all(each["mib"] > 10 for each in done.memory[10:])  # at first the process is only begun

    rows = read_table(table).rows
    changed = [{**row, "sdc": 0.5} if row["case"] == "case_000003" else row for row in rows[1:]]
    write_table(table, Table.of([*changed, rows[-1]]))
    table.with_name("failures.csv").unlink()
    seen = list(done.wrong().values())
    assert seen[0] == sorted({rows[0]["case"], "case_000003", rows[-1]["case"]})
    assert seen[1] == sorted(sender.broken)


def test_of_a_hundred_files_some_are_broken_mended_spoiled_replaced_and_slow():
    sent = [parcel(number) for number in range(100, 200)]
    assert [each.case for each in sent if each.is_broken] == ["case_000107", "case_000124", "case_000157"]
    assert {each.case for each in sent if each.back and not each.is_broken} >= {"case_000107", "case_000110"}
    slow = {each.case for each in sent if each.is_slow}
    assert len(slow) == 5
    assert not slow & {each.case for each in sent if each.back}  # two would write the same file at once


def test_a_row_that_is_doubled_missing_or_too_many_is_seen(tmp_path):
    sender, table = Sender(tmp_path, {"a": 1, "b": 2}), tmp_path / "scores.csv"
    assert wrong_rows(sender, table) == ["a", "b"]
    rows = [{"case": "a", "sdc": score_of(1)}, {"case": "b", "sdc": score_of(2)}]
    for wrong, expected in ((rows, []), ([*rows, rows[0]], ["a"]), (rows[1:], ["a"])):
        write_table(table, Table.of(wrong))
        assert wrong_rows(sender, table) == expected
    write_table(table, Table.of([*rows, {"case": "c", "sdc": 0.5}]))
    assert wrong_rows(sender, table) == ["c"]


def test_a_replaced_case_is_waited_for(tmp_path):
    """Its row is there already, with the score of the map that was replaced."""
    sender, table = Sender(tmp_path, {"case_000010": 20}), tmp_path / "scores.csv"
    write_table(table, Table.of([{"case": "case_000010", "sdc": score_of(10)}]))
    assert wrong_rows(sender, table) == ["case_000010"]
    write_table(table, Table.of([{"case": "case_000010", "sdc": score_of(20)}]))
    assert wrong_rows(sender, table) == []


def test_failures_must_be_the_broken_files_each_once(tmp_path):
    sender, table = Sender(tmp_path, {"a": 1, "b": 2}, broken={"b"}), tmp_path / "scores.csv"
    assert wrong_failures(sender, table) == ["b"]
    for listed, expected in ((["b"], []), (["b", "b"], ["b"]), (["a", "b"], ["a"]), (["a"], ["a", "b"])):
        write_table(tmp_path / "failures.csv", Table.of([{"case": name} for name in listed]))
        assert wrong_failures(sender, table) == expected
    assert cases_in(tmp_path / "failures.csv") == ["a"]


def test_a_slow_file_grows_while_others_come(tmp_path, monkeypatch):
    monkeypatch.setattr(soaking, "SLOWLY", (12, 0.1))
    sender = Sender(tmp_path)
    sender.send(3)
    sender.send(4)
    sizes = [(tmp_path / f"case_00000{number}.npz").stat().st_size for number in (3, 4)]
    sender.finish()
    assert sizes[0] < (tmp_path / "case_000003.npz").stat().st_size
    assert sizes[1] == (tmp_path / "case_000004.npz").stat().st_size


def test_what_was_broken_and_is_replaced_is_broken_no_more(tmp_path):
    sender = Sender(tmp_path)
    sender.send(7)
    assert (sender.broken, sender.mended) == ({"case_000007"}, set())
    sender.send(27)
    sender.finish()
    assert (sender.broken, sender.mended) == (set(), {"case_000007"})
    assert sender.seed_of == {"case_000007": 27}


def test_the_growth_of_the_memory_is_fitted_where_it_has_come_to_rest():
    memory = [{"minute": at, "files": 10 * at, "mib": 500.0 if at < 10 else 100.0 + at} for at in range(60)]
    assert slope(memory, "minute") == pytest.approx(1.0)
    assert slope(memory, "files") == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("files", "mib_for_1000", "is_too_fast"), [(3600, 6.4, True), (3600, 4.0, False), (300, 6.4, False)]
)
def test_memory_may_grow_by_a_limit_or_by_a_step(files, mib_for_1000, is_too_fast):
    memory = [{"files": at, "mib": 200 + mib_for_1000 * at / 1000} for at in range(files)]
    assert grows_too_fast(memory, limit=5.0) is is_too_fast


def test_memory_is_that_of_the_process_and_not_of_files(tmp_path):
    (tmp_path / "map").write_bytes(bytes(32 << 20))
    before = memory_of(os.getpid())
    own = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # none that was there before
    own.write(b"1" * (64 << 20))
    mapped = np.memmap(tmp_path / "map", np.uint8, "r")
    assert not mapped.any()
    assert memory_of(os.getpid()) - before == pytest.approx(len(own), abs=16 << 20)


@pytest.mark.needs("matplotlib")
def test_the_memory_of_soaks_is_drawn_from_zero_on(tmp_path):
    write_table(tmp_path / "memory.csv", Table.of([{"minute": at, "mib": 200.0} for at in range(60)]))
    draw([tmp_path], tmp_path / "memory.svg")
    assert "<svg" in (tmp_path / "memory.svg").read_text(encoding="utf-8")


def test_scored_files_are_moved_away_but_for_the_newest_and_those_still_to_come(tmp_path):
    sender = Sender(tmp_path, {f"case_{number:06d}": number for number in range(8)})
    for name in sender.seed_of:
        (tmp_path / f"{name}.npz").touch()
    table = tmp_path / "scores.csv"
    sender.move_away(table, keep=2)
    assert len(list(tmp_path.iterdir())) == 8
    write_table(table, Table.of([{"case": f"case_{number:06d}"} for number in (0, 1, 2, 3, 7)]))
    sender.move_away(table, keep=2)
    assert sorted(path.stem[-1] for path in tmp_path.glob("*.npz")) == ["4", "5", "6", "7"]
