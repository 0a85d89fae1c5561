"""Targets: what they count, and that nothing else is taken for one."""

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.selective.certify import certify, certify_each
from segtrust.selective.procedure import Procedure
from segtrust.selective.targets import Observed, Target, targets_of
from tests.selective.certified import CASES

WRONG = [Target(0.1), 0.1, None, "a", np.array([0.1]), {"a": Target(0.1)}, iter([Target(0.1)])]


@pytest.mark.parametrize(("risk", "kept"), [(0.0, True), (0.1, True), (0.1 + 1e-9, False)])
def test_a_limit_is_kept_where_it_is_just_reached(risk, kept):
    assert Observed(Target(0.1), risk, 0.0, 1.0).is_kept == kept


def test_any_sequence():
    both = [Target(0.1), Target(0.2, below_dice=0.5)]
    assert targets_of(both) == targets_of(tuple(both)) == tuple(both)


@pytest.mark.parametrize("targets", WRONG)
@pytest.mark.parametrize("check", [targets_of, lambda x: certify(CASES, x), lambda x: certify_each(CASES, x)])
def test_what_is_no_list(check, targets):
    with pytest.raises(
        ParameterError, match=r"targets: expected a list of Target, such as \[Target\(0.1\)\]"
    ):
        check(targets)


@pytest.mark.parametrize("check", [targets_of, lambda x: certify(CASES, x), lambda x: certify_each(CASES, x)])
def test_numbers_are_no_targets(check):
    with pytest.raises(ParameterError, match=r"targets: expected Target\(risk\).*got 0.3"):
        check([0.3])
    with pytest.raises(ParameterError, match="targets: expected at least one"):
        check([])


@pytest.mark.parametrize("starts", [0.5, "0.5", None, (), (0.0,), ("a",), [None]])
def test_start_coverages(starts):
    with pytest.raises(ParameterError, match="start_coverages: expected"):
        Procedure(start_coverages=starts)
