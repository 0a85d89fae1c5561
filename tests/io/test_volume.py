"""An array that has been opened, and what formats of several arrays have in common."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats import _common
from segtrust.io.formats._common import (
    ChunkedArray,
    check_chunks,
    check_map,
    choose_name,
    list_names,
    read_chunked,
    reading,
)
from segtrust.io.volume import TRUTHS, Volume, open_volume, read_map

PATH = Path("case.npy")
STORE = Path("case.store")


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


def test_one_array_is_read_by_one_function(tmp_path):
    values = np.random.default_rng(0).random((3, 4, 5, 6)).astype(np.float32)
    np.savez_compressed(tmp_path / "a.npz", p_hat=values, other=values[0])
    path = tmp_path / "a.npz"
    np.testing.assert_array_equal(read_map(path, key="p_hat"), values)
    np.testing.assert_array_equal(read_map(str(path), key="p_hat", channel=2), values[2])
    np.testing.assert_array_equal(read_map(path, key="p_hat", index=1, channel=2), values[1, 2])
    assert open_volume(ArrayRef(path, "p_hat", 1)).shape == (4, 5, 6)


# Formats of several arrays, in chunks


class Chunked:
    """As a library gives it: numbers in the index take their axis away."""

    def __init__(self, values, chunks):
        self.values, self.shape, self.dtype, self.chunks = values, values.shape, values.dtype, chunks

    def __getitem__(self, index):
        return self.values[index]


VALUES = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ((0, 1, 2, 3), VALUES),
        ((3, 0, 1, 2), np.moveaxis(VALUES, 3, 0)),
        ((3, 2, 1, 0), VALUES.T),
        ((1, 3, 2), VALUES[0].swapaxes(1, 2)),
        ((3, 1), VALUES[0, :, 0].T),
    ],
)
def test_axes_are_read_in_another_order(axes, expected):
    stored = ChunkedArray(STORE, Chunked(VALUES, (1, 2, 3, 4)), axes)
    np.testing.assert_array_equal(np.asarray(stored), expected)
    piece = (1, *(slice(1, 3),) * (stored.ndim - 1))
    np.testing.assert_array_equal(stored[piece], expected[piece])
    assert stored.shape == expected.shape
    assert stored.chunks == tuple((1, 2, 3, 4)[axis] for axis in axes)


def test_a_piece_that_cannot_be_read_names_its_file():
    class Broken(Chunked):
        def __getitem__(self, index):
            raise RuntimeError("no\nsuch chunk")

    stored = ChunkedArray(STORE, Broken(VALUES, None), (0, 1, 2, 3))
    with pytest.raises(DamagedFileError, match=r"case\.store: expected .* \(no such chunk\)\. "):
        np.asarray(stored)


def test_small_arrays_are_read_at_once_and_large_ones_are_not(monkeypatch):
    closed = []
    stored = ChunkedArray(STORE, Chunked(VALUES, (1, 2, 3, 4)), (0, 1, 2, 3))
    assert isinstance(read_chunked(stored, None, lambda: closed.append(1)), np.ndarray)
    assert closed == [1]
    monkeypatch.setattr(_common, "_AT_ONCE", VALUES.nbytes // 2)
    assert read_chunked(stored, None, lambda: closed.append(2)) is stored
    np.testing.assert_array_equal(read_chunked(stored, 1, lambda: closed.append(3)), VALUES[1])
    assert closed == [1, 3]


def test_chunks_larger_than_an_array_may_be_are_refused(monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "100")
    with pytest.raises(UnsafeFileError, match=r"case\.store: expected an array of at most"):
        check_chunks(ChunkedArray(STORE, Chunked(VALUES, VALUES.shape), (0, 1, 2, 3)))
    check_chunks(ChunkedArray(STORE, Chunked(VALUES, None), (0, 1, 2, 3)))


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["anything"], "anything"),
        (["labels", "a/Probabilities", "image"], "a/Probabilities"),
        (["mask", "softmax"], "softmax"),
        (["image", "prob", "label"], "prob"),
    ],
)
def test_arrays_of_usual_names_are_chosen(names, chosen):
    assert choose_name(STORE, names) == chosen


def test_masks_are_chosen_where_they_are_looked_for_and_never_as_maps():
    assert choose_name(STORE, ["image", "prob", "label"], TRUTHS) == "label"
    with pytest.raises(WrongContentError, match="expected one array, or one called 'probabilities'"):
        choose_name(STORE, ["network output", "label"])


@pytest.mark.parametrize("names", [[], ["a", "b"], ["image", "mask"], ["a/softmax", "b/softmax", "mask"]])
def test_a_choice_that_is_not_clear_is_refused(names):
    with pytest.raises(WrongContentError, match=r"case\.store: expected one array") as caught:
        choose_name(STORE, names)
    assert list_names(names) in str(caught.value)


def test_of_many_names_some_are_list_names():
    assert list_names([str(number) for number in range(25)]).endswith("'19' and 5 more")


@pytest.mark.parametrize("dtype", ["S3", "U2", object, "c8", [("a", "f4")]])
def test_only_numbers_are_maps(dtype):
    with pytest.raises(WrongContentError, match="expected numbers in 'x'"):
        check_map(STORE, "x", (3, 4), np.dtype(dtype))


@pytest.mark.parametrize("shape", [None, (), (3,)])
def test_a_row_is_no_map(shape):
    with pytest.raises(WrongContentError, match="at least 2 dimensions in 'x'"):
        check_map(STORE, "x", shape, np.dtype("f4"))


def test_an_absent_file_stays_an_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError), reading(STORE, "a file"):
        (tmp_path / "absent").read_bytes()


@pytest.mark.needs("h5py")
def test_a_case_of_a_stack_that_is_read_chunk_by_chunk(tmp_path, monkeypatch):
    import h5py

    values = np.random.default_rng(0).random((5, 30, 40)).astype(np.float32)
    with h5py.File(tmp_path / "stack.h5", "w") as file:
        file.create_dataset("p", data=values, chunks=(1, 10, 10))
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "12000")
    volume = open_volume(ArrayRef(tmp_path / "stack.h5", "p", 3))
    assert np.array_equal(volume.read(), values[3])
