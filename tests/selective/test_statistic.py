"""Statistics by name and by target."""

import pytest

from segtrust.errors import ParameterError, UnknownNameError
from segtrust.selective.statistic import STATISTICS, coverage_at_risk, get_statistic


def test_by_name_and_as_they_are():
    assert get_statistic("aurc") is STATISTICS["aurc"]
    assert get_statistic(coverage_at_risk(0.1)) == coverage_at_risk(0.1)
    assert coverage_at_risk(0.1).target == 0.1


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"aurc, augrc, e_aurc, or coverage_at_risk\(target\)"):
        get_statistic("auroc")


@pytest.mark.parametrize("target", [-0.1, float("nan"), "0.1", None, True])
def test_refused_targets(target):
    with pytest.raises(ParameterError, match="target"):
        coverage_at_risk(target)
