"""What all estimators that learn have in common: whom they accept, what they remember, how they are saved."""

import json
from functools import cache

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import loss_of
from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    EmptyArrayError,
    NotFittedError,
    ParameterError,
    ProbabilityRangeError,
    SeenCasesError,
)
from segtrust.maps import Case, Prediction
from tests.tuning_cases import blobs, losses_of

FOREST = pytest.param(lambda: st.FeatureAggregation(trees=5), id="aef", marks=pytest.mark.needs("sklearn"))
FOREST_SDC = pytest.param(
    lambda: st.SoftDiceFeatureAggregation(trees=5), id="aef-sdc", marks=pytest.mark.needs("sklearn")
)
LABELLED = [
    pytest.param(st.TunedSoftDice, id="sdc-tuned"),
    pytest.param(st.TunedPatchLevel, id="pla-tuned"),
    FOREST,
    FOREST_SDC,
]
ALL = [*LABELLED, pytest.param(st.ThresholdLevel, id="tla")]


@pytest.fixture(scope="module")
def cases():
    return blobs(9)


@cache
def fitted_by(make):
    return make().fit(blobs(5))


@pytest.mark.parametrize("make", ALL)
class TestObservations:
    @pytest.mark.parametrize("kind", [np.float32, np.uint8], ids=["float32", "uint8"])
    def test_give_what_fit_and_score_give(self, make, kind):
        cases = blobs(9, kind=kind)
        observations = [make().observe(case) for case in cases]
        by_cases = make().fit(cases[:6])
        by_observations = make().fit_observations(observations[:6], losses_of(cases[:6]))
        assert by_observations.parameters == by_cases.parameters
        expected = [by_cases.score(case) for case in cases]
        np.testing.assert_allclose(by_observations.score_observations(observations), expected, rtol=1e-12)
        assert by_observations.score_observation(observations[0]) == pytest.approx(expected[0], rel=1e-12)

    def test_are_arrays_that_a_file_can_hold(self, make, cases, tmp_path):
        observation = make().observe(cases[0])
        np.savez(tmp_path / "kept.npz", **observation)
        with np.load(tmp_path / "kept.npz") as kept:
            fitted = fitted_by(make)
            assert fitted.score_observation(dict(kept)) == fitted.score_observation(observation)

    def test_those_of_one_observer_are_the_same(self, make, cases):
        other = st.SoftDiceFeatureAggregation() if make().name == "aef" else make()
        assert make().observer == other.observer
        one, two = make().observe(cases[0]), other.observe(cases[0])
        assert all(np.array_equal(one[name], two[name]) for name in {*one, *two})


@pytest.mark.parametrize("make", ALL)
class TestFitted:
    def test_remembers_the_cases_it_saw(self, make, cases):
        fitted = fitted_by(make)
        assert fitted.used_ids == {f"blob {i}" for i in range(5)}
        with pytest.raises(SeenCasesError, match="blob 4"):
            st.reject_seen([case.id for case in cases[4:]], fitted.used_ids, 5)
        assert st.reject_seen([case.id for case in cases[5:]], fitted.used_ids, 4)

    def test_its_parameters_make_it_again(self, make, cases):
        fitted = fitted_by(make)
        plain = json.loads(json.dumps(fitted.parameters))
        again = type(fitted)(**plain)
        assert [again.score(case) for case in cases] == [fitted.score(case) for case in cases]
        assert "used_ids" not in plain

    def test_a_policy_can_keep_it(self, make, cases):
        fitted = fitted_by(make)
        scoring = st.Scoring.of(fitted)
        assert type(fitted)(**scoring.parameters).score(cases[7]) == fitted.score(cases[7])

    def test_scores_together_with_others(self, make, cases):
        fitted = fitted_by(make)
        p = cases[6].prediction.probabilities
        scores = st.score(p, estimators=["sdc", fitted, "ane"])
        assert scores[fitted.name] == pytest.approx(fitted.score(cases[6]), rel=1e-12)

    def test_does_not_look_at_the_truth(self, make, cases):
        fitted = fitted_by(make)
        prediction = cases[6].prediction
        other = Case(prediction, np.zeros(prediction.shape, bool))
        assert fitted.score(other) == fitted.score(cases[6]) == fitted.score(prediction)

    def test_the_same_cases_teach_the_same(self, make, cases):
        assert make().fit(cases[:5]).parameters == fitted_by(make).parameters

    def test_refuses_what_is_no_probability(self, make, cases):
        fitted = fitted_by(make)
        p = np.full((9, 9), 0.5)
        p[3, 4] = np.nan
        with pytest.raises(ProbabilityRangeError, match=r"\(3, 4\)"):
            fitted.score(Prediction(p))
        with pytest.raises(ProbabilityRangeError, match=r"bad: .*\(3, 4\)"):
            make().fit([*cases[:2], Case(Prediction(p, id="bad"), p > 0.2)])


