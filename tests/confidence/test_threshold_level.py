"""TLA: the mean entropy above a threshold, and the threshold learned from a data set."""

import math
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.confidence import (
    ThresholdLevel,
    entropy_quantile,
    needs_members,
    score,
    threshold_level_confidence,
)
from segtrust.errors import EmptyArrayError, NotFittedError, ParameterError, ProbabilityRangeError
from segtrust.kernels import binary_entropy
from segtrust.maps import Case, Prediction
from tests.references import close, entropies, logit_normal, tau_of, tla

ordinary = st.floats(0, 1).map(lambda p: p if p > 1e-290 else 0.0)
maps = arrays.arrays(float, st.integers(1, 60), elements=ordinary | st.sampled_from([0.0, 0.1, 0.5, 0.9]))


@given(maps, st.sampled_from([0.0, 0.01, 0.2, 0.3, 0.7, 0.95, 0.9999]))
def test_equals_the_formula(p, tau):
    assert close(threshold_level_confidence(p, tau=tau), tla(p, tau), 1e-13)


def test_pixels_at_the_threshold_are_not_above_it():
    p = np.array([0.1, 0.5])
    assert close(threshold_level_confidence(p, tau=binary_entropy(0.1)), -1, 1e-13)
    assert threshold_level_confidence(p, tau=1.0) == 0
    assert close(threshold_level_confidence(p, tau=0.0), -(1 + binary_entropy(0.1)) / 2, 1e-13)


def test_certain_maps_score_a_plain_zero():
    assert str(threshold_level_confidence(np.array([0.0, 1.0]), tau=0.3)) == "0.0"


def test_observations_add_up_from_each_doubt_on():
    seen = ThresholdLevel().observe(Prediction(np.array([0.5, 0.75, 0.25, 0.0])))
    u = binary_entropy(0.25)
    assert seen["above"] == pytest.approx([1 + 2 * u, 1 + 2 * u, 1, 0])
    assert seen["ranks"].tolist() == [1, 3, 4]


@pytest.mark.parametrize("tau", [0.3, 0.9, 1.0])
def test_observations_score_as_maps_do(tau):
    tla, doubtful = ThresholdLevel(tau), Prediction(np.array([0.5, 0.6, 0.25]))
    found = tla.score_observation(tla.observe(doubtful))
    assert found == pytest.approx(tla.score(doubtful), rel=1e-14)


SETS = {
    "one map": [logit_normal((30, 20))],
    "different sizes": [logit_normal((10 + 7 * i, 13), i) for i in range(6)],
    "a large and a small one": [logit_normal((900, 800)), logit_normal((3, 4), 1)],
    "ties": [np.round(logit_normal((40, 40), i), 1) for i in range(3)],
    "8 bits": [(255 * logit_normal((50, 60), i)).astype(np.uint8) for i in range(4)],
    "mostly zero": [np.where(logit_normal((90, 90), i) > 0.6, 0.7, 0.0) for i in range(3)],
    "one pixel each": [np.array([0.3]), np.array([0.9]), np.array([0.5])],
    "no foreground": [np.full((8, 8), 0.2), logit_normal((9, 9), mean=-20)],
    "all foreground": [np.full((8, 8), 0.8), np.full(5, 0.6)],
    "volumes": [logit_normal((9, 8, 7), i).astype(np.float32) for i in range(3)],
}


@pytest.mark.parametrize("name", SETS)
def test_fit_finds_the_quantile_of_all_entropies_and_scores_equal_the_formula(name):
    fitted = ThresholdLevel().fit([Prediction(p) for p in SETS[name]])
    masks = [p >= (128 if p.dtype == np.uint8 else 0.5) for p in SETS[name]]
    assert math.isclose(fitted.tau, tau_of(SETS[name], masks), rel_tol=1e-13, abs_tol=1e-300)
    for p in [*SETS[name], logit_normal((70, 70), 99)]:
        u = entropies(p)
        above = u > fitted.tau * (1 + 1e-13)  # p and 1 - p are as uncertain, but for rounding
        reference = -u[above].mean() if above.any() else 0
        assert close(fitted.score(Prediction(p)), reference)
        assert ThresholdLevel(fitted.tau).score(Prediction(p)) == fitted.score(Prediction(p))


def test_pixels_between_two_learned_ones_fall_on_their_side():
    fitted = ThresholdLevel().fit([Prediction(np.array([0.0, 0.1, 0.4, 0.5]), mask=np.array([1, 1, 0, 0]))])
    assert binary_entropy(0.1) < fitted.tau < binary_entropy(0.4)
    for doubt in np.linspace(0.1, 0.4, 31):
        expected = -binary_entropy(doubt) if binary_entropy(doubt) > fitted.tau else 0
        assert math.isclose(fitted.score(Prediction(np.array([doubt]))), expected, rel_tol=1e-13)


