"""Settings in the manner of scikit-learn: read, set, cloned."""

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import ESTIMATORS
from segtrust.errors import NotFittedError, ParameterError

CONFIDENCE = np.linspace(0.1, 0.9, 60)
MADE = [
    *(kind() for kind in ESTIMATORS.values()),
    st.PatchLevel(size=7),
    st.TunedPatchLevel(size=20, used_ids=frozenset(["a"])),
    st.ConformalDice(level=0.8, predictor="identity"),
    st.MeanDiceEstimator(seed=3),
    st.TemperatureScaling(ends="clip"),
    st.PlattScaling(weigh="cases"),
]


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize("made", MADE, ids=lambda made: type(made).__name__)
def test_scikit_learn_clones_them(made):
    from sklearn.base import clone

    twin = clone(made)
    assert type(twin) is type(made)
    assert twin.get_params() == made.get_params()
    assert twin.used_ids == made.used_ids


@pytest.mark.parametrize("made", MADE, ids=lambda made: type(made).__name__)
def test_settings_make_the_same_again(made):
    again = type(made)(**made.get_params())
    assert again.get_params(deep=False) == made.get_params()
    assert made.set_params() is made
    assert made.set_params(**made.get_params()).get_params() == made.get_params()


def test_settings_are_set_in_a_new_one():
    first = st.PatchLevel(size=7)
    second = first.set_params(size=9)
    assert (first.size, second.size) == (7, 9)
    assert st.SoftDice().set_params(empty="agree").get_params()["empty"] == "agree"


def test_unknown_settings_are_named():
    with pytest.raises(ParameterError, match="side: expected a setting of PatchLevel, which has size"):
        st.PatchLevel().set_params(side=3)
    with pytest.raises(ParameterError, match=r"size: expected .* which has none"):
        st.AverageMaxProbability().set_params(size=3)
    with pytest.raises(ParameterError, match="cells: expected a setting of ConformalDice, which has level"):
        st.ConformalDice().set_params(cells=())


def test_what_was_learned_does_not_outlive_its_settings():
    fitted = st.ConformalDice(seed=1).fit(CONFIDENCE, CONFIDENCE, ids=range(60))
    changed = fitted.set_params(level=0.5)
    assert changed.used_ids == frozenset()
    with pytest.raises(NotFittedError):
        changed.interval([0.5])
    with pytest.raises(NotFittedError):
        changed.predict([0.5])
    again = changed.fit(CONFIDENCE, CONFIDENCE)
    assert again == st.ConformalDice(level=0.5, seed=1).fit(CONFIDENCE, CONFIDENCE)
    assert st.MeanDiceEstimator().fit(CONFIDENCE, CONFIDENCE).set_params(seed=1).confidence is None


@pytest.mark.needs("sklearn")
def test_a_clone_is_not_fitted():
    from sklearn.base import clone

    fitted = st.ConformalDice(seed=1).fit(CONFIDENCE, CONFIDENCE, ids=range(60))
    assert clone(fitted) == st.ConformalDice(seed=1)


def test_ids_that_were_learned_from_are_never_lost():
    """A confidence that has seen a case must not come back as one that has not."""
    fitted = st.TunedPatchLevel(size=20, used_ids=frozenset(["a"]))
    assert fitted.set_params(size=30).used_ids == {"a"}
    assert "used_ids" not in fitted.get_params()
    scaling = st.TemperatureScaling(2.0, used_ids=["a"], n_cases=1)  # its temperature was learned from "a"
    assert scaling.set_params(ends="clip").used_ids == {"a"}


def test_fit_and_predict():
    fitted = st.ConformalDice().fit(CONFIDENCE, CONFIDENCE**2)
    np.testing.assert_array_equal(fitted.predict(CONFIDENCE), fitted.interval(CONFIDENCE).predicted)
