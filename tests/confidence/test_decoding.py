"""The Dice-optimal mask, as users ask for it."""

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import decoded
from tests.kernels.devices import MAPS
from tests.references import logit_normal


@pytest.mark.parametrize(
    "name", sorted(set(MAPS) - {"several blocks", "much mass", "volume", "random", "one dimension"})
)
@pytest.mark.parametrize("empty", ["paper", "agree"])
def test_the_confidence_is_that_of_the_mask_and_no_cut_is_better(name, empty):
    p = MAPS[name]
    best = st.dice_optimal_mask(p, empty=empty)
    assert best.mask.shape == p.shape
    assert best.mask.dtype == bool
    assert best.k == np.count_nonzero(best.mask)
    assert best.confidence == pytest.approx(
        st.ideal_dice_confidence(p, best.mask, empty=empty), rel=1e-12, abs=0.0
    )
    cuts = np.unique(np.quantile(p, np.linspace(0, 1, 30)))
    others = [st.ideal_dice_confidence(p, threshold=each, empty=empty) for each in (*cuts, 0.5, 1.0)]
    assert best.confidence >= max(others) * (1 - 1e-12)
    assert best.usual_confidence == st.ideal_dice_confidence(p, empty=empty)
    assert best.gain >= -1e-12


def test_results_are_told_apart_although_maps_cannot_be_compared():
    one, other = (st.dice_optimal_mask(np.array([0.9, 0.2])) for _ in range(2))
    assert one != other
    assert len({one, other}) == 2


def test_an_empty_mask_is_best_where_an_empty_truth_is_likely():
    p = np.full((2, 3), 0.05)
    assert st.dice_optimal_mask(p).mask.all()
    best = st.dice_optimal_mask(p, empty="agree")
    assert best.k == 0
    assert not best.mask.any()
    assert best.confidence == pytest.approx(0.95**6, rel=1e-13)


@pytest.mark.parametrize(("empty", "worth"), [("paper", 0.0), ("agree", 1.0)])
def test_a_map_of_zeros_has_an_empty_mask(empty, worth):
    best = st.dice_optimal_mask(np.zeros((3, 3)), empty=empty)
    assert (best.k, best.confidence, best.gain) == (0, worth, 0.0)


def test_the_threshold_is_about_half_of_the_confidence():
    best = st.dice_optimal_mask(logit_normal(200_000))
    assert best.threshold == pytest.approx(best.confidence / 2, abs=1e-3)
    assert best.gain > 0.0


def test_another_usual_mask_can_be_asked_for():
    p = logit_normal((20, 30))
    best = st.dice_optimal_mask(p, compared_with=0.2)
    assert best.usual_confidence == st.ideal_dice_confidence(p, threshold=0.2)


@pytest.mark.parametrize("bad", [np.array([0.5, np.nan]), np.array([-0.1]), np.array([1.1], np.float32)])
def test_what_is_no_probability_is_refused(bad):
    with pytest.raises(st.errors.ProbabilityRangeError):
        st.dice_optimal_mask(bad)


def test_other_arguments_are_refused_by_name():
    with pytest.raises(st.errors.ParameterError, match="empty"):
        st.dice_optimal_mask(np.array([0.5]), empty="full")
    with pytest.raises(st.errors.ParameterError, match="compared_with"):
        st.dice_optimal_mask(np.array([0.5]), compared_with=50)


@pytest.mark.parametrize(
    "layout", [lambda p: p[::2, ::3], lambda p: p.T, np.asfortranarray, lambda p: p[::-1]]
)
def test_layouts_do_not_matter(layout):
    p = layout(logit_normal((60, 90), seed=8))
    best, plain = st.dice_optimal_mask(p), st.dice_optimal_mask(np.ascontiguousarray(p))
    assert best.threshold == plain.threshold
    np.testing.assert_array_equal(best.mask, plain.mask)


@pytest.mark.needs("zarr", "dask")
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_maps_in_chunks_give_the_same_mask(dtype):
    import dask.array
    import zarr

    p = logit_normal((70, 80), seed=4)
    p = (p * 255).astype(np.uint8) if dtype is np.uint8 else p.astype(dtype)
    plain = st.dice_optimal_mask(p)
    for chunked in (zarr.array(p, chunks=(32, 33)), dask.array.from_array(p, chunks=(30, 41))):
        best = st.dice_optimal_mask(chunked)
        assert best.threshold == plain.threshold
        np.testing.assert_array_equal(best.mask, plain.mask)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_tensors_get_a_mask_beside_them(dtype):
    import torch

    p = torch.as_tensor(logit_normal((30, 40)))
    p = (p * 255).to(torch.uint8) if dtype == "uint8" else p.to(getattr(torch, dtype)).requires_grad_()
    best = st.dice_optimal_mask(p)
    assert best.mask.dtype == torch.bool
    assert best.mask.device == p.device
    host = p.detach().float().numpy() if dtype == "bfloat16" else p.detach().numpy()
    np.testing.assert_array_equal(best.mask.numpy(), st.dice_optimal_mask(host).mask)


def test_estimators_score_the_mask():
    p = logit_normal((40, 50), seed=9)
    best = st.dice_optimal_mask(p)
    given = st.score(p, best.mask, ["sdc", "idc", "apc"])
    assert given == pytest.approx(st.score(p, None, ["sdc", "idc", "apc"], threshold=best.threshold))
    assert given["idc"] == pytest.approx(best.confidence, rel=1e-12)


def test_a_prediction_keeps_a_mask_that_was_delivered():
    p = np.array([0.9, 0.45, 0.1])
    given = st.Prediction(p, np.array([1, 0, 0]))
    assert decoded(given) is given
    assert decoded(st.Prediction(p, id="a")).threshold == 0.45
    with pytest.raises(st.errors.ProbabilityRangeError, match="case 7"):
        decoded(st.Prediction(np.array([0.5, 2.0]), id="case 7"))
