"""Files that give no more than they hold."""

import pytest

from segtrust.io.capped import CappedFile


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(100)))
    return tmp_path / "a"


@pytest.mark.parametrize("size", [-1, None, 1000, 1 << 62])
def test_all_is_read(path, size):
    with CappedFile(path) as file:
        assert file.read(10) == bytes(range(10))
        assert file.read(size) == bytes(range(10, 100))
        assert file.read(size) == b""


def test_what_lies_behind_the_end_is_nothing(path):
    with CappedFile(path) as file:
        file.seek(1 << 40)
        assert file.read(1 << 50) == b""


def test_no_room_is_made_for_what_is_not_there(path):
    with path.open("rb") as file, pytest.raises((MemoryError, OverflowError)):
        file.read(1 << 62)
    with CappedFile(path) as file:
        assert len(file.read(1 << 62)) == 100