@pytest.mark.parametrize("make", ALL)
def test_before_fit_nothing_can_be_scored(make):
    with pytest.raises(NotFittedError, match=r"is not known yet. Call fit\(cases\)"):
        make().score(Prediction(np.full((4, 4), 0.5)))


@pytest.mark.parametrize("make", LABELLED)
class TestRefusals:
    def test_a_case_without_truth_is_named(self, make):
        bare = Prediction(np.full((5, 5), 0.7), id="case 12")
        for missing in (bare, Case(bare, None)):
            with pytest.raises(
                ParameterError, match=r"case 12: .* learns from the ground truth and expected a Case"
            ):
                make().fit([*blobs(2), missing])

    def test_no_case(self, make):
        with pytest.raises(EmptyArrayError, match="expected at least one case to learn from, got none"):
            make().fit([])

    def test_one_case_that_is_no_list(self, make):
        with pytest.raises(ParameterError, match="cases: expected several, got one Case"):
            make().fit(blobs(1)[0])

    def test_losses_that_do_not_fit(self, make):
        observations = [make().observe(case) for case in blobs(3)]
        with pytest.raises(CaseLengthError, match="one for each of 3 observations"):
            make().fit_observations(observations, [0.1, 0.2])
        for bad in (-0.1, 1.1, np.nan):
            with pytest.raises(CaseValueError, match=r"numbers in \[0, 1\]"):
                make().fit_observations(observations, [0.1, 0.2, bad])


@pytest.mark.parametrize("make", LABELLED)
def test_one_case_teaches_something(make):
    fitted = make().fit(blobs(1))
    assert all(np.isfinite(fitted.score(case)) for case in blobs(4, first=10))


def test_estimators_that_learn_nothing_take_part():
    case = blobs(1)[0]
    sdc = st.get_estimator("sdc")
    observation = sdc.observe(case)
    assert sdc.fit_observations([observation], [0.1]) is sdc
    assert sdc.score_observation(observation) == sdc.score(case)
    assert sdc.used_ids == frozenset()


class TestLoss:
    def test_is_one_minus_dice(self):
        cases = blobs(4)
        np.testing.assert_allclose([loss_of(case) for case in cases], losses_of(cases), rtol=1e-14)

    def test_of_two_empty_masks_is_said_by_the_policy(self):
        case = Case(Prediction(np.zeros((3, 3))), np.zeros((3, 3), bool))
        assert loss_of(case) == 1
        assert loss_of(case, "agree") == 0

    @pytest.mark.parametrize("kind", ["float16", "float64", "uint16", "bool"])
    def test_takes_the_delivered_mask(self, kind):
        p = np.asfortranarray(np.array([[0.9, 0.1, 0.0], [0.7, 0.2, 1.0]]))
        levels = {"uint8": 255, "uint16": 65535}.get(kind, 1)
        stored = p > 0.15 if kind == "bool" else np.round(p * levels, 3).astype(kind)
        truth = np.array([[1, 0, 0], [0, 0, 1]])
        mask = stored if kind == "bool" else p >= 0.15
        expected = 1 - 2 * (mask & (truth == 1)).sum() / (mask.sum() + truth.sum())
        assert loss_of(Case(Prediction(stored, threshold=0.15), truth)) == pytest.approx(expected)
        given = Case(Prediction(stored, mask=truth), truth)
        assert loss_of(given) == 0
