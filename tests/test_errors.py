"""What errors say: one line, whatever a file has put into it."""

import pytest

from segtrust.errors import DamagedFileError, MissingExtraError, SegtrustError, UnknownNameError


@pytest.mark.parametrize("kind", [SegtrustError, DamagedFileError, UnknownNameError, MissingExtraError])
def test_a_message_stays_on_its_line(kind):
    said = str(kind("a.npz: expected data, got 'x\ny\r\tz'\x1b[31m\x00\u2028."))
    assert said == "a.npz: expected data, got 'x y  z'\\x1b[31m\\x00\\u2028."
    assert len(said.splitlines()) == 1


def test_a_usual_message_is_as_it_was_written():
    said = "a  b.npz: expected “œuvre”, got 'ünïcode' … 10³ × 2."
    assert str(DamagedFileError(said)) == said


def test_of_a_long_message_beginning_and_end_are_kept():
    said = str(DamagedFileError(f"a.npz: expected {'x' * 100_000}. Save it again."))
    assert said.startswith("a.npz: expected xxx")
    assert said.endswith("xxx. Save it again.")
    assert len(said) < 1600


def test_an_error_without_words_has_none():
    assert str(SegtrustError()) == str(UnknownNameError()) == ""
