"""Targets and procedures: what they count, and that nothing else is taken for one."""

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.selective import (
    CalibrationCases,
    Observed,
    Procedure,
    Target,
    certify,
    certify_each,
    check_targets,
)
from segtrust.selective.pvalues import P_VALUES

CASES = CalibrationCases(np.linspace(0, 1, 40), np.zeros(40), reference=np.linspace(0, 0.99, 20))
WRONG = [0.1, None, "a", np.array([0.1]), {"a": Target(0.1)}, iter([Target(0.1)])]


@pytest.mark.parametrize(("risk", "kept"), [(0.0, True), (0.1, True), (0.1 + 1e-9, False)])
def test_a_limit_is_kept_where_it_is_just_reached(risk, kept):
    assert Observed(Target(0.1), risk, 0.0, 1.0).is_kept == kept


def test_any_sequence():
    both = [Target(0.1), Target(0.2, below_dice=0.5)]
    assert check_targets(both) == check_targets(tuple(both)) == tuple(both)


def test_one_target_is_a_list_of_one():
    assert check_targets(Target(0.1)) == (Target(0.1),)
    assert certify(CASES, Target(0.5)) == certify(CASES, [Target(0.5)])
    assert certify_each(CASES, Target(0.5)) == certify_each(CASES, [Target(0.5)])


@pytest.mark.parametrize("targets", WRONG)
def test_what_is_no_list(targets):
    with pytest.raises(
        ParameterError, match=r"targets: expected a Target or a list of them, such as \[Target\(0.1\)\]"
    ):
        check_targets(targets)


@pytest.mark.parametrize("check", [lambda x: certify(CASES, x), lambda x: certify_each(CASES, x)])
def test_certification_checks_targets(check):
    with pytest.raises(ParameterError, match="targets: expected a Target or a list of them"):
        check(iter([Target(0.1)]))
    with pytest.raises(ParameterError, match=r"targets: expected Target\(risk\).*got 0.3"):
        check([0.3])
    with pytest.raises(ParameterError, match="targets: expected at least one"):
        check([])


@pytest.mark.parametrize("name", P_VALUES)
def test_the_p_value_that_is_asked_for_is_used(name):
    for target in (Target(0.2), Target(0.2, below_dice=0.5)):
        for grouped in (False, True):
            for by_rank in (False, True):
                found = Procedure(p_value=name).tests_for([target], 100, grouped=grouped, by_rank=by_rank)
                assert found == (name,)


def test_the_suited_test_depends_on_target_size_and_units():
    mean, failures = Target(0.2), Target(0.2, below_dice=0.5)

    def suited(targets, n=100, grouped=False, by_rank=True):
        return Procedure().tests_for(targets, n, grouped=grouped, by_rank=by_rank)

    assert suited([mean]) == ("adaptive-betting",)
    assert suited([failures]) == ("binomial",)
    assert suited([failures], grouped=True, by_rank=False) == ("adaptive-betting",)
    assert suited([mean], n=5001) == ("betting",)
    assert suited([mean, failures]) == ("betting", "binomial")
    assert suited([mean, failures], by_rank=False) == ("adaptive-betting", "binomial")


BAD_PROCEDURES = [
    {"p_value": "wsr"},
    {"search": "grid"},
    *({"start_coverages": starts} for starts in (0.5, "0.5", None, (), (0.0,), (1.5,), ("a",), [None])),
    {"step": 0},
    {"set_aside": 1},
    {"seed": -1},
]


def test_unknown_p_values_list_the_known_ones():
    with pytest.raises(ParameterError, match=r"suited, adaptive-betting, betting, .*, got 'wsr'"):
        Procedure(p_value="wsr")


@pytest.mark.parametrize("settings", BAD_PROCEDURES)
def test_procedures_are_checked(settings):
    with pytest.raises(ParameterError, match=f"{next(iter(settings))}: expected"):
        Procedure(**settings)


def test_a_target_names_its_loss():
    assert str(Target(0.1, loss="f2")) == "the mean loss (1 − F2) of accepted cases is at most 0.1"
    assert str(Target(0.1, loss="hd95")) == "the mean loss (hd95) of accepted cases is at most 0.1"
    assert str(Target(0.1, below_dice=0.8, loss="dice")) == str(Target(0.1, below_dice=0.8))


@pytest.mark.parametrize("wrong", [{"loss": 3}, {"loss": "iou", "below_dice": 0.8}])
def test_losses_that_no_target_limits(wrong):
    with pytest.raises(ParameterError, match="loss"):
        Target(0.1, **wrong)
