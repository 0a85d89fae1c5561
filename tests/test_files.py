"""Files: written whole or not at all, read with nothing taken on trust, and never too large."""

import errno
import os
import time
from dataclasses import dataclass

import numpy as np
import pytest

from segtrust._files import (
    atomic_write,
    atomic_write_all,
    check_format,
    check_keys,
    check_size,
    checksum,
    max_bytes,
    naming_errors,
    plain_values,
    read_json,
    rebuild,
    remove_stale_drafts,
    remove_stale_drafts_of,
    write_json,
)
from segtrust.errors import ParameterError, PolicyError, SavedStateError, UnsafeFileError
from tests.processes import abandoned_draft, gone_process


@dataclass(frozen=True)
class Pair:
    low: float
    high: float

    def __post_init__(self):
        if not self.low <= self.high:
            raise ParameterError(f"low: expected at most {self.high}, got {self.low}.")


def test_plain_values():
    assert plain_values({"a": (1, np.float32(0.5)), "b": np.int8(3), "c": np.bool_(True)}, "x") == {
        "a": [1, 0.5],
        "b": 3,
        "c": True,
    }


@pytest.mark.parametrize("value", [object(), {1, 2}, np.zeros(2), float("nan"), np.float32("inf"), b"a"])
def test_what_is_not_plain(value):
    with pytest.raises(ParameterError, match="x: expected plain values only"):
        plain_values([value], "x")


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": "é"})
    assert read_json(path) == {"a": "é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, float("nan"))
    assert read_json(path) == {"a": "é"}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_not_json(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(SavedStateError, match=r"a\.json: expected JSON"):
        read_json(path)


def test_json_may_take_no_more_than_an_array(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, ["a"] * 100)
    size = path.stat().st_size
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(16 * size))
    assert len(read_json(path)) == 100
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", str(16 * size - 1))
    with pytest.raises(UnsafeFileError, match=rf"a\.json: expected a JSON file .*_MAX_BYTES={16 * size}\."):
        read_json(path, error=PolicyError, most=1 << 20)


def test_some_json_may_be_no_longer_than_such_files_are(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('"' + " " * (2 << 20) + '"')
    with pytest.raises(PolicyError, match=r"a\.json: expected a JSON file of at most 1 MiB, got 2 MiB"):
        read_json(path, error=PolicyError, most=1 << 20)


def test_formats():
    check_format({"format": "segtrust-x-1"}, "segtrust-x-1", "a")
    with pytest.raises(
        SavedStateError, match="a: expected format 'segtrust-x-1', got 'segtrust-x-2', of another"
    ):
        check_format({"format": "segtrust-x-2"}, "segtrust-x-1", "a")
    for other in ({}, {"format": 3}, {"format": "segtrust-y-1"}, [], None):
        with pytest.raises(PolicyError, match="a: expected format 'segtrust-x-1', got"):
            check_format(other, "segtrust-x-1", "a", error=PolicyError)


def test_keys():
    with pytest.raises(SavedStateError, match=r"a: 'high' is missing; expected low, high\."):
        check_keys({"low": 1}, ["low", "high"], "a")
    with pytest.raises(SavedStateError, match="a: 'more' is unknown"):
        check_keys({"low": 1, "high": 2, "more": 3}, ["low", "high"], "a")
    with pytest.raises(PolicyError, match="a: expected a mapping with low, high; got list"):
        check_keys([], ["low", "high"], "a", error=PolicyError)


def test_dataclasses_are_made_again():
    assert rebuild(Pair, {"low": 1, "high": 2}, "a") == Pair(1, 2)
    with pytest.raises(SavedStateError, match="a: low: expected at most 1, got 2"):
        rebuild(Pair, {"low": 2, "high": 1}, "a")
    with pytest.raises(SavedStateError, match="a: '<=' not supported"):
        rebuild(Pair, {"low": "2", "high": 1}, "a")


def test_the_source_is_named_once():
    with pytest.raises(PolicyError, match=r"^a: b: low: expected"), naming_errors("a", error=PolicyError):
        rebuild(Pair, {"low": 2, "high": 1}, "a: b")


def test_checksum_does_not_depend_on_the_order_of_keys():
    assert checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) != checksum({"a": 1, "b": 3})


POSIX = pytest.mark.skipif(os.name != "posix", reason="looks for processes by their id")


class TestAtomicWrites:
    def test_a_file_is_replaced_in_one_step(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("old")
        with atomic_write(path) as draft:
            draft.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"
        assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]

    @pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
    def test_a_fault_leaves_the_file_as_it_was_and_nothing_else(self, tmp_path, fault):
        path = tmp_path / "table.csv"
        path.write_text("old")
        writing = atomic_write(path)
        writing.__enter__().write_text("half")
        assert not writing.__exit__(fault, fault(), None)  # it is not swallowed
        assert path.read_text() == "old"
        assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]

    @POSIX
    def test_drafts_of_processes_that_are_gone_are_removed(self, tmp_path):
        (tmp_path / "tables").mkdir()
        path = tmp_path / "tables/a.csv"
        abandoned_draft(path)
        for name in (".own.part", "a.csv"):
            (tmp_path / "tables" / name).touch()
        with atomic_write(path) as draft:
            draft.touch()
            remove_stale_drafts(tmp_path)
            names = sorted(file.name for file in (tmp_path / "tables").iterdir())
        assert names == sorted([draft.name, ".own.part", "a.csv"])

    @POSIX
    def test_drafts_of_another_machine_are_removed_when_nobody_has_touched_them_for_a_day(self, tmp_path):
        """On a machine that shares the drive the process may be alive."""
        writer = f"0123abcd-{gone_process()}-0123ab"
        names = {hours: f".{hours}.csv.{writer}.part" for hours in (0, 23, 25)}
        for hours, name in names.items():
            (tmp_path / name).touch()
            written = time.time() - 3600 * hours
            os.utime(tmp_path / name, (written, written))
        remove_stale_drafts(tmp_path)
        assert {file.name for file in tmp_path.iterdir()} == {names[0], names[23]}

    @POSIX
    def test_a_draft_of_a_running_process_stays_however_old_it_is(self, tmp_path):
        with atomic_write(tmp_path / "a.csv") as draft:
            draft.touch()
            os.utime(draft, (0, 0))
            remove_stale_drafts_of(tmp_path / "a.csv")
            assert draft.exists()

    def test_two_that_write_the_same_file_have_a_draft_each(self, tmp_path):
        with atomic_write(tmp_path / "a.csv") as one, atomic_write(tmp_path / "a.csv") as other:
            assert one != other
            one.write_text("one")
            other.write_text("other")
        assert (tmp_path / "a.csv").read_text() == "one"

    @POSIX
    def test_drafts_with_an_ending_for_libraries_are_removed_too(self, tmp_path):
        draft = abandoned_draft(tmp_path / "7.nii.gz")
        draft.rename(f"{draft}.nii.gz")
        abandoned_draft(tmp_path / "8.csv")
        (tmp_path / ".particle.nii.gz").touch()
        remove_stale_drafts_of(tmp_path / "8.csv")
        assert len(list(tmp_path.iterdir())) == 2
        remove_stale_drafts(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == [".particle.nii.gz"]

    def test_errors_name_the_file_and_not_its_draft(self, tmp_path):
        path = tmp_path / "table.csv"
        with pytest.raises(OSError, match=r"No space left on device: '.*/table\.csv'"), atomic_write(path):
            raise OSError(errno.ENOSPC, "written by a library in its own words")
        with pytest.raises(FileNotFoundError, match=r"'.*/absent/table\.csv'"):
            write_json(tmp_path / "absent" / "table.csv", {})
        other = tmp_path / "other"
        with pytest.raises(FileNotFoundError, match="other'"), atomic_write(path) as draft:
            draft.write_text(other.read_text())

    def test_of_files_that_belong_together_none_is_new_unless_all_are(self, tmp_path):
        one, other = tmp_path / "one", tmp_path / "other"
        for path in (one, other):
            path.write_text("old")
        with pytest.raises(FileNotFoundError, match="/other'"), atomic_write_all(one, other) as drafts:
            drafts[0].write_text("new")  # and nothing into the second
        assert one.read_text() == other.read_text() == "old"
        assert sorted(file.name for file in tmp_path.iterdir()) == ["one", "other"]
        with atomic_write_all(one, other) as drafts:
            for draft in drafts:
                draft.write_text("new")
        assert one.read_text() == other.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="folders cannot be brought to the disk there")
