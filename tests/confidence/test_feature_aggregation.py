"""AEF and AEF+SDC: the threshold of uncertain pixels, the features inside them, and the forest."""

import weakref

import numpy as np
import pytest

from segtrust.confidence import (
    TAUS,
    FeatureAggregation,
    SoftDiceFeatureAggregation,
    soft_dice_confidence,
)
from segtrust.confidence.feature_aggregation import error_overlaps
from segtrust.errors import (
    CaseLengthError,
    EmptyArrayError,
    MissingExtraError,
    NotFittedError,
    ParameterError,
)
from segtrust.features import extract_features
from segtrust.maps import Case, Prediction
from tests.references import entropies
from tests.tuning_cases import blob, blobs, losses_of

ESTIMATORS = (FeatureAggregation, SoftDiceFeatureAggregation)


def overlaps_by_hand(case):
    """The Dice between errors and uncertain pixels, one threshold at a time."""
    p = case.prediction.probabilities
    errors = (p >= (128 if p.dtype == np.uint8 else 0.5)) != case.truth
    u = entropies(p).astype(float)
    found = []
    for tau in TAUS:
        uncertain = u > tau
        total = errors.sum() + uncertain.sum()
        found.append(2 * (errors & uncertain).sum() / total if total else 0)
    return found


class TestThreshold:
    def test_the_grid_is_that_of_the_paper(self):
        np.testing.assert_allclose(TAUS, np.arange(0.05, 0.96, 0.05))

    @pytest.mark.parametrize(
        ("shape", "kind"), [((50,), np.float32), ((24, 30), np.uint8), ((9, 12, 10), np.float32)]
    )
    def test_overlaps_equal_their_definition(self, shape, kind):
        for case in blobs(5, shape, kind):
            np.testing.assert_allclose(error_overlaps(case), overlaps_by_hand(case), rtol=1e-14)

    def test_a_case_without_errors_has_no_say(self):
        sure = Case(Prediction(np.array([[0.0, 1.0]])), np.array([[0, 1]]))
        unsure = Case(Prediction(np.array([[0.4, 0.6]])), np.array([[0, 1]]))
        assert error_overlaps(sure).tolist() == error_overlaps(unsure).tolist() == [0] * 19

    def test_without_an_uncertain_pixel_errors_are_not_found(self):
        assert not error_overlaps(Case(Prediction(np.array([0.0, 1.0])), np.array([1, 1]))).any()

    @pytest.mark.needs("sklearn")
    def test_the_best_mean_overlap_is_taken_and_of_several_the_first(self):
        cases = blobs(6)
        means = np.mean([overlaps_by_hand(case) for case in cases], axis=0)
        fitted = FeatureAggregation(trees=2).fit(cases)
        assert fitted.tau == TAUS[int(np.argmax(means))]
        sure = [Case(Prediction(np.eye(4) * x), np.eye(4)) for x in (0.9, 0.8)]
        assert FeatureAggregation(trees=2).fit(sure).tau == TAUS[0]


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("shape", [(24, 30), (9, 12, 10)])
@pytest.mark.parametrize("make", ESTIMATORS)
def test_equals_scikit_learn_on_features_extracted_by_hand(make, shape):
    from sklearn.ensemble import RandomForestRegressor

    cases = blobs(14, shape)
    fitted = make(trees=20).fit(cases[:8])
    rows = []
    for case in cases:
        u = entropies(case.prediction.probabilities).astype(float)
        row = extract_features(u, u > fitted.tau)
        sdc = soft_dice_confidence(case.prediction.probabilities)
        rows.append(np.append(sdc, row) if make is SoftDiceFeatureAggregation else row)
    forest = RandomForestRegressor(n_estimators=20, random_state=42).fit(rows[:8], 1 - losses_of(cases[:8]))
    found = [fitted.score(case) for case in cases]
    np.testing.assert_allclose(found, forest.predict(rows), rtol=1e-6)
    assert fitted.ndim == len(shape)


MAPS = {
    "nothing": np.zeros((6, 7)),
    "full": np.ones((6, 7)),
    "one half": np.full((6, 7), 0.5),
    "one pixel": np.array([[0.7]]),
    "one uncertain pixel": np.pad([[0.6]], 3),
    "two that touch at a corner": np.diag([0.6, 0.6]),
    "8 bits": np.arange(42, dtype=np.uint8).reshape(6, 7) * 6,
    "line": np.linspace(0, 1, 11),
}


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("make", ESTIMATORS)
class TestDegenerate:
    def test_every_map_has_a_finite_score(self, make):
        fitted = make(trees=10).fit(blobs(6))
        for name, p in MAPS.items():
            assert 0 <= fitted.score(Prediction(p)) <= 1, name

    def test_every_map_can_be_learned_from(self, make):
        cases = [
            Case(Prediction(p), np.asarray(p) > (127 if p.dtype == np.uint8 else 0.65)) for p in MAPS.values()
        ]
        fitted = make(trees=10).fit(cases)
        assert all(np.isfinite(fitted.score(case)) for case in cases)
        assert np.isfinite(fitted.tau)


