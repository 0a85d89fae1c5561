"""Estimators by name."""

import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.confidence import PatchLevel, SoftDice, assess, get_estimator, score, score_batch, score_classes
from segtrust.confidence.registry import ESTIMATORS, get_estimators
from segtrust.errors import ParameterError, PluginError, SegtrustError, UnknownNameError
from tests.plugged import ESTIMATOR, installed, package

LABELS = {"pla-tuned": "pla*", "sdc-tuned": "sdc*", "aef-sdc": "aef+sdc", "pairwise-dice": "pairwise dice"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_names_lead_to_their_estimator(name):
    estimator = get_estimator(name)
    assert estimator.name == name
    assert estimator.label.lower() == LABELS.get(name, name)
    assert estimator == get_estimator(name)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_do_not_change(name):
    estimator = get_estimator(name)
    assert hash(estimator) == hash(get_estimator(name))
    with pytest.raises(FrozenInstanceError):
        estimator.label = "another"


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


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """Let a package offer the estimator 'medium', made of this text."""
    monkeypatch.delitem(sys.modules, "medium_pkg", raising=False)
    with installed(monkeypatch, tmp_path):
        entries = {"estimators": {"medium": "medium_pkg:Share"}}
        yield lambda text: package(tmp_path, "seg-medium", entries, {"medium_pkg": text})


@pytest.mark.parametrize("more", ["", "\nShare = Share()"], ids=["class", "estimator"])
def test_another_package_may_offer_a_class_or_an_estimator(offer, more):
    offer(ESTIMATOR.format(name="medium") + more)
    assert repr(get_estimator("medium")) == "Share(power=1.0)"


@pytest.mark.parametrize("name", ["low", "other"])
def test_what_goes_by_another_name_is_refused(offer, name):
    offer(ESTIMATOR.format(name=name))
    with pytest.raises(PluginError, match=f"expected an estimator called 'medium', got '{name}'"):
        get_estimator("medium")


def test_an_estimator_without_a_label_is_refused(offer):
    offer(ESTIMATOR.format(name="medium").replace('label = "Share"', ""))
    with pytest.raises(PluginError, match="expected a label for tables, got none"):
        get_estimator("medium")
