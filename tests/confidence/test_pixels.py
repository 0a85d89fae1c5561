"""The pixels that an estimator may see: the same whole and in tiles, of every kind of array."""

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import ConfidenceEstimator, Needs, Pixels, Summary, summarise
from segtrust.errors import MaskShapeError, ParameterError
from segtrust.kernels import UncertaintyNeeds, open_map
from tests.kernels.test_selection import Chunked
from tests.references import probabilities

P = np.random.default_rng(0).random((9, 11))
WHERE = np.random.default_rng(1).random(P.shape) < 0.6


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f4", np.uint8, np.uint16, bool])
def test_every_type_becomes_floats(kind):
    scale = np.iinfo(kind).max if np.issubdtype(np.dtype(kind), np.integer) else 1
    stored = np.round(P * scale).astype(kind) if scale > 1 else P.astype(kind)
    whole = Pixels(st.Prediction(stored)).whole
    assert whole.p.dtype in (np.float32, np.float64)
    assert np.allclose(whole.p, probabilities(stored).astype(float), rtol=0, atol=1e-15)
    assert np.array_equal(whole.mask, probabilities(stored) >= 0.5)
    assert whole.where.all()
    assert whole.image is None


@pytest.mark.parametrize("margin", [0, 1, 5])
def test_tiles_cover_the_map_once(margin):
    image = np.stack([P, -P], axis=-1)
    mask = (P > 0.4).astype(np.uint8)
    pixels = Pixels(st.Prediction(Chunked(P, (4, 5)), mask, spacing_mm=(1.0, 2.0), image=image), WHERE)
    assert (pixels.spacing_mm, pixels.has_image, pixels.shape) == ((1.0, 2.0), True, P.shape)
    seen = np.zeros(P.shape)
    found = np.zeros(P.shape)
    for tile in pixels.tiles(margin=margin):
        assert np.array_equal(tile.mask, (mask * WHERE)[tile.slices])
        assert np.array_equal(tile.image, image[tile.slices])
        assert np.array_equal(tile.where, WHERE[tile.slices])
        core = tuple(
            slice(at.start + part.start, at.start + part.stop)
            for at, part in zip(tile.slices, tile.core, strict=True)
        )
        seen[core] += 1
        found[core] = tile.p[tile.core]
    assert (seen == 1).all()
    assert np.array_equal(found, np.where(WHERE, P, 0))


def test_large_maps_in_memory_come_in_tiles(monkeypatch):
    pixels = Pixels(st.Prediction(P))
    assert len(list(pixels.tiles())) == 1
    monkeypatch.setattr("segtrust.confidence.pixels._LARGEST_TILE", 10)
    assert len(list(Pixels(st.Prediction(P)).tiles())) > 1


@pytest.mark.needs("torch")
def test_a_tensor_is_copied_to_the_host():
    import torch

    mask = torch.from_numpy(P > 0.2)
    whole = Pixels(st.Prediction(torch.from_numpy(P).requires_grad_(), mask), torch.from_numpy(WHERE)).whole
    assert np.array_equal(whole.p, np.where(WHERE, P, 0))
    assert np.array_equal(whole.mask, (P > 0.2) & WHERE)


def test_an_image_of_another_size_is_rejected():
    with pytest.raises(MaskShapeError, match="image: expected the shape of the map"):
        st.Prediction(P, image=P.T)


class Mean(ConfidenceEstimator):
    """Mean probability of the mask."""

    name = "mean"
    label = "Mean"

    @property
    def needs(self):
        return Needs(pixels=True)

    def read(self, summary):
        whole = summary.pixels.whole
        return float(whole.p[whole.mask].mean()) if whole.mask.any() else 0.0


def test_every_function_hands_pixels_over():
    expected = P[P >= 0.5].mean()
    assert Mean()(P) == expected
    assert st.score(P, estimators=["sdc", Mean()])["mean"] == expected
    assert st.assess(P, estimators=Mean()).scores["mean"] == expected
    assert st.score_batch(P[None], estimators=Mean())["mean"].tolist() == [expected]
    found = st.score_classes(P[None], ["a"], estimators=Mean(), independent=True)
    assert found.classes["a"]["mean"] == expected
    assert Mean().score(st.Prediction(P.tolist() and P)) == expected
    assert Mean()(P.tolist()) == expected
    spoiled = np.where(WHERE, P, np.nan)
    assert Mean()(spoiled, where=WHERE) == P[WHERE & (P >= 0.5)].mean()


def test_a_summary_without_arrays_says_so():
    with pytest.raises(ParameterError, match="pixels: no estimator declares"):
        _ = summarise(open_map(P), []).pixels


class OfRelease01(ConfidenceEstimator):
    """An estimator as release 0.1 described it: not a dataclass, all kinds of statistics."""

    name = "of-0-1"
    label = "of 0.1"
    needs = Needs(True, True, UncertaintyNeeds(entropies=True), False)

    def read(self, summary):
        counts, uncertain = summary.counts, summary.uncertainty(UncertaintyNeeds(entropies=True))
        doubts = summary.doubts.counts.sum() + summary.entropies.size + summary.dice.k
        return (counts.s - uncertain.entropy + 0.0 * doubts) / summary.n


def test_estimators_of_release_0_1_keep_working():
    estimator = OfRelease01()
    by_hand = estimator.read(Summary(open_map(P), estimator.needs))
    assert estimator.score(st.Prediction(P)) == by_hand == estimator(P)
    assert st.score(P, estimators=[estimator, "sdc"], empty="agree")["of-0-1"] == by_hand
    assert estimator.parameters == {}
