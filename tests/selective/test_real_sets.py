"""Areas and coverages of real maps, through the library, to the digits of an independent computation."""

import pytest

from segtrust.selective import risk_coverage_curve
from tests.confidence.test_paper import ESTIMATORS, POLYP_ID, POLYP_OOD, REAL, RealSet, pairs_of

ORACLES = {"polyp in": 0.026722, "polyp out": 0.064422, "BCE_plain": 0.180871, "dice_plain": 0.143090}


def polyps(folder, sets):
    return RealSet(pair for each in sets for pair in pairs_of(folder / each, "predictions"))


def check(real, name):
    n, areas, risk, *_ = REAL[name]
    curves = {each: risk_coverage_curve(real.confidence[each], real.errors) for each in ESTIMATORS}
    assert real.errors.size == n
    assert tuple(round(curves[each].aurc, 6) for each in ESTIMATORS) == areas
    assert round(curves["sdc"].oracle.aurc, 6) == ORACLES[name]
    assert round(curves["sdc"].random_area(), 6) == risk
    return curves["sdc"]


@pytest.mark.needs("data:polyp", "PIL")
def test_polyps(data):
    inside = check(polyps(data("polyp"), POLYP_ID), "polyp in")
    outside = check(polyps(data("polyp"), POLYP_OOD), "polyp out")
    assert round(outside.coverage_at_risk(inside.full_risk), 4) == 0.6085
    assert round(outside.oracle.coverage_at_risk(inside.full_risk), 4) == 0.75


@pytest.mark.needs("data:busi-predictions", "PIL")
@pytest.mark.parametrize("name", ["BCE_plain", "dice_plain"])
def test_breast_ultrasound(name, data):
    check(RealSet(pairs_of(data("busi-predictions"), name)), name)
