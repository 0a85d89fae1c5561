"""Estimators by name."""

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, SoftDice, assess, get_estimator, score, score_batch, score_classes
from segtrust.confidence.registry import ESTIMATORS, get_estimators
from segtrust.errors import ParameterError, SegtrustError, UnknownNameError

LABELS = {"pla-tuned": "pla*", "sdc-tuned": "sdc*", "aef-sdc": "aef+sdc"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_names_lead_to_their_estimator(name):
    estimator = get_estimator(name)
    assert estimator.name == name
    assert estimator.label.lower() == LABELS.get(name, name)
    assert estimator == get_estimator(name)


@pytest.mark.parametrize("error", [UnknownNameError, KeyError, SegtrustError])
def test_unknown_names_list_the_known(error):
    with pytest.raises(error) as caught:
        get_estimator("SDC")
    assert str(caught.value) == f"Unknown estimator 'SDC'; available: {', '.join(sorted(ESTIMATORS))}."


def test_estimators_that_learn_nothing_stay_as_they_are():
    estimator = get_estimator("sdc")
    assert estimator.fit([]) is estimator


def test_a_list_may_mix_names_and_estimators():
    assert get_estimators(("sdc", PatchLevel(3))) == [SoftDice(), PatchLevel(3)]


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([3], r"expected names or estimators, got int 3\. The names are aef, aef-sdc, amsp"),
        ([SoftDice], r"got the class SoftDice\. Make an estimator of it first: SoftDice\(\)\."),
        ([None], "expected names or estimators, got None"),
        ("sdc", "expected a list of names or estimators, got the text 'sdc'. Put a single one into a list"),
        (SoftDice(), r"expected a list of names or estimators, got SoftDice"),
        (SoftDice, "expected a list of names or estimators, got the class SoftDice"),
        (None, "expected a list of names or estimators, got None"),
        (3, "expected a list of names or estimators, got int 3"),
    ],
)
def test_what_are_no_estimators_is_refused(estimators, message):
    p = np.full((2, 3), 0.5)
    calls = (score, assess, score_batch, lambda p, **more: score_classes(p, ["a", "b"], **more))
    for call in calls:
        with pytest.raises(ParameterError, match=f"estimators: .*{message}"):
            call(p, estimators=estimators)
