"""Labels, channels and sums over the classes, wherever the array lies."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import segtrust
from segtrust.errors import MaskError, NotNormalisedError
from segtrust.kernels import channel_of, check_labels, check_normalised, classes, most_probable_labels


def as_torch(values):
    import torch

    return torch.from_numpy(values)


def as_jax(values):
    import jax

    return jax.numpy.asarray(values)


def as_dask(values):
    import dask.array

    return dask.array.from_array(values, chunks=2)


KINDS = [
    np.asarray,
    pytest.param(as_torch, marks=pytest.mark.needs("torch")),
    pytest.param(as_jax, marks=pytest.mark.needs("jax")),
    pytest.param(as_dask, marks=pytest.mark.needs("dask")),
]


@pytest.mark.parametrize("kind", KINDS)
class TestLabels:
    @pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "float16"])
    def test_whole_numbers_of_any_type(self, kind, dtype):
        check_labels(kind(np.array([[0, 1, 1], [1, 0, 0]], dtype)), 2)

    @pytest.mark.parametrize(
        ("dtype", "label"),
        [("uint8", 255), ("uint16", 3), ("int16", -1), ("float32", 0.5), ("float32", np.nan)],
    )
    def test_other_numbers(self, kind, dtype, label):
        labels = np.array([[0, 1, 2], [2, 0, 0]], dtype)
        labels[1, 2] = label
        with pytest.raises(MaskError, match=rf"truth: expected .* from 0 to 2, .*, got {label:g}\. Renumber"):
            check_labels(kind(labels), 3, "truth")

    @pytest.mark.parametrize("label", [-np.inf, np.inf])
    def test_infinite_numbers(self, kind, label):
        with pytest.raises(MaskError, match=f"got {label:g}"):
            check_labels(kind(np.array([0.0, label])), 3)


@pytest.mark.parametrize("dtype", ["complex64", "U3", "object", "M8[s]"])
def test_types_that_number_nothing(dtype):
    with pytest.raises(MaskError, match=r"mask: expected whole numbers as labels, .* got the type"):
        check_labels(np.zeros(3, dtype), 3)


def softmax(shape, axis):
    exponentials = np.exp(np.random.default_rng(0).normal(0, 3, shape).astype(np.float32))
    return exponentials / exponentials.sum(axis, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
class TestSums:
    @pytest.mark.parametrize("shape", [(3, 5), (3, 40, 50), (3, 1, 9000), (3, 7, 8, 9)])
    def test_of_a_softmax(self, kind, shape):
        check_normalised(kind(softmax(shape, 0)), remedy="Fix it.")
        with pytest.raises(NotNormalisedError, match=r"p: .* axis 0 of \(3, .* from 1\.1 to 1\.1\. Fix"):
            check_normalised(kind(softmax(shape, 0) * 1.1), remedy="Fix it.")

    def test_over_another_axis(self, kind):
        p = softmax((2, 3, 4, 5), 1)
        check_normalised(kind(p), axis=1, remedy="")
        with pytest.raises(NotNormalisedError, match="values: expected a softmax over axis 1 of"):
            check_normalised(kind(np.moveaxis(p, 1, 2).copy()), axis=1, source="values", remedy="")

    @pytest.mark.parametrize("dtype", ["uint8", "uint16"])
    def test_of_many_classes_in_few_levels(self, kind, dtype):
        levels = (softmax((100, 50), 0) * np.iinfo(dtype).max).round().astype(dtype)
        check_normalised(kind(levels), remedy="")

    def test_the_likeliest_is_the_first_of_the_largest(self, kind):
        p = np.round(softmax((5, 9, 7), 0), 1)
        assert np.array_equal(np.asarray(most_probable_labels(kind(p))), p.argmax(0))


@pytest.mark.parametrize(
    "lengths", [(1,), (999,), (10**6,), (1, 10**6), (300, 301), (155, 240, 99), (9,) * 5]
)
def test_about_a_thousand_pixels_are_looked_at(lengths):
    steps = classes._steps(lengths)
    seen = np.prod([len(range(0, length, step)) for length, step in zip(lengths, steps, strict=True)])
    assert min(400, np.prod(lengths)) <= seen <= 1000


@pytest.mark.needs("dask")
def test_a_channel_is_read_when_it_is_asked_for():
    p = softmax((3, 6, 7), 0)
    channel = channel_of(as_dask(p), 1)
    assert (channel.shape, channel.dtype, len(channel.chunks)) == ((6, 7), p.dtype, 2)
    assert np.array_equal(np.asarray(channel[2:4, :]), p[1, 2:4])
    assert np.array_equal(np.asarray(channel), p[1])
    assert channel_of(p, 1).base is p


@pytest.mark.parametrize(("count", "dtype"), [(1, "uint8"), (256, "uint8"), (257, "uint16")])
def test_labels_in_memory_are_of_the_smallest_type(count, dtype):
    p = softmax((count, 40), 0)
    labels = most_probable_labels(p)
    assert labels.dtype == dtype
    assert np.array_equal(labels, p.argmax(0))


@pytest.mark.parametrize(
    "view", [np.asfortranarray, lambda p: np.moveaxis(np.moveaxis(p, 0, -1).copy(), -1, 0)]
)
def test_the_likeliest_of_maps_laid_out_otherwise(view):
    p = softmax((5, 33, 7, 6), 0)
    assert np.array_equal(most_probable_labels(view(p)), p.argmax(0))


KINDS = ["float16", "float32", "float64", "longdouble", ">f4", "uint8", "uint16", "bool"]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_most_probable_labels_equal_argmax(kind, data):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=4, max_side=5))
    levels = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 3)))
    if kind in ("uint8", "uint16", "bool"):
        p = levels.astype(kind)
    else:
        p = np.array([-0.0, 0.0, 0.25, 1.0])[levels].astype(kind)
    for values in (p, np.asfortranarray(p), p[:, ::-1]):
        assert np.array_equal(most_probable_labels(values), values.argmax(0))


@pytest.mark.parametrize("classes", [1, 2, 255, 256, 257, 300])
def test_labels_of_many_classes_and_several_segments(classes):
    rng = np.random.default_rng(classes)
    p = rng.random((classes, 8195)).astype(np.float16)
    labels = most_probable_labels(p)
    assert labels.dtype == (np.uint8 if classes <= 256 else np.uint16)
    assert np.array_equal(labels, p.argmax(0))
    wide = rng.random((3, (1 << 19) + 5), dtype=np.float32)
    with segtrust.use_threads(2):
        assert np.array_equal(most_probable_labels(wide), wide.argmax(0))


def test_labels_of_negative_half_floats():
    logits = np.random.default_rng(0).normal(0, 3, (5, 999)).astype(np.float16)
    assert np.array_equal(most_probable_labels(logits), logits.argmax(0))
