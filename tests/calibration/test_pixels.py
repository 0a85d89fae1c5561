"""Pixels of a case: the band around the boundary, the mask, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from segtrust.calibration.pixels import host_map, labelled_blocks, mask_of, near_boundary, on_host
from segtrust.errors import NotBinaryError, ParameterError, ProbabilityRangeError, ProbabilityTypeError
from segtrust.maps import Case, Prediction

masks = array_shapes(min_dims=1, max_dims=3, max_side=6).flatmap(lambda shape: arrays(bool, shape))


def brute_force_band(mask, distance):
    """Each pixel's distance to every pixel of the other side."""
    near = np.zeros(mask.shape, bool)
    places = list(np.ndindex(mask.shape))
    for here in places:
        others = [np.subtract(here, there) for there in places if mask[there] != mask[here]]
        near[here] = any(np.hypot.reduce(each.astype(float)) <= distance for each in others)
    return near


@given(masks, st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_band(mask, distance):
    assert (near_boundary(mask, distance) == brute_force_band(mask, distance)).all()


def test_band_of_a_small_object_in_a_large_map():
    mask = np.zeros((200, 300), bool)
    mask[50, 60] = True
    near = near_boundary(mask, 2.0)
    assert near.sum() == 13
    assert near[48, 60]


@pytest.mark.parametrize(
    ("p", "threshold"),
    [
        (np.array([0.1, 0.35, 0.9], np.float32), 0.35),
        (np.array([127, 128, 0], np.uint8), 0.5),
        (np.array([32767, 32768, 0], np.uint16), 0.5),
    ],
)
def test_mask_is_that_of_the_threshold(p, threshold):
    as_floats = p if p.dtype.kind == "f" else p / np.iinfo(p.dtype).max
    assert mask_of(Prediction(p, threshold=threshold)).tolist() == (as_floats >= threshold).tolist()


def test_a_given_mask_wins():
    assert mask_of(Prediction(np.zeros(3), mask=np.array([0, 1, 0]))).tolist() == [False, True, False]


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]])
def test_pixels_keep_their_truth_in_any_layout(layout):
    rng = np.random.default_rng(0)
    p, truth = rng.random((30, 40, 70)), rng.random((30, 40, 70)) < 0.5
    case = Case(Prediction(layout(p)), truth)
    values, labels = (
        np.concatenate([part.copy() for part in parts])
        for parts in zip(
            *[(a.copy(), b.copy()) for a, b in labelled_blocks(on_host(case), None)], strict=True
        )
    )
    assert set(zip(values, labels, strict=True)) == set(
        zip(p.ravel(), truth.ravel().astype(int), strict=True)
    )


def test_blocks_of_a_band():
    p = np.array([0.1, 0.2, 0.7, 0.8])
    ((values, labels),) = list(labelled_blocks(on_host(Case(Prediction(p), np.array([0, 1, 0, 1]))), 1.0))
    assert (values.tolist(), labels.tolist()) == ([0.2, 0.7], [1, 0])


@pytest.mark.needs("torch")
def test_tensors_come_to_the_host():
    import torch

    case = Case(Prediction(torch.rand(4, 4), mask=torch.ones(4, 4)), torch.ones(4, 4, dtype=torch.bool))
    assert isinstance(on_host(case).prediction.probabilities, np.ndarray)
    assert sum(len(values) for values, _ in labelled_blocks(on_host(case), None)) == 16


def test_refusals():
    with pytest.raises(ProbabilityTypeError, match="got bool"):
        host_map(np.ones(3, bool))
    with pytest.raises(ProbabilityTypeError, match="got int64"):
        host_map(np.ones(3, np.int64))
    with pytest.raises(ParameterError, match="expected Case"):
        on_host(Prediction(np.ones(3)))
    with pytest.raises(ProbabilityRangeError, match=r"case 7: .* got nan at index \(1,\)"):
        list(
            labelled_blocks(on_host(Case(Prediction(np.array([0.5, np.nan]), id="case 7"), np.ones(2))), None)
        )
    with pytest.raises(NotBinaryError, match="case 7: truth"):
        list(labelled_blocks(on_host(Case(Prediction(np.ones(2), id="case 7"), np.array([0, 2]))), None))
