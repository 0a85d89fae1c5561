"""What HDF5 and Zarr have in common."""

from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io import stores
from segtrust.io.stores import Stored, check_map, chosen_name, listed, pixels_of, reading

PATH = Path("case.store")


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
    stored = Stored(PATH, Chunked(VALUES, (1, 2, 3, 4)), axes)
    np.testing.assert_array_equal(np.asarray(stored), expected)
    piece = (1, *(slice(1, 3),) * (stored.ndim - 1))
    np.testing.assert_array_equal(stored[piece], expected[piece])
    assert stored.shape == expected.shape
    assert stored.chunks == tuple((1, 2, 3, 4)[axis] for axis in axes)


def test_a_piece_that_cannot_be_read_names_its_file():
    class Broken(Chunked):
        def __getitem__(self, index):
            raise RuntimeError("no\nsuch chunk")

    stored = Stored(PATH, Broken(VALUES, None), (0, 1, 2, 3))
    with pytest.raises(DamagedFileError, match=r"case\.store: expected .* \(no such chunk\)\. "):
        np.asarray(stored)


def test_small_arrays_are_read_at_once_and_large_ones_are_not(monkeypatch):
    closed = []
    stored = Stored(PATH, Chunked(VALUES, (1, 2, 3, 4)), (0, 1, 2, 3))
    assert isinstance(pixels_of(stored, None, lambda: closed.append(1)), np.ndarray)
    assert closed == [1]
    monkeypatch.setattr(stores, "_AT_ONCE", VALUES.nbytes // 2)
    assert pixels_of(stored, None, lambda: closed.append(2)) is stored
    np.testing.assert_array_equal(pixels_of(stored, 1, lambda: closed.append(3)), VALUES[1])
    assert closed == [1, 3]


def test_chunks_larger_than_an_array_may_be_are_refused(monkeypatch):
    monkeypatch.setenv("SEGTRUST_MAX_BYTES", "100")
    with pytest.raises(UnsafeFileError, match=r"case\.store: expected an array of at most"):
        stores.check_piece(Stored(PATH, Chunked(VALUES, VALUES.shape), (0, 1, 2, 3)))
    stores.check_piece(Stored(PATH, Chunked(VALUES, None), (0, 1, 2, 3)))


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
    assert chosen_name(PATH, names) == chosen


def test_masks_are_chosen_where_they_are_looked_for_and_never_as_maps():
    assert chosen_name(PATH, ["image", "prob", "label"], stores.TRUTHS) == "label"
    with pytest.raises(WrongContentError, match="expected one array, or one called 'probabilities'"):
        chosen_name(PATH, ["network output", "label"])


@pytest.mark.parametrize("names", [[], ["a", "b"], ["image", "mask"], ["a/softmax", "b/softmax", "mask"]])
def test_a_choice_that_is_not_clear_is_refused(names):
    with pytest.raises(WrongContentError, match=r"case\.store: expected one array") as caught:
        chosen_name(PATH, names)
    assert listed(names) in str(caught.value)


def test_of_many_names_some_are_listed():
    assert listed([str(number) for number in range(25)]).endswith("'19' and 5 more")


@pytest.mark.parametrize("dtype", ["S3", "U2", object, "c8", [("a", "f4")]])
def test_only_numbers_are_maps(dtype):
    with pytest.raises(WrongContentError, match="expected numbers in 'x'"):
        check_map(PATH, "x", (3, 4), np.dtype(dtype))


@pytest.mark.parametrize("shape", [None, (), (3,)])
def test_a_row_is_no_map(shape):
    with pytest.raises(WrongContentError, match="at least 2 dimensions in 'x'"):
        check_map(PATH, "x", shape, np.dtype("f4"))


def test_an_absent_file_stays_an_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError), reading(PATH, "a file"):
        (tmp_path / "absent").read_bytes()
