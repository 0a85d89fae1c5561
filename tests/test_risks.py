"""Losses against the truth, as the paper defines them."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.errors import EmptyArrayError, MaskError, MaskShapeError, NotBinaryError, ParameterError
from segtrust.risks import RISKS, Overlap, dice, f_beta, f_beta_risk, iou, overlap
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
        int((truth & mask).sum()), int((mask & ~truth & 1).sum()), int((truth & ~mask & 1).sum())
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
    assert overlap(mask, mask) == Overlap(3_000_000, 0, 0)


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
        ([1, 0], r"list \[1, 0\]\. Convert it: numpy"),
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
def test_tables_are_no_masks():
    from pandas import DataFrame

    with pytest.raises(ParameterError, match="truth: expected an array, got DataFrame"):
        dice(DataFrame({"a": [0, 1]}), np.zeros((2, 1)))


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
    def test_are_one_minus_their_score(self, name):
        risk = RISKS[name]
        truth, mask = np.array([1, 1, 0]), np.array([1, 0, 0])
        assert risk.name == name
        assert risk.of(truth, mask) == 1 - risk.score(truth, mask)
        assert (risk.of(FULL, FULL), risk.of(EMPTY, EMPTY), risk.of(EMPTY, EMPTY, empty="agree")) == (0, 1, 0)

    def test_by_name(self):
        assert list(RISKS) == ["dice_risk", "iou_risk", "f2_risk"]

    def test_any_beta(self):
        truth, mask = np.array([1, 1, 0]), np.array([1, 0, 0])
        assert f_beta_risk(0.5).name == "f0.5_risk"
        assert f_beta_risk(0.5).of(truth, mask) == 1 - f_beta(truth, mask, beta=0.5)


def test_any_byte_of_a_bool_that_is_not_0_is_true():
    odd = np.array([2, 2, 0], np.uint8).view(bool)
    assert dice(odd, np.array([True, True, False])) == 1.0
