"""Losses against the truth, as the paper defines them."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import soft_dice_confidence
from segtrust.errors import (
    EmptyArrayError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityRangeError,
)
from segtrust.maps import EmptyPolicy
from segtrust.risks import (
    RISKS,
    Overlap,
    Risk,
    describe_loss,
    dice,
    f_beta,
    f_beta_risk,
    find_risk,
    hamming_loss,
    iou,
    overlap,
    soft_dice_loss,
)
from tests.references import tversky

pairs = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[arrays.arrays(np.int64, n, elements=st.integers(0, 1)) for _ in range(2)])
)


@given(pairs)
def test_equal_the_formulas(pair):
    truth, mask = pair
    assert math.isclose(dice(truth, mask), tversky(truth, mask, 0.5, 0.5), abs_tol=1e-15)
    assert math.isclose(iou(truth, mask), tversky(truth, mask, 1, 1), abs_tol=1e-15)
    assert math.isclose(f_beta(truth, mask, beta=2), tversky(truth, mask, 0.2, 0.8), abs_tol=1e-15)


@given(pairs)
def test_dice_is_the_paper_s_fraction(pair):
    truth, mask = pair
    total = truth.sum() + mask.sum()
    assert dice(truth, mask) == pytest.approx(2 * (truth * mask).sum() / total if total else 0)


@given(pairs)
def test_relations(pair):
    truth, mask = pair
    score = dice(truth, mask)
    assert dice(mask, truth) == score == f_beta(truth, mask, beta=1)
    assert math.isclose(iou(truth, mask), score / (2 - score), abs_tol=1e-15)
    assert math.isclose(f_beta(truth, mask, beta=3), f_beta(mask, truth, beta=1 / 3), abs_tol=1e-15)


@given(pairs)
def test_overlap_counts(pair):
    truth, mask = pair
    assert overlap(truth, mask) == Overlap(
        int((truth & mask).sum()), int((mask & ~truth & 1).sum()), int((truth & ~mask & 1).sum()), truth.size
    )


@given(pairs)
def test_hamming_is_the_paper_s_mean(pair):
    truth, mask = pair
    assert hamming_loss(truth, mask) == pytest.approx((truth != mask).mean())
    assert hamming_loss(truth, mask) == pytest.approx(
        1 - np.mean(truth * mask + (1 - truth) * (1 - mask))  # as the paper's Example 1 writes it
    )


EMPTY, FULL = np.zeros((2, 3)), np.ones((2, 3))
SCORES = {"dice": dice, "iou": iou, "f2": lambda *a, **b: f_beta(*a, beta=2, **b)}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(("empty", "value"), [("paper", 0), ("agree", 1)])
def test_two_empty_masks(name, empty, value):
    assert SCORES[name](EMPTY, EMPTY, empty=empty) == value


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("empty", ["paper", "agree"])
def test_the_policy_is_about_two_empty_masks_only(name, empty):
    score = SCORES[name]
    assert score(EMPTY, FULL, empty=empty) == score(FULL, EMPTY, empty=empty) == 0
    assert score(FULL, FULL, empty=empty) == 1


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("mask", [EMPTY, FULL])
def test_unknown_policies_are_refused_whatever_the_masks(name, mask):
    with pytest.raises(ParameterError, match="empty: expected one of 'paper', 'agree', got 'ignore'"):
        SCORES[name](mask, mask, empty="ignore")


@pytest.mark.parametrize("beta", [0.0, 0.5, 10.0])
def test_beta_weighs_missed_pixels(beta):
    truth, mask = np.array([1, 1, 1, 0, 0]), np.array([1, 0, 0, 1, 0])
    precision, recall = 1 / 2, 1 / 3
    expected = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    assert f_beta(truth, mask, beta=beta) == pytest.approx(expected)


@pytest.mark.parametrize("beta", [-1, math.nan, math.inf, "2", None])
def test_beta_out_of_range(beta):
    with pytest.raises(
        ParameterError, match=r"beta: expected a finite number of at least 0 and at most 1e\+20, got"
    ):
        f_beta(FULL, FULL, beta=beta)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float32, ">i2"])
@pytest.mark.parametrize("order", "CF")
def test_masks_of_any_type(dtype, order):
    rng = np.random.default_rng(0)
    truth, mask = rng.integers(0, 2, (2, 9, 8))
    converted = np.asarray(mask, dtype, order=order)
    assert (
        dice(truth.astype(bool), converted) == dice(converted, truth.astype(np.float64)) == dice(truth, mask)
    )


@pytest.mark.needs("dask", "zarr")
def test_masks_in_chunks():
    import dask.array
    import zarr

    truth, mask = np.random.default_rng(0).integers(0, 2, (2, 30, 20))
    stored = zarr.array(mask, chunks=(7, 7))
    assert dice(dask.array.from_array(truth, chunks=9), stored) == dice(truth, mask)


def test_large_masks_are_counted_in_whole_numbers():
    mask = np.ones(3_000_000, np.uint8)
    assert overlap(mask, mask) == Overlap(3_000_000, 0, 0, 3_000_000)


def test_masks_of_different_shape():
    with pytest.raises(MaskShapeError, match=r"truth: expected the mask's shape \(3, 2\), got \(2, 3\)"):
        dice(EMPTY, EMPTY.T)


def test_masks_without_a_pixel():
    with pytest.raises(EmptyArrayError, match="expected at least one pixel"):
        dice(np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("bad", [2, 0.5, -1, np.nan, 255])
def test_what_is_not_binary_is_named(bad):
    soft = np.array([0, bad])
    with pytest.raises(NotBinaryError, match=f"truth: expected only 0 and 1, got the values {bad:g}"):
        dice(soft, np.zeros(2))
    with pytest.raises(NotBinaryError, match="mask: expected only 0 and 1"):
        dice(np.zeros(2), soft)


@pytest.mark.parametrize("score", [overlap, *SCORES.values(), RISKS["iou_risk"].of])
@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (None, r"None\. Pass an array"),
        ("01", r"the text '01'\. Pass an array"),
    ],
)
def test_what_is_no_array_is_named(score, bad, named):
    with pytest.raises(ParameterError, match=f"truth: expected an array, got {named}"):
        score(bad, np.zeros(2))
    with pytest.raises(ParameterError, match=f"mask: expected an array, got {named}"):
        score(np.zeros(2), bad)


@pytest.mark.needs("pandas")
def test_tables_are_masks():
    from pandas import DataFrame

    assert dice(DataFrame({"a": [0, 1]}), np.ones((2, 1))) == dice([[0], [1]], [[1], [1]])


@pytest.mark.parametrize("score", [*SCORES.values(), soft_dice_loss])
def test_lists_are_arrays(score):
    truth, mask = [[1, 1, 0], [0, 1, 0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    where = [[True, True, True], [True, True, False]]
    assert score(truth=truth, **{other(score): mask}) == score(
        truth=np.array(truth), **{other(score): np.array(mask)}
    )
    assert score(truth=truth, **{other(score): mask}, where=where) < 1.0


def other(score):
    """Name of the argument beside the truth."""
    return "p" if score is soft_dice_loss else "mask"


def test_masked_pixels_are_not_counted_in_silence():
    whole, masked = np.array([1, 0, 1]), np.ma.array([1, 0, 1], mask=[0, 0, 1])
    with pytest.raises(
        ParameterError, match=r"truth: .* got 1 of 3 pixels masked by numpy.ma.*\.filled\(0\), or crop"
    ):
        dice(masked, whole)
    with pytest.raises(ParameterError, match=r"mask: .* got 1 of 3 pixels masked"):
        dice(whole, masked)
    assert dice(np.ma.array(whole), whole) == 1


def test_types_that_hold_no_mask():
    with pytest.raises(MaskError, match="truth: expected bool, integers or floats"):
        dice(np.zeros(2, complex), np.zeros(2))


class TestRisks:
    @pytest.mark.parametrize("name", RISKS)
    @pytest.mark.parametrize("empty", EmptyPolicy)
    def test_say_everything_about_themselves(self, name, empty):
        risk = RISKS[name]
        truth, mask = np.array([1, 1, 0]), np.array([1, 0, 0])
        score = risk.score(truth, mask, empty=empty)
        assert risk.name == name == f"{risk.column}_risk"
        assert risk.of(truth, mask, empty=empty) == (1 - score if risk.higher_is_better else score)
        assert risk.of(FULL, FULL) == 0
        assert risk.bound == 1.0
        assert not risk.needs
        assert risk.from_counts is not None
        assert risk.from_counts(overlap(truth, mask), empty) == score
        assert risk.label in risk.loss_label
        assert "empty masks" in risk.empty_rule

    @pytest.mark.parametrize("name", ["dice_risk", "iou_risk", "f2_risk"])
    def test_two_empty_masks(self, name):
        risk = RISKS[name]
        assert (risk.of(EMPTY, EMPTY), risk.of(EMPTY, EMPTY, empty="agree")) == (1, 0)

    @pytest.mark.parametrize("empty", EmptyPolicy)
    def test_two_empty_masks_have_no_wrong_pixel(self, empty):
        assert RISKS["hamming_risk"].of(EMPTY, EMPTY, empty=empty) == 0
        assert RISKS["hamming_risk"].of(EMPTY, FULL, empty=empty) == 1

    def test_by_name(self):
        assert list(RISKS) == ["dice_risk", "iou_risk", "f2_risk", "hamming_risk"]

    def test_any_beta(self):
        truth, mask = np.array([1, 1, 0]), np.array([1, 0, 0])
        risk = f_beta_risk(0.5)
        assert (risk.name, risk.column, risk.loss_label) == ("f0.5_risk", "f0.5", "1 − F0.5")
        assert risk.of(truth, mask) == 1 - f_beta(truth, mask, beta=0.5)

    def test_names_are_those_of_one_risk_only(self):
        names = [name for risk in RISKS.values() for name in (risk.name, risk.column, *risk.aliases)]
        assert len(names) == len(set(names))
        assert [find_risk(name.upper()) for name in names] == [find_risk(name) for name in names]
        assert None not in map(find_risk, names)
        assert find_risk("volume") is find_risk("") is None

    def test_one_with_a_unit_that_needs_spacing(self):
        def height(truth, mask, *, empty, spacing_mm):
            return abs(int(truth.any(1).sum()) - int(mask.any(1).sum())) * spacing_mm[0]

        risk = Risk(
            "height_risk",
            height,
            label="Height error",
            unit="mm",
            higher_is_better=False,
            bound=None,
            needs=frozenset(["spacing_mm"]),
        )
        assert risk.of(FULL, EMPTY, spacing_mm=(2.5, 1.0)) == 5.0
        assert (risk.column, risk.loss_label, risk.bound) == ("height", "Height error (mm)", None)

    def test_as_in_release_0_1(self):
        risk = Risk("own_risk", lambda truth, mask, *, empty: 0.75)
        assert (risk.of(FULL, FULL), risk.label, risk.loss_label) == (0.25, "own", "1 − own")
        assert describe_loss("own") == "own"


maps = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        arrays.arrays(np.float64, n, elements=st.floats(0, 1)),
        arrays.arrays(bool, n),
        arrays.arrays(bool, n),
    )
)


class TestSoftDiceLoss:
    @given(maps)
    def test_is_the_paper_s_fraction(self, case):
        p, truth, _ = case
        expected = 1 - 2 * (p * truth).sum() / (p + truth).sum() if truth.any() else 1.0
        assert soft_dice_loss(p, truth) == pytest.approx(expected, abs=1e-12)

    @given(maps)
    def test_remark_1(self, case):
        """SDC = 1 - SDL with the mask in place of the truth."""
        p, mask, _ = case
        assert soft_dice_confidence(p, mask) == pytest.approx(1 - soft_dice_loss(p, mask), abs=1e-12)

    @given(maps)
    def test_on_binary_maps_it_is_the_dice_risk(self, case):
        _, mask, truth = case
        if truth.any():
            assert soft_dice_loss(mask * 1.0, truth) == pytest.approx(1 - dice(truth, mask), abs=1e-12)

    @given(maps)
    def test_selected_pixels(self, case):
        p, truth, where = case
        if where.any():
            assert soft_dice_loss(p, truth, where=where) == soft_dice_loss(p[where], truth[where])

    def test_maps_of_integers(self):
        p, truth = np.array([[255, 51], [0, 102]], np.uint8), np.array([[1, 1], [0, 0]])
        assert soft_dice_loss(p, truth) == pytest.approx(1 - 2 * 1.2 / (1.6 + 2))
        assert soft_dice_loss(p, truth, where=truth) == pytest.approx(1 - 2 * 1.2 / (1.2 + 2))

    @pytest.mark.parametrize("p", [np.zeros(3), np.array([0.2, 0.0, 1.0])])
    def test_an_empty_truth_is_lost(self, p):
        assert soft_dice_loss(p, np.zeros(3)) == 1.0

    def test_wrong_input_is_named(self):
        p = np.array([0.5, 0.5])
        with pytest.raises(MaskShapeError, match=r"truth: expected the map's shape \(2,\), got \(3,\)"):
            soft_dice_loss(p, np.zeros(3))
        with pytest.raises(MaskShapeError, match=r"where: expected the shape of the map"):
            soft_dice_loss(p, np.ones(2), where=np.ones(3, bool))
        with pytest.raises(NotBinaryError, match="truth: expected only 0 and 1"):
            soft_dice_loss(p, p)
        with pytest.raises(ProbabilityRangeError):
            soft_dice_loss(np.array([0.5, 1.5]), np.ones(2))

    @pytest.mark.needs("torch")
    @pytest.mark.parametrize("some", [False, True])
    def test_gradient(self, some):
        import torch

        generator = torch.Generator().manual_seed(0)
        p = torch.rand(6, 5, generator=generator, dtype=torch.float64, requires_grad=True)
        truth = torch.rand(6, 5, generator=generator) > 0.5
        where = torch.rand(6, 5, generator=generator) > 0.3 if some else None
        loss = soft_dice_loss(p, truth, where=where)
        counts = torch.ones_like(p) if where is None else where.double()
        plain = 1 - 2 * (p * truth * counts).sum() / ((p + truth) * counts).sum()
        assert torch.isclose(loss, plain)
        (ours,), (theirs,) = torch.autograd.grad(loss, p), torch.autograd.grad(plain, p)
        assert torch.allclose(ours, theirs, atol=1e-14)
        with torch.no_grad():
            assert float(loss) == pytest.approx(
                soft_dice_loss(p.numpy(), truth.numpy(), where=None if where is None else where.numpy())
            )

    @pytest.mark.needs("torch")
    def test_an_empty_truth_has_no_gradient(self):
        import torch

        p = torch.tensor([0.5, 0.25], requires_grad=True)
        loss = soft_dice_loss(p, torch.zeros(2))
        loss.backward()
        assert float(loss.detach()) == 1.0
        assert p.grad.tolist() == [0.0, 0.0]


def test_any_byte_of_a_bool_that_is_not_0_is_true():
    odd = np.array([2, 2, 0], np.uint8).view(bool)
    assert dice(odd, np.array([True, True, False])) == 1.0
