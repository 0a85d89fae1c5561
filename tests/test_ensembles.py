"""Fused maps and pairwise Dice, against the slow and obvious, on degenerate input too."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as some
from hypothesis.extra import numpy as arrays

import segtrust as st
from segtrust.calibration import largest_logit
from segtrust.ensembles import FusedChunks, Fuser, Fusion
from segtrust.errors import GeometryError, NotNormalisedError, ParameterError, ProbabilityRangeError
from segtrust.kernels import Agreement, agreement_of_chunks

RNG = np.random.default_rng(0)
TYPES = ("float16", "float32", "float64", "uint8", "uint16", "bool")


def as_type(values, kind):
    if kind == "bool":
        return values >= 0.5
    if kind in ("uint8", "uint16"):
        return np.rint(values * np.iinfo(kind).max).astype(kind)
    return values.astype(kind)


def as_floats(p):
    return p / float(np.iinfo(p.dtype).max) if p.dtype.kind == "u" else p.astype(np.float64)


def slow_logit(p, dtype):
    limit = largest_logit(np.dtype("uint8") if dtype.kind == "b" else dtype, "clip")
    if p in (0.0, 1.0):
        return math.copysign(limit, p - 0.5)
    return min(max(math.log(p) - math.log1p(-p), -limit), limit)


def slow_fusion(maps, how):
    found = np.empty(maps[0].shape)
    for at in np.ndindex(found.shape):
        values = [float(as_floats(p)[at]) for p in maps]
        if how == "mean-probability":
            found[at] = math.fsum(values) / len(values)
            continue
        logits = [slow_logit(value, p.dtype) for value, p in zip(values, maps, strict=True)]
        limits = [slow_logit(1.0, p.dtype) for p in maps]
        mean = math.fsum(logits) / len(logits)
        if all(abs(a) == b for a, b in zip(logits, limits, strict=True)) and len(set(np.sign(logits))) == 1:
            found[at] = float(mean > 0)
        else:
            found[at] = 1.0 / (1.0 + math.exp(-mean))
    return found


def slow_pairwise(masks, empty):
    return np.mean([st.dice(one, other, empty=empty) for one, other in combinations(masks, 2)])


ends = some.sampled_from([0.0, 1.0, 0.5, 1e-30, 1.0 - 2.0**-40])
ensembles = some.integers(1, 4).flatmap(
    lambda count: some.lists(
        arrays.arrays(np.float64, (3, 4), elements=ends | some.floats(0.0, 1.0)),
        min_size=count,
        max_size=count,
    )
)


@pytest.mark.parametrize("how", list(Fusion))
@given(maps=ensembles, kinds=some.lists(some.sampled_from(TYPES), min_size=4, max_size=4))
def test_fusion_is_that_of_each_pixel(how, maps, kinds):
    members = [as_type(p, kind) for p, kind in zip(maps, kinds, strict=False)]
    fused = st.fuse(iter(members), how)
    is_double = any(p.dtype == np.float64 for p in members)
    assert fused.dtype == (np.float64 if is_double else np.float32)
    assert np.allclose(fused, slow_fusion(members, how), rtol=1e-12 if is_double else 1e-6, atol=1e-15)
    assert fused.min() >= 0.0
    assert fused.max() <= 1.0


@given(maps=ensembles.filter(lambda maps: len(maps) > 1), empty=some.sampled_from(["paper", "agree"]))
def test_pairwise_dice_is_the_mean_over_pairs(maps, empty):
    expected = slow_pairwise([p >= 0.5 for p in maps], empty)
    assert st.pairwise_dice(maps, empty=empty) == pytest.approx(expected, abs=1e-15)
    assert st.pairwise_dice([p >= 0.5 for p in maps], empty=empty) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("kind", ["float16", "float32", "uint8", "uint16", "bool"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_equal_members_give_the_member(kind, count):
    p = as_type(RNG.random((7, 9)), kind)
    fused = st.fuse([p] * count)
    assert np.array_equal(fused, as_floats(p).astype(np.float32))
    sure = np.isclose(as_floats(p), 0.0, atol=1e-7) | np.isclose(as_floats(p), 1.0, atol=1e-7)
    fused = st.fuse([p] * count, "mean-logit")
    assert np.allclose(fused, as_floats(p), rtol=3e-7, atol=1e-7)
    assert np.array_equal(fused[sure], as_floats(p)[sure])


def test_ties_of_8_bits_stay_ties():
    """127.5 of 255 on average is one half, and so in the mask."""
    members = [np.full((2, 2), level, np.uint8) for level in (100, 155, 128, 127)]
    assert np.array_equal(st.fuse(members), np.full((2, 2), 0.5, np.float32))
    assert st.fuse([np.array([0.0, 1.0]), np.array([1.0, 0.0])], "mean-logit").tolist() == [0.5, 0.5]


def test_one_certain_member_does_not_outvote_the_others_without_end():
    members = [np.array([0.0], np.float32), *[np.array([0.999], np.float32)] * 9]
    assert 0.9 < st.fuse(members, "mean-logit")[0] < 0.999
    assert st.fuse([np.zeros(3, np.uint8)] * 4, "mean-logit").tolist() == [0.0] * 3
    assert st.fuse([np.ones(3)] * 4, "mean-logit").tolist() == [1.0] * 3


def test_empty_masks():
    nothing, all_of_it = np.zeros((3, 4)), np.ones((3, 4))
    assert st.pairwise_dice([nothing, nothing]) == 0.0
    assert st.pairwise_dice([nothing, nothing], empty="agree") == 1.0
    assert st.pairwise_dice([nothing, all_of_it], empty="agree") == 0.0
    assert st.pairwise_dice([nothing, nothing, all_of_it], empty="agree") == pytest.approx(1 / 3)
    assert st.pairwise_dice([all_of_it] * 3) == 1.0
    assert st.pairwise_dice([all_of_it * 0.4] * 2, threshold=0.4) == 1.0


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: st.fuse([]), ParameterError, "expected at least one map to fuse, got none"),
        (lambda: st.fuse("maps"), ParameterError, "maps: expected several maps of one image, got the text"),
        (lambda: st.fuse(3), ParameterError, "expected several maps of one image, got int 3"),
        (
            lambda: st.fuse([np.ones(2)], "median"),
            ParameterError,
            "how, or --fuse: expected one of 'mean-prob.*'median'",
        ),
        (
            lambda: st.fuse([np.ones(2), np.ones(3)]),
            GeometryError,
            r"maps\[1\]: expected the shape of the first",
        ),
        (lambda: st.fuse([np.ones(2), np.array([0.5, math.nan])]), ProbabilityRangeError, r"maps\[1\]"),
        (lambda: st.fuse([np.ones(2), np.array([0.5, 1.5])]), ProbabilityRangeError, r"maps\[1\].*1\.5"),
        (lambda: st.fuse([np.ones(2), [0.5]]), GeometryError, r"maps\[1\]"),
        (lambda: st.fuse([np.eye(2)], class_axis=True), ParameterError, "class_axis: .* got True"),
        (
            lambda: st.pairwise_dice([np.ones(2)]),
            ParameterError,
            "expected at least two members to compare, got 1",
        ),
        (lambda: st.pairwise_dice([np.ones(2), np.ones(3)]), GeometryError, r"maps\[1\]: expected the shape"),
        (lambda: st.pairwise_dice([np.ones(2), -np.ones(2)]), ProbabilityRangeError, r"maps\[1\]"),
        (lambda: st.pairwise_dice([np.eye(2, dtype=np.uint8)] * 2), ParameterError, "got 0 and 1.*astype"),
        (lambda: st.pairwise_dice([np.ones(2)] * 2, threshold=2), ParameterError, "threshold"),
        (lambda: st.pairwise_dice([np.ones(2)] * 2, empty="both"), ParameterError, "empty: expected one of"),
    ],
)
def test_what_cannot_be_done_is_said(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_single_floats_may_be_beyond_0_and_1_by_rounding_where_that_is_allowed():
    fuser = Fuser(rounding=1e-6)
    fuser.add(np.array([-1e-7, 1.0 + 1e-7, 0.5], np.float32))
    assert fuser.result().tolist() == [0.0, 1.0, 0.5]
    with pytest.raises(ProbabilityRangeError):
        fuser.add(np.array([-1e-3, 1.0, 0.5], np.float32))


def test_the_bad_value_is_named_and_not_one_that_was_rounded():
    p = np.full((40, 30), 0.5)
    p[0, 0], p[37, 4] = 1.0000001, 5.0
    with pytest.raises(ProbabilityRangeError, match=r"got 5 at index \(37, 4\)"):
        Fuser(rounding=1e-6).add(p)


@pytest.mark.needs("torch")
def test_maps_of_torch():
    import torch

    maps = [torch.rand(4, 5) for _ in range(3)]
    assert torch.allclose(st.fuse(maps), torch.stack(maps).mean(0), rtol=1e-6)
    assert st.pairwise_dice(maps) == st.pairwise_dice([p.numpy() for p in maps])


@pytest.mark.needs("dask")
@pytest.mark.parametrize("how", list(Fusion))
def test_in_chunks_as_in_memory(how):
    import dask.array

    maps = [RNG.random((30, 31)).astype(np.float32) for _ in range(3)]
    lazy = [dask.array.from_array(p, chunks=(8, 16)) for p in maps]
    fused = FusedChunks(lazy, how, ["a", "b", "c"])
    whole = st.fuse(maps, how)
    assert (fused.shape, fused.dtype) == (whole.shape, whole.dtype)
    assert np.array_equal(np.asarray(fused), whole)
    assert np.array_equal(fused[3:9, 5], whole[3:9, 5])
    assert st.soft_dice_confidence(fused) == pytest.approx(st.soft_dice_confidence(whole), rel=1e-13)
    agreement = agreement_of_chunks(lazy, 0.5, ["a", "b", "c"])
    assert agreement.pairwise_dice(of_empty=0.0) == st.pairwise_dice(maps)


def test_the_estimator_reads_what_members_share():
    p = np.full((3, 3), 0.6)
    agreement = Agreement(((4, 3), (3, 5)))
    assert st.PairwiseDice().score(st.Prediction(p, agreement=agreement)) == pytest.approx(6 / 9)
    empty = st.Prediction(p, agreement=Agreement(((0, 0), (0, 0))))
    assert (st.PairwiseDice().score(empty), st.PairwiseDice("agree").score(empty)) == (0.0, 1.0)
    with pytest.raises(ParameterError, match=r"fused from the members.*--member.*st\.pairwise_dice"):
        st.PairwiseDice().score(st.Prediction(p))
    with pytest.raises(ParameterError, match="at least two maps to compare, got one"):
        st.PairwiseDice().score(st.Prediction(p, agreement=Agreement(((4,),))))
    with pytest.raises(ParameterError, match="fused from the members"):
        st.score(p, estimators=["pairwise-dice"])


# Weights, classes, and maps of other libraries


def slow_classes(maps, weights):
    """The softmax of the weighted mean of the clipped log-probabilities, (C, pixels)."""
    weights = np.asarray(weights, float) / np.sum(weights)
    total, is_zero = 0.0, True
    for p, weight in zip(maps, weights, strict=True):
        epsilon = 1.0 / (1.0 + math.exp(largest_logit(p.dtype, "clip")))
        q = np.clip(as_floats(p), epsilon, 1.0 - epsilon)
        total = total + weight * np.log(q)
        is_zero = is_zero & (as_floats(p) <= epsilon)
    odds = np.where(is_zero, 0.0, np.exp(total))
    return odds / odds.sum(0)


def softmaxes(count=3, kind="float64", shape=(4, 50)):
    members = [RNG.dirichlet(np.ones(shape[0]) / 2, shape[1]).T for _ in range(count)]
    for member in members:
        member[:, 0] = [1.0, 0.0, 0.0, 0.0]
    members[0][:, 1] = [0.0, 1.0, 0.0, 0.0]
    return [as_type(member, kind) for member in members]


@pytest.mark.parametrize("kind", ["float32", "float64", "uint8", "uint16"])
@pytest.mark.parametrize("weights", [None, [1, 2, 3], [0.0, 0.5, 0.5]])
def test_fused_classes_are_normalised(kind, weights):
    maps = softmaxes(kind=kind)
    fused = st.fuse(maps, "mean-logit", weights=weights, class_axis=0)
    tolerance = 1e-12 if kind == "float64" else 1e-6
    np.testing.assert_allclose(fused.sum(0), 1.0, rtol=tolerance)
    if weights is None or all(weights):
        expected = slow_classes(maps, weights or [1, 1, 1])
        np.testing.assert_allclose(fused, expected, rtol=10 * tolerance, atol=1e-14)
        assert fused[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    else:
        rest = st.fuse(maps[1:], "mean-logit", class_axis=0)
        np.testing.assert_allclose(fused, rest, rtol=10 * tolerance, atol=1e-14)
    last = st.fuse([p.T for p in maps], "mean-logit", weights=weights, class_axis=-1)
    np.testing.assert_allclose(last.T, fused, rtol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_two_classes_are_one_structure(kind):
    maps = [as_type(RNG.random(200), kind) for _ in range(3)]
    maps[0][:2], maps[1][:2], maps[2][:2] = [0.0, 1.0], [0.0, 0.0], [0.0, 0.5]
    both = [np.stack([1 - p, p]) for p in maps]
    fused = st.fuse(both, "mean-logit", class_axis=0)
    np.testing.assert_allclose(fused[1], st.fuse(maps, "mean-logit"), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("how", list(Fusion))
def test_weights_are_repetitions(how):
    maps = [as_type(RNG.random((5, 6)), kind) for kind in ("float32", "float64", "uint8")]
    repeated = [maps[0], *[maps[1]] * 3, *[maps[2]] * 2]
    np.testing.assert_allclose(st.fuse(maps, how, weights=[1, 3, 2]), st.fuse(repeated, how), rtol=1e-12)
    np.testing.assert_allclose(st.fuse(maps, how, weights=[7, 7, 7]), st.fuse(maps, how), rtol=1e-12)
    np.testing.assert_allclose(
        st.fuse(iter(maps), how, weights=np.array([0, 1, 0])), as_floats(maps[1]), rtol=1e-6
    )
    assert st.fuse([np.ones(3)] * 3, how, weights=[0.1, 0.2, 0.7]).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": [1, -1]}, ParameterError, "weights: expected one number of at least 0 per map"),
        ({"weights": [1, math.nan]}, ParameterError, "weights: expected one number of at least 0 per map"),
        ({"weights": [[1, 2]]}, ParameterError, "weights: expected one number of at least 0 per map"),
        ({"weights": "ab"}, ParameterError, "weights: expected one number of at least 0 per map"),
        ({"weights": [0, 0]}, ParameterError, "weights: expected at least one above 0"),
        ({"weights": [1]}, ParameterError, "weights: expected one per map, got 1 for 2 maps"),
        ({"weights": [1, 1, 1]}, ParameterError, "weights: expected one per map, got 3 for 2 maps"),
        ({"class_axis": 2}, ParameterError, r"class_axis: expected an axis of maps\[0\]"),
        ({"class_axis": 0}, NotNormalisedError, r"maps\[0\]: expected a softmax over axis 0"),
    ],
)
def test_weights_and_classes_that_do_not_fit(options, error, message):
    with pytest.raises(error, match=message):
        st.fuse([np.full((2, 3), 0.9)] * 2, "mean-logit", **options)


@pytest.mark.needs("torch")
class TestTorch:
    @pytest.mark.parametrize("weights", [None, [1, 2, 3]])
    @pytest.mark.parametrize("how", list(Fusion))
    @pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", "bool"])
    def test_tensors_stay_tensors(self, kind, how, weights):
        import torch

        maps = [as_type(np.concatenate([[0.0, 1.0, 0.0], RNG.random(300)]), kind) for _ in range(3)]
        if kind != "bool":
            maps[0][2] = as_type(np.array([1.0]), kind)[0]
        fused = st.fuse((torch.from_numpy(p) for p in maps), how, weights=weights)
        expected = st.fuse(maps, how, weights=weights)
        assert isinstance(fused, torch.Tensor)
        assert fused.dtype == getattr(torch, expected.dtype.name)
        np.testing.assert_allclose(fused.numpy(), expected, rtol=1e-12 if kind == "float64" else 1e-6)
        assert fused[:2].tolist() == [0.0, 1.0]

    @pytest.mark.parametrize("kind", ["float32", "float64", "uint8"])
    def test_classes(self, kind):
        import torch

        maps = softmaxes(kind=kind)
        fused = st.fuse(map(torch.from_numpy, maps), "mean-logit", class_axis=0)
        expected = st.fuse(maps, "mean-logit", class_axis=0)
        np.testing.assert_allclose(fused.numpy(), expected, rtol=1e-12 if kind == "float64" else 1e-6)

    @pytest.mark.parametrize("how", list(Fusion))
    def test_derivatives(self, how):
        import torch

        maps = [torch.rand(2, 3, dtype=torch.float64).softmax(0).requires_grad_() for _ in range(3)]
        assert torch.autograd.gradcheck(lambda *members: st.fuse(members, how, weights=[1, 2, 3]), maps)
        assert torch.autograd.gradcheck(
            lambda *members: st.fuse([p / p.sum(0) for p in members], how, class_axis=0), maps
        )
        certain = [torch.eye(3, requires_grad=True), torch.eye(3).flip(0).requires_grad_()]
        for axis in (None, 0):
            st.fuse(certain, how, class_axis=axis).square().sum().backward()
            assert all(torch.isfinite(p.grad).all() for p in certain)

    def test_the_first_decides_where(self):
        import torch

        p, q = RNG.random((4, 5)), RNG.random((4, 5))
        assert isinstance(st.fuse([torch.from_numpy(p), q]), torch.Tensor)
        assert isinstance(st.fuse([p, torch.from_numpy(q)]), np.ndarray)
        np.testing.assert_allclose(st.fuse([torch.from_numpy(p), q]), (p + q) / 2)
        with pytest.raises(ProbabilityRangeError, match=r"maps\[1\].*1\.5"):
            st.fuse([torch.zeros(2), torch.tensor([0.5, 1.5])])
        with pytest.raises(GeometryError, match=r"maps\[1\]: expected the shape of the first"):
            st.fuse([torch.zeros(2), torch.zeros(3)])


@pytest.mark.needs("jax")
@pytest.mark.parametrize("how", list(Fusion))
def test_jax_arrays_stay_jax_arrays(how):
    import jax.numpy as jnp

    maps = [p.astype(np.float32) for p in softmaxes()]
    arrays_of_jax = [jnp.asarray(p) for p in maps]
    for axis in (None, 0):
        fused = st.fuse(arrays_of_jax, how, class_axis=axis)
        assert type(fused) is type(arrays_of_jax[0])
        np.testing.assert_allclose(np.asarray(fused), st.fuse(maps, how, class_axis=axis), rtol=1e-4)
