"""Sample sizes: more cases for harder guarantees, and enough of them."""

import numpy as np
import pytest
from scipy.stats import binom

from segtrust.errors import ParameterError
from segtrust.selective import CalibrationCases, Procedure, Target, find_threshold, plan_calibration
from segtrust.selective.plan import Accepted, compute_need

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*more confident cases have:segtrust.errors.SegtrustWarning"  # random confidences, by chance
)


def test_harder_guarantees_need_more_cases():
    sizes = [plan_calibration(0.10, risk).cases for risk in (0.02, 0.04, 0.06, 0.08)]
    assert sizes == sorted(sizes)
    assert plan_calibration(0.10, 0.05, delta=0.01).cases > plan_calibration(0.10, 0.05).cases
    assert plan_calibration(0.10, 0.05, spread=0.2).cases > plan_calibration(0.10, 0.05, spread=0.02).cases


def test_losses_that_scatter_little_are_nearly_constant_and_coins_scatter_most():
    none, little, coins = (
        plan_calibration(0.10, 0.05, spread=each, marginal_risk=0.05).cases for each in (0.0, 0.03, 0.2179)
    )
    assert none <= little < 1.4 * none
    assert coins > 3 * none


CONCENTRATION = 0.05 * 0.95 / 0.05**2 - 1


def calibrated_share(n, references):
    """Share of whole calibrations that find a threshold, losses as planned at every confidence."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng([seed, n])
        loss = rng.beta(CONCENTRATION * 0.05, CONCENTRATION * 0.95, n)
        cases = CalibrationCases(rng.random(n), loss, reference=rng.random(references))
        found.append(find_threshold(cases, [Target(0.10)], 0.05, Procedure(step=0.4)).threshold is not None)
    return np.mean(found)


def test_the_number_does_what_it_says():
    found = plan_calibration(0.10, 0.05, spread=0.05, power=0.8, marginal_risk=0.05)
    assert 0.72 < calibrated_share(found.cases, 300) < 0.88


def rising_share(n, reference, target, draw):
    """Share of whole calibrations that find a threshold, if the loss rises as the confidence falls."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng([seed, n])
        position = rng.random(n)
        cases = CalibrationCases(
            -position, draw(rng, position), reference=-rng.random(300) if reference else None
        )
        found.append(find_threshold(cases, [target], 0.05, Procedure(step=0.4)).threshold is not None)
    return np.mean(found)


@pytest.mark.parametrize("reference", [False, True])
def test_the_number_is_enough_where_the_risk_rises_below_the_start(reference):
    """The loss at the start is 2.5 times the mean loss of the most confident half, which is 0.05."""

    def draw(rng, position):
        return np.minimum(1.0, 0.125 * (2.0 * position) ** 1.5 * rng.gamma(1.0, 1.0, position.size))

    found = plan_calibration(0.10, 0.05, spread=0.073)  # gamma-distributed losses of different means
    n = found.cases if reference else found.without_reference
    assert rising_share(n, reference, Target(0.10), draw) > 0.85


def test_the_number_is_enough_where_failures_become_frequent_below_the_start():
    """The failure rate at the start is 5 times that of the most confident half, which is 0.02."""

    def draw(rng, position):
        return (rng.random(position.size) < 0.1 * (2.0 * position) ** 4) * 1.0

    target = Target(0.10, below_dice=0.8)
    n = plan_calibration(target, 0.02).without_reference
    assert rising_share(n, False, target, draw) > 0.85


def test_without_reference_cases_about_as_many_are_needed():
    found = plan_calibration(0.10, 0.05)
    assert found.without_reference == pytest.approx(found.cases, rel=0.2)
    assert f"About {found.without_reference} new labelled cases would give" in str(found)
    aside = plan_calibration(0.10, 0.05, procedure=Procedure(search="candidates"))
    assert aside.without_reference > aside.cases / 0.8


