"""Audits: bounds that are valid at any time, checked against enumeration and a slow, obvious version."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as some

import segtrust as st
from segtrust.errors import CaseValueError, ParameterError, SavedStateError
from segtrust.selective.audit import _LOWER_STAKES, _UPPER_STAKES

FAILURES = st.Target(0.10, below_dice=0.8)
LOSSES = some.lists(some.floats(0, 1), max_size=25)


def capital(losses, mean, stakes, population=None):
    """The mean capital of the gamblers, by its definition."""
    total = 0.0
    for share in stakes:
        money, seen = 1.0, 0.0
        for n, loss in enumerate(losses):
            expected = mean if population is None else (population * mean - seen) / (population - n)
            if expected >= 1.0:
                return math.inf
            expected = max(expected, 0.0)
            money *= 1.0 + share / (1.0 - expected) * (expected - loss)
            seen += loss
        total += money
    return total / len(stakes)


def slow_upper(losses, delta, grid, population=None):
    """The smallest candidate that was ever ruled out."""
    for mean in grid:
        for n in range(1, len(losses) + 1):
            is_impossible = population is not None and (
                population * mean > sum(losses[:n]) + population - n + 1e-9
            )
            if is_impossible or capital(losses[:n], mean, _UPPER_STAKES, population) >= 1.0 / delta:
                return mean
    return 1.0


@pytest.mark.parametrize("stakes", [_UPPER_STAKES, _LOWER_STAKES])
@pytest.mark.parametrize("mean", [0.02, 0.1, 0.5, 0.9])
def test_the_game_is_fair_at_the_candidate_and_unfavourable_above_it(stakes, mean):
    """Enumerates all streams of failures: the expected capital is 1, or less if failures are more likely."""
    for rate in (mean, (1 + mean) / 2, 1.0):
        for n in (1, 2, 5, 8):
            expected = sum(
                math.prod(rate if loss else 1 - rate for loss in losses) * capital(losses, mean, stakes)
                for losses in itertools.product((0.0, 1.0), repeat=n)
            )
            assert expected == pytest.approx(1.0) if rate == mean else expected < 1.0


@pytest.mark.parametrize(("rate", "delta"), [(0.5, 0.3), (0.8, 0.4), (0.3, 0.4), (0.6, 0.2)])
def test_error_probabilities_by_enumeration(rate, delta):
    """All streams of 7 failures or successes, weighted by their probability."""
    below = above = 0.0
    for losses in itertools.product((0, 1), repeat=7):
        audit = st.AuditBound(rate, delta=delta, alpha=delta)
        state = audit.extend(losses)
        probability = rate ** sum(losses) * (1 - rate) ** (7 - sum(losses))
        below += probability * (state.upper < rate)
        above += probability * state.alarm
        if not sum(losses):
            assert state.upper < 0.5
    assert below <= delta
    assert above <= delta
    assert max(below, above) > 0.0


def test_error_probabilities_without_replacement_by_enumeration():
    """All orders in which 3 failures can lie among 9 cases; the target is the mean of the batch."""
    below = above = orders = 0
    for failures in itertools.combinations(range(9), 3):
        losses = np.isin(np.arange(9), failures) * 1.0
        audit = st.AuditBound(1 / 3, delta=0.4, alpha=0.4, population=9)
        audit.extend(losses[:8])
        below += audit.upper < 1 / 3 - 1e-9
        above += audit.alarm
        audit.update(losses[8])
        assert (audit.lower, audit.upper) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
        assert audit.confirmed
        orders += 1
    assert 0 < below <= 0.4 * orders
    assert 0 < above <= 0.4 * orders


@pytest.mark.parametrize("population", [None, 12])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_the_definition(seed, population):
    rng = np.random.default_rng(seed)
    losses = [rng.beta(1, 9, 10), (rng.random(10) < 0.3) * 1.0, rng.random(10)][seed].tolist()
    audit = st.AuditBound(delta=0.2, alpha=0.2, population=population)
    audit.extend(losses)
    grid = np.arange(1, 2000) * 0.0005
    near = grid[(grid > audit.upper - 0.02) & (grid <= audit.upper + 0.001)]
    assert audit.upper == pytest.approx(slow_upper(losses, 0.2, near, population))
    ruled_out = [
        any(
            capital([1 - loss for loss in losses[:n]], 1 - mean, _LOWER_STAKES, population) >= 5.0
            or (population is not None and sum(losses[:n]) > population * mean + 1e-9)
            for n in range(1, 11)
        )
        for mean in grid[:1200:7]
    ]
    expected = grid[:1200:7] <= audit.lower
    assert np.array_equal(ruled_out, expected)


@given(LOSSES, some.one_of(some.none(), some.floats(0, 1)))
@example([0.0, 1.0, 1.0], 5e-324)
@example([1.0, 0.0, 0.0], 1.0 - 2.0**-53)
@settings(deadline=None, max_examples=40)
def test_bounds_move_only_inwards(losses, target):
    audit = st.AuditBound(target)
    audit.extend(losses)
    states = [st.AuditBound(target).state, *audit.history]
    for before, after in itertools.pairwise(states):
        assert 0.0 <= before.lower <= after.lower <= 1.0
        assert 0.0 <= after.upper <= before.upper <= 1.0
        assert after.alarm >= before.alarm
    if target is not None:
        assert audit.confirmed == (audit.upper <= target + 1e-9)
        assert audit.state.alarmed_at == next((state.n for state in states if state.alarm), None)


@given(some.lists(some.booleans(), max_size=25), some.randoms())
@settings(deadline=None, max_examples=25)
def test_only_the_number_of_failures_matters_for_the_capital(failures, random):
    shuffled = random.sample(failures, len(failures))
    first, second = (capital(np.multiply(each, 1.0), 0.1, _UPPER_STAKES) for each in (failures, shuffled))
    assert first == pytest.approx(second, rel=1e-9)


@given(LOSSES, some.sampled_from([None, 0.1, st.Target(0.2, below_dice=0.7), st.Target(0.3, loss="iou")]))
@settings(deadline=None, max_examples=25)
def test_a_saved_audit_continues_where_it_was(losses, target):
    audit = st.AuditBound(target, delta=0.1, alpha=0.02, population=60)
    audit.extend(losses)
    again = st.AuditBound.from_dict(audit.to_dict())
    assert again.to_dict() == audit.to_dict()
    assert again.history == audit.history
    assert again.update(0.4) == audit.update(0.4)


def test_losses_dice_and_verdicts_are_the_same_audit():
    dice = np.array([0.9, 0.8, 0.79, 0.2, 0.95] * 6)
    audits = [st.AuditBound(FAILURES) for _ in range(4)]
    audits[0].extend(dice=dice)
    audits[1].extend(1 - dice)
    audits[2].extend(dice < 0.8 - 1e-9)
    for value in dice:
        audits[3].update(dice=value)
    assert len({audit.state for audit in audits}) == 1
    assert audits[0].state.mean == pytest.approx(0.4)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.5, math.inf])
def test_a_bad_loss_changes_nothing(bad):
    audit = st.AuditBound(0.1)
    audit.extend([0.0, 0.2])
    before = audit.to_dict()
    for arguments in ({"losses": [0.1, bad]}, {"dice": [bad, 0.5]}):
        with pytest.raises(CaseValueError, match="case"):
            audit.extend(**arguments)
    with pytest.raises(CaseValueError):
        audit.update(bad)
    assert audit.to_dict() == before


def test_arguments_are_checked():
    audit = st.AuditBound(0.1, population=2)
    with pytest.raises(ParameterError, match="exactly one of them"):
        audit.update(0.1, dice=0.9)
    with pytest.raises(ParameterError, match="exactly one of them"):
        audit.extend()
    with pytest.raises(ParameterError, match="at most 2 audited cases, got 3"):
        audit.extend([0, 0, 0])
    assert audit.extend([]).n == 0
    for arguments in ({"delta": 0.0}, {"alpha": 1.0}, {"population": 0}, {"target": 1.1}):
        with pytest.raises(ParameterError):
            st.AuditBound(**arguments)
    with pytest.raises(SavedStateError, match="here: 'losses' is missing"):
        st.AuditBound.from_dict(
            {key: value for key, value in audit.to_dict().items() if key != "losses"}, source="here"
        )


def test_targets_of_0_and_1():
    never, always = st.AuditBound(0.0), st.AuditBound(1.0)
    assert always.confirmed
    assert not never.extend([0.0] * 30).alarm
    assert never.update(0.01).alarmed_at == 31
    assert not always.extend([1.0] * 30).alarm
    assert always.confirmed
    assert not never.confirmed


def test_the_result_in_words():
    audit = st.AuditBound(FAILURES)
    assert audit.explain() == "No accepted case has been audited yet."
    audit.extend([0] * 10)
    assert audit.explain() == (
        f"Audit of 10 accepted cases: failure rate at most {100 * audit.upper:.4g} % (95 % confidence). "
        "The guarantee (at most 10 %) is neither confirmed nor contradicted yet."
    )
    audit.extend([0] * 30)
    assert audit.explain().endswith("The guarantee (at most 10 %) is confirmed.")
    audit.extend([1] * 20)
    assert audit.explain().endswith("The guarantee (at most 10 %) is broken.")
    assert f"failure rate at least {100 * audit.lower:.4g} %" in audit.explain()
    without = st.AuditBound()
    without.update(1)
    assert without.explain() == "Audit of 1 accepted case: failure rate at most 100 % (95 % confidence)."
    without.update(0.5)
    assert without.explain().startswith("Audit of 2 accepted cases: mean loss at most 0.")
    named = st.AuditBound(st.Target(0.1, loss="hamming"), delta=0.1)
    named.update(0.0)
    assert "mean loss (Hamming loss) at most" in named.explain()
    assert "90 % confidence" in named.explain()


@pytest.mark.needs("pandas")
def test_rows_for_pandas():
    audit = st.AuditBound(FAILURES)
    assert list(audit.to_dataframe().columns) == [
        *("n", "mean", "lower", "upper", "confirmed", "alarm", "alarmed_at")
    ]
    audit.extend([0, 1, 0])
    assert audit.to_dataframe().upper.tolist() == [state.upper for state in audit.history]


def test_plan_is_what_audits_need():
    """Fresh audits of the planned length confirm, and alarm, about as often as planned."""
    plan = st.audit_plan(FAILURES, 0.02, broken_risk=0.3)
    rng = np.random.default_rng(1)
    confirmed = alarmed = 0
    for _ in range(60):
        good, bad = st.AuditBound(FAILURES), st.AuditBound(FAILURES)
        confirmed += good.extend((rng.random(plan.confirm) < 0.02) * 1.0).confirmed
        alarmed += bad.extend((rng.random(plan.detect) < 0.3) * 1.0).alarm
    assert 0.75 <= confirmed / 60 <= 1.0
    assert 0.75 <= alarmed / 60 <= 1.0
    assert str(plan) == (
        f"About {plan.confirm} audited cases give a 90 % chance of confirming the guarantee (at most 10 %) "
        f"if the failure rate is 2 %. About {plan.detect} audited cases give a 90 % chance of detecting "
        "that it is broken if the failure rate is 30 %."
    )
    assert "confirm=" in repr(plan)


def test_plans_of_easy_hard_and_impossible_audits(monkeypatch):
    easy, hard = st.audit_plan(0.2, 0.05), st.audit_plan(0.2, 0.15)
    assert easy.confirm < hard.confirm
    assert easy.broken_risk == 0.4
    assert st.audit_plan(0.2, 0.05, spread=0.2).confirm > easy.confirm
    none = st.audit_plan(0.8, 0.8)
    assert none.confirm is None
    assert none.broken_risk == pytest.approx(0.9)
    assert "No number of cases confirms the guarantee (at most 0.8)" in none.reason
    monkeypatch.setattr("segtrust.selective.audit._MOST_CASES", 256)
    far = st.audit_plan(0.5, 0.0, broken_risk=0.502)
    assert far.detect is None
    assert "More than 256 audited cases are needed" in far.reason
    for arguments in ((0.0, 0.0), (1e-300, 0.0), (1.0, 0.5), (0.1, 1.2)):
        with pytest.raises(ParameterError):
            st.audit_plan(*arguments)
    with pytest.raises(ParameterError, match=r"above the target, 0\.1, got 0\.05"):
        st.audit_plan(0.1, 0.02, broken_risk=0.05)


@given(some.sets(some.text(min_size=1), min_size=1, max_size=30), some.integers(0, 9), some.randoms())
def test_a_draw_does_not_depend_on_the_order_of_the_ids(ids, seed, random):
    ids = sorted(ids)
    drawn = st.draw_audit(ids, len(ids) // 2, seed=seed)
    assert drawn == st.draw_audit(random.sample(ids, len(ids)), len(ids) // 2, seed=seed)
    everything = st.draw_audit(ids, share=1.0, seed=seed)
    assert everything[: len(drawn)] == drawn
    assert sorted(everything) == ids
    some_ids = st.draw_audit(ids, share=0.4, seed=seed)
    assert everything[: len(some_ids)] == some_ids
    assert [name for name in some_ids if name != ids[0]] == (
        st.draw_audit(ids[1:], share=0.4, seed=seed) if len(ids) > 1 else []
    )


def test_each_case_is_drawn_equally_often():
    counts = np.zeros(20)
    for seed in range(2000):
        counts[st.draw_audit(range(20), 5, seed=seed)] += 1
    assert abs(counts - 500).max() < 5 * math.sqrt(2000 * 0.25 * 0.75)
    assert st.draw_audit([7, 8.0, "b"], 3, seed="x") == st.draw_audit(["b", 7, 8.0], 3, seed="x")


def test_draws_are_checked():
    for arguments in ({}, {"n": 1, "share": 0.5}, {"n": 4}, {"share": 1.5}):
        with pytest.raises(ParameterError):
            st.draw_audit(["a", "b"], seed=0, **arguments)
    with pytest.raises(CaseValueError, match="different id"):
        st.draw_audit(["a", "a"], 1, seed=0)
    with pytest.raises(ParameterError, match="seed"):
        st.draw_audit(["a"], 1, seed=0.5)
