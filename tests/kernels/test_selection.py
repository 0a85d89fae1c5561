"""Pixels that count: `where` gives what the selected pixels alone give, wherever the map lies."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st_
from hypothesis.extra.numpy import array_shapes, arrays

import segtrust as st
from segtrust.errors import EmptyArrayError, MaskShapeError, NotBinaryError, ProbabilityRangeError
from segtrust.kernels import UncertaintyNeeds, open_map, select_pixels, selection
from tests import references as slow

ALONE = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", st.ThresholdLevel(tau=0.3))
"""Estimators that do not see where a pixel lies."""


class Chunked:
    """An array in memory that is read tile by tile."""

    def __init__(self, values, chunks):
        self.values, self.chunks = values, chunks
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, tile):
        return self.values[tile]


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), rel=1e-12, abs=1e-13), name


@st_.composite
def selections(draw):
    """A map, a mask or none, and some of its pixels."""
    shape = draw(array_shapes(min_dims=1, max_dims=3, max_side=7))
    levels = st_.sampled_from([0.0, 0.1, 0.25, 0.5, 0.6, 0.999, 1.0])
    p = draw(arrays(np.float64, shape, elements=st_.floats(0, 1) | levels))
    where = draw(arrays(bool, shape))
    where.flat[draw(st_.integers(0, p.size - 1))] = True
    mask = draw(st_.none() | arrays(bool, shape))
    return p, mask, where


def spoiled(p, where):
    """The map with values that are no probabilities wherever they do not count."""
    bad = np.resize([np.nan, np.inf, -3.0, 255.0], p.shape)
    return np.where(where, p, bad)


@given(selections())
def test_only_the_selected_pixels_count(drawn):
    p, mask, where = drawn
    expected = st.score(p[where], None if mask is None else mask[where], ALONE)
    same(st.score(spoiled(p, where), mask, ALONE, where=where), expected)
    ignored = None if mask is None else np.where(where, mask, 255).astype(np.uint8)
    same(st.score(spoiled(p, where), ignored, ALONE, where=where.astype(np.uint8)), expected)


@given(selections(), st_.integers(1, 4))
def test_boxes_stay_on_the_grid(drawn, size):
    p, _, where = drawn
    entropies = np.where(where, slow.entropies(p), 0)
    found = st.patch_level_confidence(spoiled(p, where), size=size, where=where)
    assert found == pytest.approx(float(slow.pla_of(entropies, size)), rel=1e-11, abs=1e-12)


@given(selections(), st_.integers(1, 3))
def test_tile_by_tile_gives_the_same(drawn, chunk):
    p, mask, where = drawn
    chunks = (chunk,) * p.ndim
    stored = Chunked(spoiled(p, where), chunks)
    expected = st.score(spoiled(p, where), mask, [*ALONE, st.PatchLevel(3)], where=where)
    for selected in (where, Chunked(where, chunks)):
        same(st.score(stored, mask, [*ALONE, st.PatchLevel(3)], where=selected), expected)
    if mask is not None:
        masked = Chunked(mask, chunks)
        same(st.score(stored, masked, [*ALONE, st.PatchLevel(3)], where=where), expected)


def test_large_maps_in_memory_are_read_in_tiles(monkeypatch):
    p = slow.logit_normal((60, 50))
    where = np.random.default_rng(0).random(p.shape) < 0.3
    where[:20] = False
    names = [*ALONE, "pla"]
    expected = st.score(spoiled(p, where), None, names, where=where)
    monkeypatch.setattr(selection, "_COPIED_WHOLE", 100)
    same(st.score(spoiled(p, where), None, names, where=where), expected)
    same(st.score(np.asfortranarray(spoiled(p, where)), p >= 0.5, names, where=where), expected)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float16, np.float32, bool])
def test_every_type(kind):
    scale = np.iinfo(kind).max if np.issubdtype(kind, np.integer) else 1
    p = np.round(slow.logit_normal((30, 31), mean=0.0) * scale).astype(kind)
    where = np.random.default_rng(1).random(p.shape) < 0.5
    same(st.score(p, None, ALONE, where=where), st.score(p[where], None, ALONE))


@pytest.mark.needs("torch")
def test_a_tensor_keeps_its_gradient():
    import torch

    p = torch.tensor(slow.logit_normal((6, 7)), requires_grad=True)
    where = np.random.default_rng(2).random((6, 7)) < 0.5
    spoilt = torch.where(torch.from_numpy(where), p, torch.nan)
    found = st.score(spoilt, None, [*ALONE, st.PatchLevel(3)], where=where)
    same(
        {name: value.detach() for name, value in found.items()},
        st.score(spoiled(p.detach().numpy(), where), None, [*ALONE, st.PatchLevel(3)], where=where),
    )
    (found["sdc"] + found["pla"]).backward()
    assert (p.grad.numpy()[~where] == 0).all()
    assert np.abs(p.grad.numpy()[where]).max() > 0
    labels = np.where(where, p.detach().numpy() >= 0.5, 255)  # a mask in memory with ignored pixels
    again = st.soft_dice_confidence(spoilt, labels, where=torch.from_numpy(where))
    assert float(again.detach()) == pytest.approx(float(found["sdc"].detach()))


def test_a_bad_value_is_told_with_its_place():
    p = np.full((3, 4), 0.5)
    p[2, 1] = np.nan
    where = np.ones((3, 4), bool)
    where[0] = False
    for call in (st.soft_dice_confidence, st.ideal_dice_confidence, st.median_min_max_confidence):
        with pytest.raises(ProbabilityRangeError, match=r"got nan at index \(2, 1\)"):
            call(p, where=where)
    where[2, 1] = False
    assert st.average_max_probability(p, where=where) == 0.5


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        (
            np.zeros((3, 4), bool),
            EmptyArrayError,
            "where: .* one selected pixel, got none of 12",
        ),
        (np.ones((4, 3), bool), MaskShapeError, "where: expected the shape of the map"),
        (np.full((3, 4), 2), NotBinaryError, "where: expected only 0 and 1, got the values 2"),
    ],
)
def test_a_selection_that_does_not_fit_raises(where, error, message):
    p = np.full((3, 4), 0.5)
    for values in (p, Chunked(p, (2, 2))):
        with pytest.raises(error, match=message):
            st.score(values, where=where)
    with pytest.raises(error, match=message.replace("the shape of the map", ".*")):
        st.dice(p >= 0.5, p >= 0.5, where=where)


@given(selections())
def test_every_function_of_a_map_takes_it(drawn):
    p, mask, where = drawn
    bad, few, of_few = spoiled(p, where), p[where], None if mask is None else mask[where]
    pairs = [
        (st.soft_dice_confidence(bad, mask, where=where), st.soft_dice_confidence(few, of_few)),
        (st.ideal_dice_confidence(bad, mask, where=where), st.ideal_dice_confidence(few, of_few)),
        (st.expected_iou(bad, mask, where=where), st.expected_iou(few, of_few)),
        (st.expected_f_beta(bad, mask, beta=2.0, where=where), st.expected_f_beta(few, of_few, beta=2.0)),
        (st.average_class_probability(bad, mask, where=where), st.average_class_probability(few, of_few)),
        (st.average_max_probability(bad, where=where), st.average_max_probability(few)),
        (st.average_negative_entropy(bad, where=where), st.average_negative_entropy(few)),
        (st.median_min_max_confidence(bad, where=where), st.median_min_max_confidence(few)),
        (
            st.threshold_level_confidence(bad, tau=0.4, where=where),
            st.threshold_level_confidence(few, tau=0.4),
        ),
    ]
    for found, expected in pairs:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-13)
    found, expected = st.dice_bounds(bad, mask, where=where), st.dice_bounds(few, of_few)
    assert found.k == expected.k
    assert found.upper == pytest.approx(expected.upper, nan_ok=True)
    assert st.assess(bad, mask, where=where).foreground_ratio == pytest.approx(
        st.assess(few, of_few).foreground_ratio
    )


@given(selections())
def test_overlaps_take_it_too(drawn):
    p, mask, where = drawn
    truth, mask = p >= 0.5, p >= 0.3 if mask is None else mask
    ignored = np.where(where, truth, 255)
    for call in (st.dice, st.iou, lambda *masks, **more: st.f_beta(*masks, beta=2.0, **more)):
        assert call(ignored, mask, where=where) == call(truth[where], mask[where])


def test_statistics_of_the_selected_pixels():
    p = np.array([[0.9, 0.2], [np.nan, 0.6]])
    where = np.array([[True, True], [False, True]])
    opened = open_map(p, where=where)
    assert opened.n == 3
    assert opened.measure(UncertaintyNeeds()).lowest == pytest.approx(0.1)
    assert opened.entropy_map()[1, 0] == 0.0
    assert opened.distinct_doubts().counts.sum() == 3
    assert select_pixels(p, where).tolist() == [0.9, 0.2, 0.6]
    assert math.isclose(opened.count().s, 1.5)