def test_failure_rates_without_a_failure_are_the_rule_of_three():
    """59 successes show a failure rate below 5 % at level 0.05, and half of the cases are accepted."""
    procedure = Procedure(p_value="binomial")
    found = plan_calibration(Target(0.05, below_dice=0.8), 0.0, procedure=procedure)
    smallest = next(n for n in range(1, 100) if binom.cdf(0, n, 0.05) <= 0.05)
    assert smallest == 59
    expected = next(n for n in range(1, 400) if binom.sf(smallest - 1, n, 0.5) >= 0.9)
    assert found.cases == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("unit", "suited", "other"),
    [("cases", "binomial", "betting"), ("patients", "adaptive-betting", "binomial")],
)
def test_the_suited_p_value_is_that_of_the_unit(unit, suited, other):
    """Failures of single cases are counted; of patients, who may have several cases, they are shares."""
    targets, losses = [Target(0.3, below_dice=0.8)], np.repeat([1.0, 0.0], [1, 9])
    accepted = Accepted.like([losses], (0.1,), 0.5, unit)
    names = ("suited", suited, other)
    found, same, another = (compute_need(targets, accepted, Procedure(name), 0.05).cases for name in names)
    assert found == same != another


def test_a_limit_of_one_needs_nothing():
    assert plan_calibration(1.0, 0.5).cases == 0


def test_new_cases_are_drawn_alike_from_those_seen_and_keep_together():
    losses = np.arange(4) / 4
    accepted = Accepted.like([losses, 1.0 - losses], (0.4, 0.6), 0.5, "cases")
    first, second = accepted.draw(np.random.default_rng(0), 8000, 0.5)
    assert np.unique(first, return_counts=True)[1] / 8000 == pytest.approx(np.full(4, 0.25), abs=0.03)
    np.testing.assert_array_equal(first + second, 1.0)
    assert accepted.observed == 4


def test_a_limit_of_one_beside_another_does_not_stand_in_the_way():
    """All that is accepted fails the one, which allows it; the other decides."""
    losses = np.zeros(50)
    accepted = Accepted.like([losses, losses + 1.0], (0.0, 1.0), 0.5, "cases")
    found = compute_need([Target(0.2), Target(1.0, below_dice=0.9)], accepted, Procedure(), 0.05)
    assert 10 < found.cases < 100
    assert f"% chance of success ({found.cases} with 300 unlabelled reference cases)" in str(found)


def test_a_limit_of_zero_cannot_be_shown():
    assert "No number of cases can prove a risk of 0." in str(plan_calibration(0.0, 0.0))


@pytest.mark.parametrize("risk", [5e-324, 1e-200])
def test_hardly_any_risk(risk):
    assert plan_calibration(0.1, risk).cases < 200


def test_starts_share_the_level():
    two = Procedure(start_coverages=(0.3, 0.5))
    assert plan_calibration(0.10, 0.05, procedure=two).cases >= plan_calibration(0.10, 0.05).cases


@pytest.mark.parametrize("risk", [0.10, 0.2, 1.0])
def test_no_number_would_do(risk):
    found = plan_calibration(0.10, risk)
    assert found.cases is None
    assert "No number of cases is enough: the risk at the start, which accepts 50 % of the cases" in str(
        found
    )


def test_too_many_would_be_needed():
    found = plan_calibration(0.10, 0.0999, spread=0.29)
    assert found.cases is None
    assert "More than 131072 cases" in str(found)


@pytest.mark.parametrize("spread", [-0.1, 0.3, np.nan])
def test_spreads_that_no_losses_have(spread):
    with pytest.raises(ParameterError, match="spread: "):
        plan_calibration(0.10, 0.05, spread=spread)


def test_constant_losses():
    assert plan_calibration(0.10, 0.05, spread=0.0).cases < plan_calibration(0.10, 0.05, spread=0.1).cases


def test_several_targets_need_at_least_as_many_cases_as_each():
    both = [Target(0.10), Target(0.05, below_dice=0.8)]
    alone = [plan_calibration(target, risk).cases for target, risk in zip(both, (0.05, 0.01), strict=True)]
    together = plan_calibration(both, [0.05, 0.01])
    assert together.cases >= 0.9 * max(alone)
    assert plan_calibration([Target(0.10)], [0.05]) == plan_calibration(0.10, 0.05)


@pytest.mark.parametrize("expected", [0.05, [0.05], [0.05, 0.01, 0.01]])
def test_one_expected_risk_per_target(expected):
    with pytest.raises(ParameterError, match="expected_risk: expected 2 numbers, one per target, got"):
        plan_calibration([Target(0.1), Target(0.05, below_dice=0.8)], expected)
