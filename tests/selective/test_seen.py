"""Cases that were used already are rejected."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SavedStateError, SeenCasesError
from segtrust.selective import HashedIds, ids_as_text, reject_seen
from segtrust.selective.seen import check_ids


def test_unseen_cases_pass():
    assert reject_seen(["a", "b"], None, 2) == ("a", "b")
    assert reject_seen(np.array(["a", "b"]), {"c"}, 2) == ("a", "b")
    assert reject_seen(None, None, 2) == reject_seen(None, (), 2) == ()


def test_seen_cases_are_named():
    with pytest.raises(SeenCasesError, match=r"2 of 3 cases have been used already \('a', 'c'\)"):
        reject_seen(["a", "b", "c"], ["c", "a", "x"], 3)
    with pytest.raises(SeenCasesError, match=r"\('0', '1', '2', …\)"):
        reject_seen(range(9), range(9), 9)


def test_numbers_and_text_are_the_same_name():
    with pytest.raises(SeenCasesError):
        reject_seen([7], ["7"], 1)
    with pytest.raises(SeenCasesError):
        reject_seen(np.array([7]), [7], 1)


def test_used_ids_need_ids():
    with pytest.raises(ParameterError, match="ids: expected the id of each case"):
        reject_seen(None, ["a"], 2)


def test_each_case_has_one_name():
    with pytest.raises(CaseLengthError, match="ids: expected 3 values"):
        check_ids(["a"], 3)
    with pytest.raises(CaseValueError, match="'b' 2 times"):
        check_ids(["a", "b", "b"], 3)
    assert check_ids([], 0) == ()


def test_ids_are_compared_as_text():
    assert ids_as_text([7, 7.5, "b", np.int64(8), np.str_("c"), 9.0, Path("d")]) == (
        "7",
        "7.5",
        "b",
        "8",
        "c",
        "9",
        "d",
    )
    assert ids_as_text(None) is None


@pytest.mark.parametrize("ids", ["ab", {"a", "b"}, 7, np.array(7), np.array([["a"], ["b"]])])
def test_what_are_no_ids(ids):
    with pytest.raises(CaseLengthError, match="ids: expected one per case, in the order of the cases"):
        check_ids(ids, 2)


@pytest.mark.parametrize("missing", [None, float("nan"), "", np.datetime64("NaT", "D")])
def test_a_case_without_a_name(missing):
    with pytest.raises(CaseValueError, match="ids: expected one for every case, got none for case 1"):
        check_ids(["a", missing], 2)


def test_used_ids_are_a_collection():
    for bad in ("abc", 7):
        with pytest.raises(ParameterError, match=f"used_ids: expected a collection of ids, got {bad!r}"):
            reject_seen(["a"], bad, 1)


class TestHashed:
    hashed = HashedIds.of([7, "b"], "salt")

    def test_ids_are_found_again(self):
        assert "7" in self.hashed
        assert 7.0 in self.hashed
        assert "c" not in self.hashed
        assert len(self.hashed) == 2
        assert not HashedIds()

    def test_hashes_are_those_of_salt_and_id(self):
        assert HashedIds.of(["b"], "salt").hashes == {sha256(b"salt\nb").hexdigest()}

    def test_they_are_rejected_like_ids_in_the_clear(self):
        with pytest.raises(SeenCasesError, match=r"1 of 2 cases have been used already \('b'\)"):
            reject_seen(["a", "b"], self.hashed, 2)
        assert reject_seen(["a", "c"], self.hashed, 2) == ("a", "c")
        with pytest.raises(ParameterError, match="expected the id of each case"):
            reject_seen(None, self.hashed, 2)
        assert reject_seen(None, HashedIds(), 2) == ()

    def test_round_trip(self):
        assert HashedIds.from_dict(self.hashed.to_dict()) == self.hashed

    def test_the_source_is_told_by_name(self):
        with pytest.raises(SavedStateError, match=r"policy\.json: 'hashes' is missing"):
            HashedIds.from_dict({"salt": "salt"}, source="policy.json")
        with pytest.raises(TypeError, match="positional"):
            HashedIds.from_dict(self.hashed.to_dict(), "policy.json")

    @pytest.mark.parametrize("hashes", ["b", ["b"], [3], 3, ["A" * 64]])
    def test_what_are_no_hashes(self, hashes):
        with pytest.raises(ParameterError, match="hashes of 64 hexadecimal digits"):
            HashedIds("salt", hashes)
