"""What is known of an array before it is read."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.volumes import Volume, check_size, largest_case

PATH = Path("case.npy")


def volume_of(values, **about):
    def load(channel):
        return values if channel is None else values[channel]

    return Volume(PATH, values.shape, values.dtype, load, **about)


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
    with pytest.raises(UnsafeFileError, match=r"^case\.npy: .* 16 GiB, got one of 32 GiB.*=34359738368\."):
        check_size(PATH, 32 << 30)


def test_the_limit_is_for_what_is_read(monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "200")
    whole = volume_of(np.zeros((3, 5, 5), np.float64))
    assert whole.bytes == 600
    assert whole.read(2).shape == (5, 5)
    with pytest.raises(UnsafeFileError):
        whole.read()
    assert volume_of(np.zeros((3, 5, 5)), lazy=True).read().shape == (3, 5, 5)


@pytest.mark.parametrize("channel", [-1, 3, 100])
def test_a_channel_that_is_not_there_is_refused(channel):
    with pytest.raises(WrongContentError, match=rf"^case\.npy: .* from 0 to 2, got {channel}\."):
        volume_of(np.zeros((3, 5, 5))).read(channel)


@pytest.mark.parametrize(
    ("shape", "has_channels"), [((5,), None), ((), None), ((4, 5), None), ((4, 5), False), ((3, 4, 5), False)]
)
def test_one_map_has_no_channels(shape, has_channels):
    """A row of a flat map is no channel."""
    with pytest.raises(WrongContentError, match=r"^case\.npy: expected channels to choose number 0 from"):
        volume_of(np.zeros(shape), has_channels=has_channels).read(0)


def test_channels_of_lines_are_channels_where_the_file_says_so():
    assert volume_of(np.zeros((4, 5)), has_channels=True).read(0).shape == (5,)
