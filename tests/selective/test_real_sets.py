"""Areas and coverages of real maps, through the library, to the digits of an independent computation."""

import pytest

from segtrust.selective import (
    Bootstrap,
    bootstrap_interval,
    compare_estimators,
    coverage_at_risk,
    risk_coverage_curve,
)
from tests.confidence.test_paper import ESTIMATORS, POLYP_ID, POLYP_OOD, REAL, RealSet, pairs_of

# Some estimators do rank a real set the wrong way round, and one of the real maps has no value above 1.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:loss. more confident cases"),
    pytest.mark.filterwarnings("ignore:p. the largest value of this uint8 map is 1"),
]

ORACLES = {"polyp in": 0.026722, "polyp out": 0.064422, "BCE_plain": 0.180871, "dice_plain": 0.143090}

# Ends of the intervals of SDC and PLA, and of their difference with its p-value: docs/results/selective.md.
INTERVALS = {
    "polyp in": ((0.0299, 0.0433), (0.0456, 0.0658), (-0.0267, -0.0115, 0.0001)),
    "polyp out": ((0.0722, 0.0857), (0.0968, 0.1131), (-0.0302, -0.0210, 0.0001)),
    "BCE_plain": ((0.2027, 0.2847), (0.3079, 0.4948), (-0.2323, -0.0653, 0.0003)),
    "dice_plain": ((0.1457, 0.2120), (0.2093, 0.4027), (-0.1942, -0.0255, 0.0028)),
}


def check_intervals(real, name):
    pair = real.confidence["sdc"], real.confidence["pla"]
    found = [bootstrap_interval(confidence, real.errors) for confidence in pair]
    difference = compare_estimators(*pair, real.errors)
    ends = (*((each.low, each.high) for each in found), (difference.low, difference.high, difference.p_value))
    assert [pytest.approx(each, abs=1e-4) for each in ends] == list(INTERVALS[name])


def polyps(folder, sets):
    return RealSet(pair for each in sets for pair in pairs_of(folder / each, "predictions"))


def check(real, name):
    n, areas, risk, *_ = REAL[name]
    curves = {each: risk_coverage_curve(real.confidence[each], real.errors) for each in ESTIMATORS}
    assert real.errors.size == n
    assert tuple(round(curves[each].aurc, 6) for each in ESTIMATORS) == areas
    assert round(curves["sdc"].oracle.aurc, 6) == ORACLES[name]
    assert round(curves["sdc"].random_area(), 6) == risk
    check_intervals(real, name)
    return curves["sdc"]


@pytest.mark.needs("data:polyp", "PIL")
def test_polyps(data):
    inside = check(polyps(data("polyp"), POLYP_ID), "polyp in")
    real = polyps(data("polyp"), POLYP_OOD)
    outside = check(real, "polyp out")
    risk = inside.full_risk
    assert round(outside.coverage_at_risk(risk), 4) == 0.6085
    assert round(outside.oracle.coverage_at_risk(risk), 4) == 0.75
    plan = Bootstrap(method="percentile")
    found = bootstrap_interval(real.confidence["sdc"], real.errors, coverage_at_risk(risk), bootstrap=plan)
    assert (round(found.low, 3), round(found.high, 3)) == (0.531, 0.687)


@pytest.mark.needs("data:busi-predictions", "PIL")
@pytest.mark.parametrize("name", ["BCE_plain", "dice_plain"])
def test_breast_ultrasound(name, data):
    check(RealSet(pairs_of(data("busi-predictions"), name)), name)
