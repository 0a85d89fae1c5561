"""What errors say: one line, whatever a file has put into it."""

import pytest

from segtrust import errors
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


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name != "SegtrustWarning"])
def test_the_tree_in_the_docstring_is_complete(name):
    """A class stands below its parent, and its standard exception stands next to it."""
    kind = getattr(errors, name)
    assert issubclass(kind, SegtrustError)
    if name != "SegtrustError":
        (line,) = [line for line in errors.__doc__.splitlines() if line.split()[1:2] == [name]]
        mark = line.split()[0]
        assert mark == ("x" if kind.__bases__[0] is SegtrustError else "·")
        for standard in kind.__bases__[1:]:
            assert standard.__name__ in line
