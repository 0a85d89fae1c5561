"""SDC* and PLA*: what they learn, and the rankings of the same cases by which they choose."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import rankdata

from segtrust.confidence import (
    SIDES,
    WEIGHTS,
    PatchLevel,
    SoftDice,
    TunedPatchLevel,
    TunedSoftDice,
    rank_correlations,
    ranking_areas,
)
from segtrust.errors import CaseLengthError, ParameterError
from segtrust.maps import Case, EmptyPolicy, Prediction
from segtrust.selective import trace_curve
from tests.references import close
from tests.tuning_cases import blobs, losses_of

maps = arrays.arrays(float, st.integers(1, 50), elements=st.floats(0, 1))


@given(maps, st.sampled_from([0.0, 0.3, 1.0, 4.0]))
def test_equals_the_formula(p, weight):
    mask = p >= 0.5
    k, s, lam = mask.sum(), p[mask].astype(np.longdouble).sum(), p[~mask].astype(np.longdouble).sum()
    expected = 2 * s / (k + s + weight * lam) if k else 0
    assert close(TunedSoftDice(weight).score(Prediction(p)), expected)


@pytest.mark.parametrize("empty", EmptyPolicy)
def test_a_weight_of_one_is_the_sdc(empty):
    for p in (np.random.default_rng(0).random((9, 9)), np.full((5, 5), 0.1), np.zeros((3, 3))):
        expected = SoftDice(empty).score(Prediction(p))
        tuned = TunedSoftDice(1.0, empty=empty)
        assert tuned.score(Prediction(p)) == expected
        assert tuned.score_observation(tuned.observe(Prediction(p))) == pytest.approx(expected, rel=1e-15)


def test_only_an_empty_mask_is_observed_with_a_confidence():
    tuned = TunedSoftDice(empty="agree")
    assert tuned.observe(Prediction(np.array([0.75, 0.25])))["counts"].tolist() == [1, 0.75, 0.25, 0]
    assert tuned.observe(Prediction(np.array([0.25, 0.25])))["counts"] == pytest.approx([0, 0, 0.5, 0.75**2])


def observed(counts):
    return [{"counts": np.array([*row, 0.0])} for row in counts]


def chosen_by_hand(counts, dices):
    """The rule of the class, written plainly."""
    lacks = []
    for weight in WEIGHTS:
        scores = [2 * s / (k + s + weight * lam) if k else 0 for k, s, lam in counts]
        ranks = rankdata(scores)
        varies = np.ptp(ranks) > 0 and np.ptp(dices) > 0
        lacks.append(1 - np.corrcoef(ranks, dices)[0, 1] if varies else 1)
    best = int(np.argmin(lacks))
    enough = lacks[best] < lacks[WEIGHTS.index(1.0)] * (1 - 0.4 / np.sqrt(len(dices)))
    return WEIGHTS[best] if enough else 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 40])
def test_follows_its_rule(n):
    found = set()
    for seed in range(60):
        rng = np.random.default_rng([seed, n])
        k = rng.integers(0, 5, n) * rng.integers(0, 200, n)
        s, lam = k * rng.uniform(0.6, 1, n), rng.exponential(100, n)
        dices = np.clip(s / np.maximum(k, 1) + rng.normal(0, 0.1, n), 0, 1)
        counts = np.column_stack([k, s, lam])
        weight = TunedSoftDice().fit_observations(observed(counts), 1 - dices).weight
        assert weight == chosen_by_hand(counts, dices)
        found.add(weight)
    assert len(found) > 1 or n < 3


def test_finds_a_background_that_means_nothing():
    rng = np.random.default_rng(0)
    k = np.full(40, 100.0)
    s = k * rng.uniform(0.5, 1, 40)
    lam = rng.exponential(300, 40)
    fitted = TunedSoftDice().fit_observations(observed(np.column_stack([k, s, lam])), 1 - s / k)
    assert fitted.weight == 0


def test_stays_the_sdc_where_it_ranks_perfectly():
    rng = np.random.default_rng(0)
    k = np.full(30, 100.0)
    s, lam = k * rng.uniform(0.5, 1, 30), rng.exponential(30, 30)
    dices = 2 * s / (k + s + lam)
    ranks = rankdata(dices) / 30
    assert TunedSoftDice().fit_observations(observed(np.column_stack([k, s, lam])), 1 - ranks).weight == 1


@pytest.mark.parametrize("dices", [np.full(6, 0.8), np.zeros(6), np.ones(6)])
def test_stays_the_sdc_where_all_dices_are_equal(dices):
    counts = np.random.default_rng(0).random((6, 3)) * 100
    assert TunedSoftDice().fit_observations(observed(counts), 1 - dices).weight == 1


def test_stays_the_sdc_where_all_masks_are_empty():
    assert TunedSoftDice().fit_observations(observed(np.zeros((5, 3))), np.ones(5)).weight == 1


def test_order_of_the_cases_does_not_matter():
    cases = blobs(12)
    assert TunedSoftDice().fit(cases) == TunedSoftDice().fit(cases[::-1])


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf, "1", [1.0]])
def test_weights_that_mean_nothing_are_refused(weight):
    with pytest.raises(ParameterError, match="weight: expected a finite number of at least 0"):
        TunedSoftDice(weight)


def test_the_grid_is_that_of_the_paper():
    assert SIDES[:10] == (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    assert SIDES[10:13] == (15, 20, 25)
    assert (SIDES[-1], len(SIDES)) == (200, 48)


@pytest.mark.parametrize(("shape", "n"), [((40,), 2), ((24, 30), 12), ((9, 12, 10), 5)])
def test_takes_the_first_side_with_the_smallest_area(shape, n):
    cases = blobs(n, shape)
    losses = losses_of(cases)
    areas = [trace_curve([PatchLevel(side).score(case) for case in cases], losses).aurc for side in SIDES]
    best = np.flatnonzero(np.array(areas) <= min(areas) + 1e-12)[0]
    fitted = TunedPatchLevel().fit(cases)
    assert fitted.size == SIDES[best]
    assert [fitted.score(case) for case in cases] == [PatchLevel(SIDES[best]).score(case) for case in cases]


def test_ties_go_to_the_smallest_side():
    cases = [Case(Prediction(np.full((5, 5), p)), np.ones((5, 5), bool)) for p in (0.6, 0.7, 0.8)]
    assert TunedPatchLevel().fit(cases).size == 1


def test_boxes_are_capped_by_the_image():
    case = blobs(1)[0]
    sums = TunedPatchLevel().observe(case)["sums"]
    assert len(sums) == len(SIDES)
    capped = [side >= 30 for side in SIDES]
    assert len(set(sums[capped])) == 1


def test_a_side_of_its_own_is_observed_too():
    case = blobs(1)[0]
    tuned = TunedPatchLevel(size=11)
    assert tuned.score_observation(tuned.observe(case)) == pytest.approx(
        PatchLevel(11).score(case), rel=1e-12
    )
    with pytest.raises(CaseLengthError, match="made for other sides than 11"):
        tuned.score_observation(TunedPatchLevel().observe(case))


@pytest.mark.parametrize("size", [0, -1, 1.5, "3"])
def test_sides_without_pixels_are_refused(size):
    with pytest.raises(ParameterError, match="size: expected a whole number of at least 1"):
        TunedPatchLevel(size)


numbers = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
tables = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        arrays.arrays(float, (3, n), elements=numbers), arrays.arrays(float, n, elements=numbers)
    )
)


@given(tables)
def test_areas_equal_those_of_the_curve(table):
    confidences, losses = table
    expected = [trace_curve(each, losses).aurc for each in confidences]
    np.testing.assert_allclose(ranking_areas(confidences, losses), expected, rtol=1e-12, atol=1e-15)


def test_one_case_has_its_loss():
    assert ranking_areas(np.array([[0.3]]), np.array([0.7])).tolist() == [0.7]


@given(tables)
def test_correlations_equal_their_definition(table):
    confidences, dices = table
    for each, found in zip(confidences, rank_correlations(confidences, dices), strict=True):
        ranks = rankdata(each)
        varies = np.ptp(ranks) > 0 and dices.std() > 1e-9
        if varies:
            assert found == pytest.approx(np.corrcoef(ranks, dices)[0, 1], abs=1e-6)
        assert -1 - 1e-12 <= found <= 1 + 1e-12


def test_correlations_order_rankings_without_ties_as_the_generalised_area_does():
    rng = np.random.default_rng(0)
    confidences, losses = rng.random((50, 20)), rng.random(20)
    areas = [trace_curve(each, losses).augrc for each in confidences]
    found = rank_correlations(confidences, 1 - losses)
    assert np.corrcoef(areas, found)[0, 1] == pytest.approx(-1, abs=1e-12)


@pytest.mark.parametrize("dices", [[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
def test_what_does_not_vary_has_no_correlation(dices):
    assert rank_correlations(np.full((2, 3), 0.5), np.array(dices)).tolist() == [0, 0]
