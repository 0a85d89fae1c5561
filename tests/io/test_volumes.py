"""What is known of an array before it is read."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import UnsafeFileError, WrongContentError
from segtrust.io.volumes import Volume

PATH = Path("case.npy")


def volume_of(values, **about):
    def load(channel):
        return values if channel is None else values[channel]

    return Volume(PATH, values.shape, values.dtype, load, **about)


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
