"""Estimators by name."""

import pytest

from segtrust.confidence import get_estimator
from segtrust.confidence.registry import ESTIMATORS
from segtrust.errors import SegtrustError, UnknownNameError


@pytest.mark.parametrize("name", ESTIMATORS)
def test_names_lead_to_their_estimator(name):
    estimator = get_estimator(name)
    assert estimator.name == name
    assert estimator.label.lower() == name
    assert estimator == get_estimator(name)


@pytest.mark.parametrize("error", [UnknownNameError, KeyError, SegtrustError])
def test_unknown_names_list_the_known(error):
    with pytest.raises(error) as caught:
        get_estimator("SDC")
    assert str(caught.value) == f"Unknown estimator 'SDC'; available: {', '.join(sorted(ESTIMATORS))}."


def test_estimators_that_learn_nothing_stay_as_they_are():
    estimator = get_estimator("sdc")
    assert estimator.fit([]) is estimator
