"""How much memory a file may ask for."""

from pathlib import Path

import pytest

from segtrust.errors import ParameterError, UnsafeFileError
from segtrust.limits import check_size, largest_case

PATH = Path("case.npy")


def test_the_limit_is_taken_from_the_environment(monkeypatch):
    monkeypatch.delenv("SEGTRUST_MAX_BYTES", raising=False)
    assert largest_case() == 16 << 30
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "")
    assert largest_case() == 16 << 30
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "1000")
    assert largest_case() == 1000


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "16GB", "1.5", " "])
def test_a_limit_that_is_no_number_is_refused(monkeypatch, text):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", text)
    with pytest.raises(ParameterError, match=f"^SEGTRUST_MAX_BYTES: .* got '{text}'"):
        largest_case()


def test_what_is_too_large_says_how_to_allow_it(monkeypatch):
    check_size(PATH, 16 << 30)
    with pytest.raises(
        UnsafeFileError, match=r"^case\.npy: .* 16 GiB in memory, got one of 32 GiB.*=34359738368\."
    ):
        check_size(PATH, 32 << 30)


def test_it_is_told_what_was_read():
    with pytest.raises(UnsafeFileError, match=r"^a\.csv: expected a table of at most 16 GiB in memory, got"):
        check_size("a.csv", 32 << 30, is_whole=False, what="a table")
