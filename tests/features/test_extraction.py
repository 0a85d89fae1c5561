"""Arguments, names and choice of the backend."""

import sys

import numpy as np
import pytest

from segtrust.errors import (
    EmptyArrayError,
    MaskShapeError,
    MissingExtraError,
    NotBinaryError,
    ParameterError,
    UnknownNameError,
)
from segtrust.features import extract_features, feature_names

IMAGE = np.random.default_rng(0).random((9, 8))
MASK = IMAGE > 0.5


def features(image=IMAGE, mask=MASK, **options):
    return extract_features(image, mask, **options)


@pytest.mark.parametrize("kind", ["uint8", "int64", "float32"])
def test_masks_of_any_type(kind):
    assert (features(mask=MASK.astype(kind)) == features()).all()


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], np.ndarray.tolist]
)
def test_layout_does_not_matter(change):
    assert (features(change(IMAGE), change(MASK)) == features()).all()


@pytest.mark.parametrize("kind", ["float16", "float32", "longdouble", ">f8"])
def test_floats_of_any_width(kind):
    image = IMAGE.astype(kind)
    assert (features(image) == features(image.astype(float))).all()


def test_integers_are_taken_as_they_are():
    image = (IMAGE * 20).astype(np.uint8)
    assert (features(image) == features(image.astype(float))).all()


def test_values_outside_the_mask_do_not_matter():
    image = np.where(MASK, IMAGE, np.nan)
    assert (features(image) == features()).all()


def test_nothing_is_written_to():
    image, mask = IMAGE.copy(), MASK.copy()
    image.flags.writeable = mask.flags.writeable = False
    assert (features(image, mask) == features()).all()


def bad_pixel(value):
    image = IMAGE.copy()
    image[tuple(np.argwhere(MASK)[3])] = value
    return image


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_values_inside_the_mask_are_named(value):
    row, column = np.argwhere(MASK)[3]
    with pytest.raises(ParameterError, match=rf"finite values .* got {value} at index \({row}, {column}\)"):
        features(bad_pixel(value))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mask": MASK[:-1]}, MaskShapeError, r"\(9, 8\), got \(8, 8\)"),
        ({"mask": MASK * 2}, NotBinaryError, "only 0 and 1"),
        ({"image": IMAGE[0], "mask": MASK[0]}, ParameterError, "2 or 3 dimensions"),
        ({"image": IMAGE > 0.3}, ParameterError, "floats or integers, got bool"),
        ({"image": IMAGE * 1j}, ParameterError, "floats or integers, got complex"),
        ({"image": IMAGE[:0], "mask": MASK[:0]}, EmptyArrayError, "at least one pixel"),
        ({"image": "map.png"}, ParameterError, "expected an array"),
        ({"bin_width": 0}, ParameterError, "bin_width: expected a finite number above 0"),
        ({"bin_width": -1}, ParameterError, "bin_width: expected a finite number above 0"),
        ({"bin_width": np.nan}, ParameterError, "bin_width: expected a finite number above 0"),
        ({"bin_width": "25"}, ParameterError, "bin_width: expected a finite number above 0"),
        ({"backend": "fast"}, UnknownNameError, "available: compiled, pyradiomics"),
    ],
)
def test_invalid_input_is_rejected_by_name(arguments, error, words):
    with pytest.raises(error, match=words):
        features(**arguments)


def test_one_level_needs_no_pyradiomics(monkeypatch):
    monkeypatch.setitem(sys.modules, "radiomics", None)
    assert (features() == features(backend="compiled")).all()


@pytest.mark.parametrize("options", [{"bin_width": 0.05}, {"backend": "pyradiomics"}])
def test_absent_pyradiomics_names_the_extra(monkeypatch, options):
    monkeypatch.setitem(sys.modules, "radiomics", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'segtrust\[radiomics\]'"):
        features(**options)


@pytest.mark.needs("torch")
def test_tensors():
    import torch

    assert (features(torch.tensor(IMAGE), torch.tensor(MASK)) == features()).all()


@pytest.mark.parametrize(("ndim", "shape"), [(2, {"shape2D": 9}), (3, {"shape": 14})])
def test_names_are_distinct_and_in_order(ndim, shape):
    counts = shape | {"firstorder": 18, "glcm": 24, "glrlm": 16, "glszm": 16, "gldm": 14}
    names = feature_names(ndim)
    classes = [name.partition("_")[0] for name in names]
    assert len(set(names)) == len(names) == sum(counts.values())
    assert {group: classes.count(group) for group in classes} == counts
    assert list(dict.fromkeys(classes)) == list(counts)


@pytest.mark.parametrize("ndim", [1, 4, "2"])
def test_names_of_other_dimensions_are_rejected(ndim):
    with pytest.raises(ParameterError, match="expected 2 or 3"):
        feature_names(ndim)
