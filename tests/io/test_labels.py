"""Masks, from whatever stands for foreground."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import NotBinaryError
from segtrust.io.labels import LazyMask, mask_of_values

KINDS = ("u1", "u2", ">u2", "i1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4")


@pytest.mark.parametrize("dtype", [*KINDS, "?"])
def test_zeros_and_ones_are_a_mask(dtype):
    mask = mask_of_values(np.array([[0, 1], [1, 0]], dtype), None, "a.png")
    assert mask.dtype == bool
    assert mask.tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(
    ("dtype", "white"), [("u1", 255), ("u2", 255), ("u2", 65535), ("f4", 255), ("i4", 65535)]
)
def test_white_is_foreground(dtype, white):
    assert mask_of_values(np.array([0, white], dtype), None, "a.png").tolist() == [False, True]


@pytest.mark.parametrize("dtype", KINDS)
def test_empty_and_full_masks_are_masks(dtype):
    assert not mask_of_values(np.zeros((2, 2), dtype), None, "a.png").any()
    assert mask_of_values(np.ones((2, 2), dtype), None, "a.png").all()
    assert mask_of_values(np.zeros((0, 3), dtype), None, "a.png").shape == (0, 3)


@pytest.mark.parametrize(
    ("labels", "listed"),
    [
        ([0, 2], "0, 2"),
        ([0, 1, 2], "0, 1, 2"),
        ([0, 1, 255], "0, 1, 255"),
        ([0, 128, 255], "0, 128, 255"),
        ([0, -1], "-1, 0"),
        ([-1, 0, 1], "-1, 0, 1"),
        ([-3, -2], "-3, -2"),
        (list(range(20)), "0, 1, 2, 3, 4, 5, 6, 7, …"),
    ],
)
def test_labels_are_no_mask(labels, listed):
    for dtype in ("i2", "f4", "i8"):
        with pytest.raises(NotBinaryError, match=rf"^a\.png: .* got labels {listed}\. Say which .*--label"):
            mask_of_values(np.array(labels, dtype), None, "a.png")


@pytest.mark.parametrize("worst", [0.5, np.nan, np.inf, -np.inf, 3e9, 1e300])
def test_floats_that_are_not_whole_are_no_labels(worst):
    for values in (None, (1,)):
        with pytest.raises(NotBinaryError, match=r"^a\.npy: expected labels, .* got float64 from .* to"):
            mask_of_values(np.array([0.0, worst]), values, "a.npy")


@pytest.mark.parametrize("dtype", ["c8", "U1", "S1", "M8[s]", [("a", "f4")]])
def test_what_is_no_number_is_no_label(dtype):
    with pytest.raises(NotBinaryError, match=r"^a\.npy: expected labels, which are whole numbers, got"):
        mask_of_values(np.zeros(3, dtype), None, "a.npy")


@given(
    labels=arrays.arrays(st.sampled_from(KINDS), (3, 4), elements=st.integers(0, 9)),
    values=st.sets(st.integers(0, 12), max_size=4),
)
def test_labels_of_a_structure_are_its_mask(labels, values):
    found = mask_of_values(labels, tuple(values), "a.nii.gz")
    assert found.dtype == bool
    assert (found == np.isin(labels, sorted(values))).all()


def test_a_structure_may_be_the_background_of_a_mask():
    labels = np.array([True, False])
    assert mask_of_values(labels, (0,), "a.npy").tolist() == [False, True]
    assert mask_of_values(labels, (1, 2), "a.npy").tolist() == [True, False]
    assert mask_of_values(labels, (2,), "a.npy").tolist() == [False, False]


def test_a_structure_of_no_labels_is_nowhere():
    assert not mask_of_values(np.array([-1, 0, 1]), (), "a.npy").any()


def test_labels_beyond_the_type_are_not_there():
    assert not mask_of_values(np.array([0, 44], np.uint8), (300,), "a.npy").any()


@pytest.mark.parametrize("dtype", ["u1", "u2", "i4", "f4"])
@pytest.mark.parametrize("known", [(0, 1, 2), (0, 1, 4), (1, 2)])
def test_labels_of_another_data_set_are_told(dtype, known):
    labels = np.array([0, 1, 7, 9], dtype)
    with pytest.raises(
        NotBinaryError, match=rf"^a\.nii: expected the labels {min(known)}?.*, got 7, 9 as well"
    ):
        mask_of_values(labels, (1,), "a.nii", known=known)
    assert mask_of_values(labels[:2], (1,), "a.nii", known=known).tolist() == [False, True]


def test_negative_labels_are_told():
    with pytest.raises(NotBinaryError, match="got -1 as well"):
        mask_of_values(np.array([0, -1, 1], np.int8), (1,), "a.nii", known=(0, 1))


def test_pieces_are_read_as_they_are_needed():
    labels = np.arange(12).reshape(3, 4) % 3
    mask = LazyMask(labels, (2,), "a.zarr", (0, 1, 2))
    assert (mask.shape, mask.dtype) == ((3, 4), bool)
    assert (mask[1:, :2] == (labels == 2)[1:, :2]).all()
    assert (np.asarray(mask) == (labels == 2)).all()
    with pytest.raises(NotBinaryError, match=r"^a\.zarr: expected the labels 0, 1, got 2 as well"):
        LazyMask(labels, (1,), "a.zarr", (0, 1))[:1]