@pytest.mark.needs("sklearn")
class TestDimensions:
    def test_a_forest_of_images_refuses_volumes(self):
        fitted = FeatureAggregation(trees=2).fit(blobs(3))
        with pytest.raises(ParameterError, match=r"aef: expected a map of 2 dimensions, .* got 3"):
            fitted.score(blob(0, (5, 6, 7)))

    def test_images_and_volumes_do_not_mix(self):
        with pytest.raises(ParameterError, match="maps of one kind, got images and volumes"):
            FeatureAggregation(trees=2).fit([blob(0), blob(1, (6, 7, 8))])

    def test_more_dimensions_are_refused(self):
        with pytest.raises(ParameterError, match=r"an image or a volume, got a map of shape \(4, 4, 4, 4\)"):
            FeatureAggregation(trees=2).fit(blobs(2, (4, 4, 4, 4)))


@pytest.mark.needs("sklearn")
def test_a_generator_is_refused():
    with pytest.raises(EmptyArrayError, match=r"read twice\. Pass a list"):
        FeatureAggregation(trees=2).fit(case for case in blobs(3))


class LoadedCases:
    """Cases that are loaded when they are reached, with the number of maps that exist at a time."""

    def __init__(self, count):
        self.count, self.alive, self.most, self.passes = count, 0, 0, 0

    def __iter__(self):
        self.passes += 1
        return map(self.load, range(self.count))

    def load(self, i):
        case = blob(i)
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(case.prediction.probabilities, self.release)
        return case

    def release(self):
        self.alive -= 1


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("make", ESTIMATORS)
def test_cases_are_read_twice_one_at_a_time(make):
    cases = LoadedCases(5)
    fitted = make(trees=2).fit(cases)
    assert (cases.passes, cases.most, cases.alive) == (2, 1, 0)
    assert fitted.parameters == make(trees=2).fit(blobs(5)).parameters


@pytest.mark.needs("sklearn")
def test_other_settings_forget_the_forest():
    fitted = FeatureAggregation(trees=2).fit(blobs(3))
    changed = fitted.set_params(trees=3)
    assert changed == FeatureAggregation(trees=3)
    assert changed.used_ids == frozenset()
    assert "forest" in fitted.parameters
    with pytest.raises(NotFittedError, match="the forest is not known yet"):
        changed.score(blob(0))


@pytest.mark.needs("sklearn")
def test_trees_of_another_estimator_are_refused():
    parameters = FeatureAggregation(trees=2).fit(blobs(3)).parameters
    with pytest.raises(ParameterError, match="aef-sdc expected one that reads 98 features, got 97"):
        SoftDiceFeatureAggregation(**parameters)
    with pytest.raises(ParameterError, match="aef expected one that reads 102 features, got 97"):
        FeatureAggregation(**parameters | {"ndim": 3})
    with pytest.raises(ParameterError, match="ndim: expected 2 or 3"):
        FeatureAggregation(**parameters | {"ndim": None})


@pytest.mark.needs("sklearn")
def test_a_threshold_off_the_grid_scores_maps_and_not_observations():
    fitted = FeatureAggregation(**FeatureAggregation(trees=2).fit(blobs(3)).parameters | {"tau": 0.33})
    assert 0 <= fitted.score(blob(7)) <= 1
    with pytest.raises(ParameterError, match=r"tau: .* 0\.33"):
        fitted.score_observation(fitted.observe(blob(7)))


def test_observations_without_truth_teach_nothing():
    observation = FeatureAggregation().observe(blob(0).prediction)
    with pytest.raises(CaseLengthError, match="expected observations of cases with a ground truth"):
        FeatureAggregation().fit_observations([observation], [0.1])


def test_the_usual_settings():
    usual = FeatureAggregation()
    assert (usual.trees, usual.bin_width, usual.seed) == (100, 25.0, 42)


@pytest.mark.needs("sklearn")
def test_seed_and_number_of_trees_count():
    cases = blobs(8)
    scores = {
        (trees, seed): FeatureAggregation(trees=trees, seed=seed).fit(cases).score(blob(99))
        for trees in (3, 10)
        for seed in (0, 1)
    }
    assert len(set(scores.values())) > 1
    assert len(FeatureAggregation(trees=10).fit(cases).forest.roots) == 10


@pytest.mark.needs("sklearn", "radiomics")
def test_other_bin_widths_see_grey_levels():
    cases = blobs(5)
    fine = FeatureAggregation(trees=5, bin_width=0.05)
    assert fine.observer != FeatureAggregation().observer
    differences = fine.observe(cases[0])["features"] != FeatureAggregation().observe(cases[0])["features"]
    assert differences.any()
    assert np.isfinite(fine.fit(cases).score(blob(20)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trees": 0}, "trees: expected a whole number of at least 1, got 0"),
        ({"trees": 2.5}, "trees: expected a whole number"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": 2**32}, "seed: expected a whole number of at most 4294967295"),
        ({"bin_width": -1.0}, "bin_width: expected a finite number above 0"),
        ({"bin_width": 0}, "bin_width: expected a finite number above 0"),
        ({"tau": 1.5}, "tau: expected an entropy in bits"),
        ({"empty": "never"}, "empty: expected one of"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        FeatureAggregation(**options)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"segtrust\[learn\]"):
        FeatureAggregation().fit(blobs(2))