def test_the_file_and_then_its_name_are_brought_to_the_disk(tmp_path, monkeypatch):
    brought, really = [], os.fsync

    def noting(descriptor):
        brought.append((os.fstat(descriptor).st_ino, (tmp_path / "a.txt").exists()))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    with atomic_write(tmp_path / "a.txt") as draft:
        draft.write_text("whole")
    file, folder = (tmp_path / "a.txt").stat().st_ino, tmp_path.stat().st_ino
    assert brought == [(file, False), (folder, True)]


def test_the_size_limit_is_taken_from_the_environment(monkeypatch):
    monkeypatch.delenv("SEGTRUST_MAX_BYTES", raising=False)
    assert max_bytes() == 16 << 30
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "")
    assert max_bytes() == 16 << 30
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    assert max_bytes() == 1000


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "16GB", "1.5", " "])
def test_a_limit_that_is_not_a_number_is_rejected(monkeypatch, text):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", text)
    with pytest.raises(ParameterError, match=f"^SEGTRUST_MAX_BYTES: .* got '{text}'"):
        max_bytes()


def test_what_is_too_large_says_how_to_allow_it(monkeypatch):
    check_size("case.npy", 16 << 30)
    with pytest.raises(
        UnsafeFileError, match=r"^case\.npy: .* 16 GiB in memory, got one of 32 GiB.*=34359738368\."
    ):
        check_size("case.npy", 32 << 30)


def test_the_error_names_what_was_read():
    with pytest.raises(UnsafeFileError, match=r"^a\.csv: expected a table of at most 16 GiB in memory, got"):
        check_size("a.csv", 32 << 30, is_whole=False, what="a table")
