"""The statistics that estimators need, and their summary."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.confidence import Needs, summarise
from segtrust.errors import ParameterError
from segtrust.kernels import Agreement, open_map


def test_needs_do_not_change():
    assert {Needs(counts=True), Needs(counts=True), Needs()} == {Needs(), Needs(counts=True)}
    with pytest.raises(FrozenInstanceError):
        Needs().counts = True


def test_members_are_compared_from_two_on():
    source = open_map(np.full(3, 0.5))
    for two_or_more in (Agreement(((4, 3), (3, 5))), Agreement(((1, 1, 1),) * 3)):
        assert summarise(source, [], two_or_more).agreement is two_or_more
    with pytest.raises(ParameterError, match="members: expected at least two maps to compare, got one"):
        _ = summarise(source, [], Agreement(((4,),))).agreement
