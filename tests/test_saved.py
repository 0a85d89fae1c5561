"""Saved values: written whole or not at all, and read with nothing taken on trust."""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from segtrust.errors import ParameterError, PolicyError, SavedStateError
from segtrust.saved import (
    check_format,
    check_keys,
    checksum,
    plain,
    read_json,
    reading,
    rebuild,
    remove_old_drafts,
    replacing,
    write_json,
)


@dataclass(frozen=True)
class Pair:
    low: float
    high: float

    def __post_init__(self):
        if not self.low <= self.high:
            raise ParameterError(f"low: expected at most {self.high}, got {self.low}.")


def test_plain_values():
    assert plain({"a": (1, np.float32(0.5)), "b": np.int8(3), "c": np.bool_(True)}, "x") == {
        "a": [1, 0.5],
        "b": 3,
        "c": True,
    }


@pytest.mark.parametrize("value", [object(), {1, 2}, np.zeros(2), float("nan"), np.float32("inf"), b"a"])
def test_what_is_not_plain(value):
    with pytest.raises(ParameterError, match="x: expected plain values only"):
        plain([value], "x")


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": "é"})
    assert read_json(path) == {"a": "é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, float("nan"))
    assert read_json(path) == {"a": "é"}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(SavedStateError, match=r"a\.json: expected JSON"):
        read_json(path)


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
    with pytest.raises(PolicyError, match=r"^a: b: low: expected"), reading("a", error=PolicyError):
        rebuild(Pair, {"low": 2, "high": 1}, "a: b")


def test_checksum_does_not_depend_on_the_order_of_keys():
    assert checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) != checksum({"a": 1, "b": 3})


class TestReplacing:
    def test_a_file_is_replaced_in_one_step(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("old")
        with replacing(path) as draft:
            draft.write_text("new")
            assert path.read_text() == "old"
        assert path.read_text() == "new"
        assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]

    @pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
    def test_a_fault_leaves_the_file_as_it_was_and_nothing_else(self, tmp_path, fault):
        path = tmp_path / "table.csv"
        path.write_text("old")
        writing = replacing(path)
        writing.__enter__().write_text("half")
        assert not writing.__exit__(fault, fault(), None)  # it is not swallowed
        assert path.read_text() == "old"
        assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]

    @pytest.mark.skipif(os.name != "posix", reason="asks for processes by their number")
    def test_drafts_of_processes_that_are_gone_are_removed(self, tmp_path):
        (tmp_path / "tables").mkdir()
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        names = [f".a.csv.{gone.pid}.part", f".a.csv.{os.getpid()}.part", ".own.part", "a.csv"]
        for name in names:
            (tmp_path / "tables" / name).touch()
        remove_old_drafts(tmp_path)
        assert sorted(each.name for each in (tmp_path / "tables").iterdir()) == sorted(names[1:])
