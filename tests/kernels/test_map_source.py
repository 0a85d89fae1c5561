"""Arrays of every kind are opened, and thresholded as the estimators do it."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

import segtrust
from segtrust.errors import (
    EmptyArrayError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from segtrust.kernels import count_map, count_mask_changes, open_map, threshold_map
from tests.references import logit_normal

P = logit_normal((12, 14))
MASK = np.random.default_rng(0).random(P.shape) < 0.3
SDC = segtrust.soft_dice_confidence(P, MASK)


@pytest.mark.needs("h5py")
def test_a_data_set_that_is_one_number(tmp_path):
    import h5py

    with h5py.File(tmp_path / "one.h5", "w") as file:
        one = file.create_dataset("p", data=0.7)
        names = ["sdc", "idc", "ane", "mmmc", "pla"]
        assert segtrust.score(one, estimators=names) == segtrust.score(0.7, estimators=names)


@pytest.mark.needs("zarr")
def test_a_store_that_is_one_number():
    import zarr

    assert segtrust.soft_dice_confidence(zarr.array(np.array(0.7))) == segtrust.soft_dice_confidence(0.7)


@pytest.mark.needs("dask", "pandas")
def test_lists_and_tables_are_masks_of_maps_in_chunks():
    import dask.array
    import pandas as pd

    p = dask.array.from_array(P, chunks=5)
    for mask in (MASK.tolist(), pd.DataFrame(MASK), MASK.astype(float).tolist()):
        assert segtrust.soft_dice_confidence(p, mask) == pytest.approx(SDC, rel=1e-14)
    with pytest.raises(MaskShapeError, match=r"mask: expected the shape of p, \(12, 14\), got \(2,\)"):
        segtrust.soft_dice_confidence(p, [0, 1])


@pytest.mark.needs("torch", "zarr")
def test_a_mask_comes_to_its_map_from_anywhere():
    import torch
    import zarr

    tensor = torch.tensor(MASK, dtype=torch.float32, requires_grad=True)
    assert segtrust.soft_dice_confidence(P, tensor) == SDC
    assert segtrust.dice(tensor, MASK) == 1
    for mask in (zarr.array(MASK, chunks=(5, 5)), MASK.tolist()):
        assert segtrust.soft_dice_confidence(torch.from_numpy(P), mask).item() == pytest.approx(SDC)
        assert segtrust.soft_dice_confidence(P, mask) == SDC


def test_masks_are_named_by_their_case():
    with pytest.raises(MaskShapeError, match="case 7: mask: expected the shape"):
        open_map(P, MASK[1:], source="case 7")


@pytest.mark.needs("dask")
def test_type_and_shape_of_a_map_in_chunks_are_checked_when_it_is_opened():
    import dask.array

    for p, error in ((np.ones((4, 5), np.int64), ProbabilityTypeError), (np.ones((0, 5)), EmptyArrayError)):
        with pytest.raises(error, match="case 7: expected"):
            open_map(dask.array.from_array(p, chunks=3), source="case 7")


def test_a_threshold_of_any_number_type_is_rounded_alike():
    p = np.array([0.7, 0.6], np.float32)
    for threshold in (0.7, np.float64(0.7), np.longdouble(0.7)):
        assert threshold_map(p, threshold=threshold).tolist() == [True, False]
        assert open_map(p, threshold=threshold).count().k == 1
    assert type(segtrust.Prediction(p, threshold=np.float64(0.7)).threshold) is float


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan, np.inf, "0.5"])
def test_thresholds_that_are_no_probability(threshold):
    for function in (open_map, threshold_map):
        with pytest.raises(ParameterError, match=r"threshold: expected a number in \[0, 1\], got"):
            function(P, threshold=threshold)


def in_type(kind, shape=(13, 17)):
    p = np.random.default_rng(0).random(shape)
    if kind == "bool":
        return p > 0.5
    return p.astype(kind) if kind.startswith("float") else np.round(p * np.iinfo(kind).max).astype(kind)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", "uint16", "bool"])
def test_a_thresholded_map_has_as_many_pixels_as_the_estimators_count(kind):
    p = in_type(kind)
    for layout in (p, p.T, p[::-1, ::2], np.asfortranarray(p)):
        for threshold in (0.0, 0.35, 0.5, 0.7, 1.0):
            mask = threshold_map(layout, threshold=threshold)
            assert (mask.shape, mask.dtype) == (layout.shape, bool)
            assert mask.sum() == open_map(layout, threshold=threshold).count().k


def test_a_thresholded_map_equals_the_comparison_of_numpy():
    p = in_type("float32")
    np.testing.assert_array_equal(threshold_map(p), p >= 0.5)


@pytest.mark.needs("dask")
def test_a_map_in_chunks_is_thresholded_tile_by_tile():
    import dask.array

    p = in_type("float32")
    np.testing.assert_array_equal(
        threshold_map(dask.array.from_array(p, chunks=5), threshold=0.3), p >= np.float32(0.3)
    )


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.floats(0, 1)))
def test_changes_of_a_mask_are_counted(p):
    mask = np.random.default_rng(p.size).random(p.shape) > 0.5
    assert count_mask_changes(p, mask) == np.count_nonzero((p >= 0.5) != mask)


def test_changes_of_an_integer_mask_of_a_large_map_are_counted():
    p = in_type("float32", shape=(300, 500))
    mask = (p > 0.4).astype(np.uint8)
    assert count_mask_changes(p, mask) == np.count_nonzero((p >= 0.5) != (p > 0.4))


class TestCountMap:
    """The short way for one small image, compared with opening the map."""

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4", "uint8", "bool"])
    @pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 6), (65, 64), (3, 20, 70)])
    def test_equals_the_counts_of_the_open_map(self, shape, dtype):
        rng = np.random.default_rng(3)
        p = (rng.random(shape) * (255 if dtype == "uint8" else 1)).astype(dtype)
        masks = [None] + [
            np.asarray(rng.random(shape) < 0.4).astype(kind) for kind in ("bool", "uint8", "int64")
        ]
        for mask in masks:
            assert count_map(p, mask) == open_map(p, mask).count()
            if p.ndim > 1:
                assert count_map(p.T, None if mask is None else mask.T) == open_map(p, mask).count()

    @pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.0001])
    @pytest.mark.parametrize("mask", [None, np.ones(9, np.uint8)])
    def test_bad_values_raise_the_same_error(self, value, mask):
        p = np.full(9, 0.5, np.float32)
        p[4] = value
        with pytest.raises(ProbabilityRangeError) as direct:
            count_map(p, mask)
        with pytest.raises(ProbabilityRangeError) as opened:
            open_map(p, mask).count()
        assert str(direct.value) == str(opened.value)

    def test_mask_is_checked(self):
        p = np.full(9, 0.5, np.float32)
        with pytest.raises(NotBinaryError, match="got the values 3"):
            count_map(p, np.full(9, 3, np.uint8))
        with pytest.raises(MaskShapeError):
            count_map(p, np.ones(8, bool))
        assert count_map(p, np.full(9, 7, np.uint8).view(bool)).k == 9

    def test_negative_zero_is_a_probability_and_the_array_stays_writeable(self):
        p = np.array([-0.0, 0.75], np.float32)
        mask = np.array([False, True])
        assert count_map(p, mask).s == 0.75
        assert p.flags.writeable
        assert mask.flags.writeable