def test_masks_and_thresholds_count():
    p = logit_normal((30, 30))
    mask = np.random.default_rng(0).random(p.shape) < 0.25
    cases = [Prediction(p, mask), Case(Prediction(p, threshold=0.1), truth=mask)]
    assert math.isclose(ThresholdLevel().fit(cases).tau, tau_of([p, p], [mask, p >= 0.1]), rel_tol=1e-13)


@given(
    st.lists(maps, min_size=1, max_size=5),
    st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_quantile_equals_numpy(arrays, fraction):
    found = entropy_quantile([Prediction(p) for p in arrays], fraction)
    reference = np.quantile(np.concatenate([entropies(p) for p in arrays]), fraction)
    assert math.isclose(found, reference, rel_tol=1e-12, abs_tol=1e-300)


@pytest.mark.parametrize("fraction", [0.001, 0.87])
def test_quantile_of_many_pixels(fraction):
    arrays = [logit_normal((400, 300 + i), i).astype(np.float32) for i in range(5)]
    pooled = np.concatenate([entropies(p).ravel() for p in arrays])
    assert close(
        entropy_quantile([Prediction(p) for p in arrays], fraction), np.quantile(pooled, fraction), 1e-14
    )


class Shelf:
    """Maps that are made when they are reached, and that tells how many live at a time."""

    def __init__(self, count):
        self.count, self.alive, self.most, self.passes = count, 0, 0, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        self.passes += 1
        return map(self.load, range(self.count))

    def load(self, i):
        p = logit_normal((60 + i, 70), i)
        self.alive += 1
        self.most = max(self.most, self.alive)
        weakref.finalize(p, self.let_go)
        return Prediction(p)

    def let_go(self):
        self.alive -= 1


class TestLazyDataSet:
    def test_one_map_lives_at_a_time(self):
        shelf = Shelf(12)
        fitted = ThresholdLevel().fit(shelf)
        assert (shelf.most, shelf.alive) == (1, 0)
        assert fitted == ThresholdLevel().fit(list(Shelf(12)))

    def test_maps_are_read_a_few_times(self):
        shelf = Shelf(30)
        ThresholdLevel().fit(shelf)
        assert shelf.passes <= 4

    def test_a_generator_is_refused(self):
        with pytest.raises(EmptyArrayError, match="more than once: pass a list"):
            ThresholdLevel().fit(Prediction(p) for p in SETS["ties"])


@pytest.mark.parametrize("function", [lambda: entropy_quantile([], 0.5), lambda: ThresholdLevel().fit([])])
def test_nothing_to_learn_from(function):
    with pytest.raises(EmptyArrayError, match="cases: expected at least one, got none"):
        function()


def test_one_case_is_no_data_set():
    with pytest.raises(ParameterError, match="cases: expected several, got one Prediction"):
        ThresholdLevel().fit(Prediction(np.zeros(3)))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, "0.5", None])
def test_fractions_out_of_range(fraction):
    with pytest.raises(ParameterError, match=r"fraction: expected a number in \[0, 1\], got"):
        entropy_quantile([Prediction(np.zeros(3))], fraction)


@pytest.mark.parametrize("tau", [-0.1, 1.1, math.nan, "a", np.array([0.1, 0.2])])
def test_thresholds_out_of_range(tau):
    with pytest.raises(ParameterError, match="tau: expected an entropy in bits"):
        ThresholdLevel(tau)


@pytest.mark.parametrize(
    "function",
    [
        lambda p: ThresholdLevel().score(Prediction(p)),
        lambda p: score(p, estimators=["sdc", "tla"]),
    ],
)
def test_not_fitted(function):
    with pytest.raises(NotFittedError, match=r"tau is not known yet. Call fit\(cases\).*or pass it"):
        function(np.zeros(3))


@pytest.mark.parametrize("name", ["tla", "pla-tuned"])
def test_needs_can_be_asked_before_fit(name):
    assert not needs_members(name)
    with pytest.raises(NotFittedError, match="is not known yet"):
        score(np.zeros((3, 3)), estimators=["sdc", name])


@pytest.mark.parametrize("learn", [ThresholdLevel().fit, lambda cases: entropy_quantile(cases, 0.3)])
def test_bad_values_are_not_learned_from(learn):
    good, bad = np.full((400, 300), 0.2), np.full((400, 300), 0.2)
    bad[333, 222] = np.nan
    with pytest.raises(ProbabilityRangeError, match=r"case 7: .* got nan at index \(333, 222\)"):
        learn([Prediction(good), Prediction(bad, id="case 7")])
