"""Maps of every type and layout, and the errors that are raised before any pixel is read."""

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, ThresholdLevel, dice_bounds, score
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ProbabilityRangeError,
    ProbabilityTypeError,
)
from segtrust.kernels import as_binary, raise_first_bad_value, view_map
from tests.references import close, logit_normal, mask_of, scores

TAU, SIDE = 0.3, 3
EVERYTHING = ["sdc", "idc", "amsp", "apc", "ane", "mmmc", ThresholdLevel(TAU), PatchLevel(SIDE)]
SHAPE = (21, 34)


def in_type(p, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return p >= 0.5
    return (p * np.iinfo(dtype).max).round().astype(dtype) if dtype.kind == "u" else p.astype(dtype)


def assert_all_close(found, reference, tolerance=1e-12):
    wrong = {
        name: (found[name], reference[name])
        for name in found
        if not close(found[name], reference[name], tolerance)
    }
    assert not wrong


def twin(p, mask=None, threshold=0.5):
    return scores(np.asarray(p), mask_of(p, mask, threshold), TAU, SIDE)


TYPES = ["float16", "float32", "float64", "longdouble", "uint8", "uint16", "bool", ">f2", ">f4", ">f8", ">u2"]


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    p = in_type(logit_normal(SHAPE, mean=0), dtype)
    p[0, :4] = in_type(np.array([0.1, 0.35, 0.5, 1.0]), dtype)  # pixels that lie on the threshold
    for threshold in (0, 0.1, 0.35, 0.5, 1):
        assert_all_close(score(p, estimators=EVERYTHING, threshold=threshold), twin(p, threshold=threshold))


MASK_TYPES = ["bool", "uint8", "int8", "int64", "uint16", "float32", "float64", ">i4"]


@pytest.mark.parametrize("map_type", ["float32", "uint8"])
def test_a_mask_that_is_supplied_wins(map_type):
    p = in_type(logit_normal(SHAPE, mean=0), map_type)
    for dtype in MASK_TYPES:
        mask = (np.random.default_rng(0).random(SHAPE) < 0.3).astype(dtype)
        assert_all_close(score(p, mask, EVERYTHING, threshold=0.9), twin(p, mask))


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second pixel": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda a: a.T.copy().T,
    "part of a larger one": lambda a: np.pad(a, 3)[3:-3, 3:-3],
    "read only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "same row again": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype):
    p = LAYOUTS[layout](in_type(logit_normal(SHAPE, mean=0), dtype))
    mask = np.random.default_rng(0).random(SHAPE) < 0.3
    for each in (None, mask, np.asfortranarray(mask)):
        assert_all_close(score(p, each, EVERYTHING), twin(np.array(p), each))


@pytest.mark.parametrize("dtype", ["float32", ">f4"])
def test_memory_maps(tmp_path, dtype):
    p = in_type(logit_normal(SHAPE, mean=0), dtype)
    path = tmp_path / "map.npy"
    np.save(path, p)
    assert_all_close(score(np.load(path, mmap_mode="r"), estimators=EVERYTHING), twin(p))


def test_single_numbers_and_lists():
    for p in (np.array(0.7), np.float32(0.7), 0.7, np.uint8(200), np.array([[[0.7]]]), [[0.7, 0.2]]):
        assert_all_close(score(p, estimators=EVERYTHING), twin(p))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_negative_zeros_are_zeros(dtype):
    for shape in ((50,), (10, 5), (1, 2, 5, 5)):
        p = logit_normal(shape, mean=0).astype(dtype)
        p.flat[::3] = 0
        signed = p.copy()
        signed.flat[::3] = -0.0
        assert np.signbit(signed).any()
        for threshold in (0, 0.5):
            plain = score(p, estimators=EVERYTHING, threshold=threshold)
            assert score(signed, estimators=EVERYTHING, threshold=threshold) == plain


def test_a_map_is_not_copied():
    p = np.zeros((300, 400), np.float32)
    for each in (p, p.T, p.astype(np.uint8), p.astype(np.float16), p.astype(bool)):
        assert np.shares_memory(view_map(each).values, each)


def test_a_bad_value_is_located_in_the_map_wherever_a_segment_begins():
    p = np.array([[0.1, 0.2, 0.3], [0.4, 1.5, 0.6]])
    with pytest.raises(ProbabilityRangeError, match=r"\(1, 1\)"):
        raise_first_bad_value(view_map(p), slice(3, None))


def test_bytes_that_are_neither_0_nor_1_are_true():
    assert dice_bounds(np.array([0, 1, 2, 255], np.uint8).view(bool)).k == 3


BAD_TYPES = {
    "complex64": "Probabilities are real",
    "int8": "Signed integers",
    "int32": "Signed integers",
    "int64": "Signed integers",
    "uint32": "Only uint8",
    "uint64": "Only uint8",
    "object": "float32 probabilities",
    "U3": "float32 probabilities",
    "S3": "float32 probabilities",
    "M8[s]": "float32 probabilities",
}


@pytest.mark.parametrize("dtype", BAD_TYPES)
def test_types_that_hold_no_probabilities(dtype):
    p = np.zeros((2, 3), dtype)
    with pytest.raises(ProbabilityTypeError, match=f"p: expected float16.* got .*{BAD_TYPES[dtype]}"):
        view_map(p)
    with pytest.raises(TypeError):
        view_map(p)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)])
def test_arrays_without_a_pixel(shape):
    with pytest.raises(EmptyArrayError, match=rf"p: expected at least one pixel, got .*{shape[0]}"):
        view_map(np.zeros(shape))


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 1), ()])
def test_masks_of_another_shape(shape):
    with pytest.raises(
        MaskShapeError, match=r"expected the shape of p, \(2, 3\), got .*resample or transpose"
    ):
        view_map(np.zeros((2, 3)), np.zeros(shape))


BAD_MASKS = {
    "8-bit white": np.array([0, 255], np.uint8),
    "labels": np.array([0, 2]),
    "negative": np.array([-1, 0]),
    "soft": np.array([0.5, 1.0]),
    "NaN": np.array([np.nan, 1.0]),
    "infinite": np.array([np.inf, 1.0]),
    "late": np.append(np.zeros(1 << 21, np.int64), 7),
}


@pytest.mark.parametrize("name", BAD_MASKS)
def test_masks_that_are_not_binary(name):
    mask = BAD_MASKS[name]
    bad = mask[(mask != 0) & (mask != 1)][0]
    with pytest.raises(
        NotBinaryError, match=f"mask: expected only 0 and 1, got the values {bad:g}.*mask > 0"
    ):
        view_map(np.zeros(mask.shape), mask)


def test_many_bad_values_are_cut_short():
    with pytest.raises(NotBinaryError, match="2, 3, 4, 5, 6, 7, …"):
        as_binary(np.arange(20))


@pytest.mark.parametrize("dtype", ["complex128", "object", "U1"])
def test_masks_of_a_type_that_holds_none(dtype):
    with pytest.raises(MaskError, match="mask: expected bool, integers or floats"):
        view_map(np.zeros(2), np.zeros(2, dtype))


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_binary_masks_are_not_copied(dtype):
    mask = np.array([0, 1], dtype)
    assert np.shares_memory(as_binary(mask), mask)
