"""Estimators by name."""

import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.confidence import (
    ESTIMATORS,
    PatchLevel,
    SoftDice,
    assess,
    colour_of,
    estimator_names,
    estimators,
    get_estimator,
    get_estimators,
    label_of,
    named_estimators,
    score,
    score_batch,
    score_classes,
)
from segtrust.errors import ParameterError, PluginError, SegtrustError, UnknownNameError
from tests.plugged import ESTIMATOR, forget, installed, package

LABELS = {
    "sdc": "SDC",
    "idc": "IDC",
    "amsp": "aMSP",
    "apc": "aPC",
    "ane": "aNE",
    "mmmc": "MMMC",
    "tla": "TLA",
    "pla": "PLA",
    "pla-tuned": "PLA*",
    "aef": "AEF",
    "aef-sdc": "AEF+SDC",
    "sdc-tuned": "SDC*",
    "pairwise-dice": "pairwise Dice",
}


def test_names_lead_to_their_estimator_and_its_label():
    assert {name: get_estimator(name).label for name in ESTIMATORS} == LABELS
    for name in ESTIMATORS:
        estimator = get_estimator(name)
        assert estimator.name == name
        assert estimator == get_estimator(name)
        assert hash(estimator) == hash(get_estimator(name))
        with pytest.raises(FrozenInstanceError):
            estimator.label = "another"


def test_labels_and_colours_are_those_of_the_classes():
    for name, estimator in ESTIMATORS.items():
        assert (label_of(name), colour_of(name)) == (estimator.label, estimator.colour)
        assert estimator.colour.startswith("#")
    assert (label_of("oracle"), colour_of("oracle")) == ("oracle", "#000000")
    assert (label_of("random"), colour_of("random")) == ("random", "#7f7f7f")


@pytest.mark.parametrize("error", [UnknownNameError, KeyError, SegtrustError])
def test_unknown_names_list_the_known(error):
    with pytest.raises(error) as caught:
        get_estimator("SDC")
    known = ", ".join(sorted(ESTIMATORS))
    assert str(caught.value) == f"Unknown estimator 'SDC'; available: {known}. Did you mean 'sdc'?"


def test_no_estimator_at_all():
    for nothing in ([], (), {}):
        with pytest.raises(ParameterError, match="estimators: expected at least one"):
            named_estimators(nothing)


def test_the_list_of_estimators_is_a_list_of_names():
    assert list(named_estimators(estimators())) == estimator_names()


def test_estimators_that_learn_nothing_stay_as_they_are():
    estimator = get_estimator("sdc")
    assert estimator.fit([]) is estimator


def test_a_list_may_mix_names_and_estimators():
    assert get_estimators(("sdc", PatchLevel(3))) == [SoftDice(), PatchLevel(3)]


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([3], r"expected names or estimators, got int 3\. The names are aef, aef-sdc, amsp"),
        ([SoftDice], r"got the class SoftDice\. Create an estimator first: SoftDice\(\)\."),
        ([None], "expected names or estimators, got None"),
        (SoftDice, r"got the class SoftDice\. Create an estimator first: SoftDice\(\)\."),
        (None, "expected names or estimators, a list of them, or a mapping .* got None"),
        (3, "expected names or estimators, a list of them, or a mapping .* got int 3"),
        ({3: "sdc"}, "expected texts as labels, got int 3"),
        ({"mine": 3}, r"expected names or estimators, got int 3"),
        ([PatchLevel(3), PatchLevel(4)], "expected each name once, because results go by name"),
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


def test_another_package_may_choose_a_colour(offer):
    text = ESTIMATOR.format(name="medium")
    offer(text.replace('label = "Share"', 'label = "Share"\n    colour = "#123abc"'))
    assert (label_of("medium"), colour_of("medium")) == ("Share", "#123abc")


def test_without_a_colour_the_name_decides(offer):
    by_name = colour_of("medium")  # not offered yet
    forget()
    offer(ESTIMATOR.format(name="medium"))
    assert (label_of("medium"), colour_of("medium")) == ("Share", by_name)


def test_a_colour_that_is_none_is_refused(offer):
    offer(ESTIMATOR.format(name="medium").replace('label = "Share"', 'label = "Share"\n    colour = "red"'))
    with pytest.raises(PluginError, match="expected a colour such as '#0072b2', got 'red'"):
        get_estimator("medium")
