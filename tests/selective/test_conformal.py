"""Conformal bounds: exact ranks, coverage by simulation and on real maps, files, and invalid input."""

import json
import math
import secrets
import warnings
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from itertools import count, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from segtrust.errors import (
    CaseLengthError,
    CaseValueError,
    NotFittedError,
    ParameterError,
    SavedStateError,
    SeenCasesError,
    SegtrustWarning,
    TooFewCasesError,
)
from segtrust.selective import ConformalDice, HashedIds
from tests.selective.polyps import INSIDE, OUTSIDE, vectors


def draw(rng, n, *, levels=None):
    """Errors that grow as confidence falls, as they do; with ``levels`` both vectors are coarse."""
    confidence = rng.beta(6, 2, n)
    dice = np.clip(confidence + rng.normal(0, 0.02 + 0.3 * (1 - confidence)), 0, 1)
    if levels:
        confidence, dice = (np.round(each * levels) / levels for each in (confidence, dice))
    return confidence, dice


def within(lower, upper, dice):
    return (lower <= dice) & (dice <= upper)


def test_ranks_are_exact():
    """With the confidence itself as prediction the bound is the 9th of 9 errors at 90 %, the 18th of 19."""
    for n, rank in ((9, 9), (10, 10), (18, 18), (19, 18), (99, 90)):
        dice = np.arange(n) / 200
        for scale, width in (("none", 1.0), ("confidence", 0.52)):
            bounds = ConformalDice(0.9, predictor="identity", scale=scale).fit(np.full(n, 0.5), dice)
            assert bounds.cells[0].below == np.sort((0.5 - dice) / width)[rank - 1]
            assert bounds.cells[0].n == n


def test_a_margin_cannot_be_changed():
    bounds = ConformalDice(predictor="identity").fit(np.full(20, 0.5), np.arange(20) / 20)
    with pytest.raises(FrozenInstanceError):
        bounds.cells[0].below = 0.0


@pytest.mark.parametrize(("level", "needed"), [(0.9, 9), (0.95, 19), (0.55, 2), (0.5, 1), (0.99, 99)])
def test_fewest_cases(level, needed):
    plain = ConformalDice(level=level, predictor="identity")
    assert plain.cases_needed(two_sided=False) == needed
    for n in (needed - 1, needed):
        if n >= 2:
            fitted = plain.fit(np.full(n, 0.5), np.full(n, 0.4))
            assert (fitted.cells[0].below is None) == (n < needed)


def test_needed_cases_include_those_that_learn():
    bounds = ConformalDice(level=0.9, predictor="isotonic")
    needed = bounds.cases_needed(two_sided=False)
    confidence, dice = draw(np.random.default_rng(0), needed)
    assert not bounds.fit(confidence, dice).lower_bound([0.5]).trivial[0]
    assert bounds.fit(confidence[1:], dice[1:]).lower_bound([0.5]).trivial[0]


@pytest.mark.parametrize("levels", [None, 10])
@pytest.mark.parametrize(
    ("predictor", "scale"),
    [("corrected", "confidence"), ("corrected", "spread"), ("isotonic", "none"), ("isotonic", "confidence")],
)
def test_coverage_by_simulation(predictor, scale, levels):
    """Each decision reaches the level on average over draws, within three standard errors."""
    rng, level = np.random.default_rng(0), 0.8
    hits = {"accepted": [], "deferred": []}
    for seed in range(300):
        bounds = ConformalDice(level, threshold=0.75, predictor=predictor, seed=seed, scale=scale)
        known, known_dice = draw(rng, 60, levels=levels)
        confidence, dice = draw(rng, 200, levels=levels)
        spread, new = (
            {"spread": (1 - each) ** 2} if scale == "spread" else {} for each in (known, confidence)
        )
        bounds = bounds.fit(known, known_dice, **spread)
        lower, pair = bounds.lower_bound(confidence, **new), bounds.interval(confidence, **new)
        both = np.stack([dice >= lower.lower, within(pair.lower, pair.upper, dice)])
        for decision, chosen in (("accepted", confidence >= 0.75), ("deferred", confidence < 0.75)):
            hits[decision].append(both[:, chosen].mean(1))
    for each in hits.values():
        error = np.std(each, axis=0) / math.sqrt(len(each))
        assert (np.mean(each, axis=0) >= level - 3 * error).all()
        if levels is None:
            assert (np.mean(each, axis=0) <= level + 2 / 15).all(), "wider than they need be"


def test_groups_have_their_own_bounds():
    rng = np.random.default_rng(0)
    confidence, group = rng.random(400), np.where(rng.random(400) < 0.5, "a", "b")
    dice = np.clip(confidence + rng.normal(0, np.where(group == "a", 0.01, 0.2)), 0, 1)
    bounds = ConformalDice(level=0.8).fit(confidence, dice, groups=group)
    pair = bounds.interval([0.5, 0.5], ["a", "b"])
    assert pair.upper[0] - pair.lower[0] < 0.5 * (pair.upper[1] - pair.lower[1])
    assert bounds.interval([0.5], "a").lower[0] == pair.lower[0]
    with pytest.raises(ParameterError, match="group: expected the group of each case"):
        bounds.interval([0.5])
    with pytest.raises(CaseLengthError, match="groups: expected 2 values"):
        bounds.interval([0.5, 0.5], ["a", "b", "a"])


def test_an_unknown_or_small_group_gets_all_there_is():
    confidence, dice = draw(np.random.default_rng(0), 100)
    groups = ["small"] * 5 + ["large"] * 95
    bounds = ConformalDice().fit(confidence, dice, groups=groups)
    pair = bounds.interval([0.9, 0.9, 0.9], ["small", "new", "large"])
    assert pair.trivial.tolist() == [True, True, False]
    assert (pair.lower[:2], pair.upper[:2]) == (pytest.approx([0, 0]), pytest.approx([1, 1]))
    assert pair.n.tolist() == [5, 0, 95]
    assert pair.cases_needed == 19
    pair = ConformalDice(predictor="isotonic").fit(confidence, dice, groups=groups).interval([0.9], ["large"])
    assert (pair.n.tolist(), pair.cases_needed) == ([48], 37)


def test_bounds_stay_in_the_unit_interval():
    rng = np.random.default_rng(0)
    bounds = ConformalDice(level=0.5, predictor="identity", scale="none")
    bounds = bounds.fit(rng.normal(0, 3, 50), rng.random(50))
    pair = bounds.interval([-9, 0.5, 9])
    assert ((pair.lower >= 0) & (pair.upper <= 1) & (pair.lower <= pair.upper)).all()
    assert bounds.lower_bound([-9, 9]).upper.tolist() == [1, 1]


@pytest.mark.parametrize("confidence", [0.0, 0.1, 0.3, 0.5, 0.7, 0.97, 1.0])
@pytest.mark.parametrize("dice", [0.0, 0.1, 0.3, 0.7, 0.9, 1.0])
def test_cases_that_are_all_alike_are_inside(confidence, dice):
    """A scaled margin that is rounded must not leave out the very case that it was found from."""
    fitted = ConformalDice().fit([confidence] * 60, [dice] * 60)
    pair = fitted.interval([confidence])
    assert pair.lower[0] <= dice <= pair.upper[0]
    assert pair.upper[0] - pair.lower[0] < 1e-9
    assert fitted.lower_bound([confidence]).lower[0] <= dice


def test_all_tied():
    pair = ConformalDice(predictor="isotonic", scale="none").fit([0.5] * 60, [0.7] * 60).interval([0.5, 0.1])
    assert pair.lower == pytest.approx([0.7, 0.7])
    assert pair.upper == pytest.approx([0.7, 0.7])


def test_survives_json():
    confidence, dice = draw(np.random.default_rng(0), 120)
    groups = ["a", "b"] * 60
    bounds = ConformalDice(0.8, threshold=0.7).fit(confidence, dice, groups=groups, ids=range(120))
    again = ConformalDice.from_dict(json.loads(json.dumps(bounds.to_dict())))
    assert again == bounds
    assert (again.interval(confidence, groups).lower == bounds.interval(confidence, groups).lower).all()
    spread = 1 - confidence
    for other in (ConformalDice(predictor="identity"), ConformalDice(predictor="isotonic", scale="none")):
        for fitted in (other, other.fit(confidence, dice), other.fit(confidence, dice, spread=spread)):
            assert ConformalDice.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted


def test_used_cases_are_rejected():
    confidence, dice = draw(np.random.default_rng(0), 40)
    with pytest.raises(SeenCasesError, match="'7'"):
        ConformalDice().fit(confidence, dice, ids=range(40), used_ids=[7])
    bounds = ConformalDice().fit(confidence, dice, ids=range(40), used_ids=[99])
    assert len(bounds.used_ids) == 40
    with pytest.raises(SeenCasesError):
        bounds.interval([0.5], ids=["39"])
    assert bounds.interval([0.5], ids=["40"]).lower.size == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": ...}, "bounds: 'level' is missing"),
        ({"more": 1}, "bounds: 'more' is unknown"),
        ({"level": 2}, r"bounds: level: expected a number in \(0, 1\)"),
        ({"threshold": "0.5"}, "bounds: threshold: expected a finite number"),
        ({"recalibration": {}}, "bounds: 'confidence' is missing"),
        ({"recalibration": {"confidence": [0, 1], "dice": [0, 2]}}, r"expected Dice in \[0, 1\]"),
        ({"recalibration": {"confidence": ["a"], "dice": [0]}}, "confidence: expected numbers"),
        ({"cells": [{}]}, "bounds: 'decision' is missing"),
        ({"cells": 3}, "bounds: .*not iterable"),
        ({"scale": "other"}, "bounds: scale: expected one of"),
        ({"correction": "0.1"}, "bounds: correction: expected a finite number"),
        ({"used_ids": 3}, "bounds: ids: expected one per case"),
        ({"used_ids": {"salt": "x"}}, "'hashes' is missing"),
    ],
)
def test_what_was_saved_is_checked(change, words):
    confidence, dice = draw(np.random.default_rng(0), 40)
    saved = {**ConformalDice(predictor="isotonic").fit(confidence, dice).to_dict(), **change}
    saved = {name: value for name, value in saved.items() if value is not ...}
    with pytest.raises(SavedStateError, match=words):
        ConformalDice.from_dict(saved, source="bounds")


@pytest.mark.parametrize("saved", [{}, None, [], 3])
def test_what_is_nothing(saved):
    with pytest.raises(SavedStateError, match="intervals: "):
        ConformalDice.from_dict(saved)


def test_hashed_ids_survive_json():
    confidence, dice = draw(np.random.default_rng(0), 40)
    bounds = replace(ConformalDice().fit(confidence, dice), used_ids=HashedIds.of(["a"], "salt"))
    again = ConformalDice.from_dict(json.loads(json.dumps(bounds.to_dict())))
    assert again == bounds
    with pytest.raises(SeenCasesError):
        again.interval([0.5], ids=["a"])


def test_ids_are_checked_before_a_case_is_named():
    for confidence, dice in (([0.4, np.nan, 0.6], [0.5] * 3), ([0.4, 0.5, 0.6], [0.5, 0.5, np.nan])):
        with pytest.raises(CaseLengthError, match="ids: expected 3 values"):
            ConformalDice().fit(confidence, dice, ids=["a"])


def test_invalid_arguments():
    with pytest.raises(NotFittedError, match="fit"):
        ConformalDice().interval([0.5])
    with pytest.raises(TooFewCasesError, match="at least 2"):
        ConformalDice().fit([0.5], [0.5])
    with pytest.raises(TooFewCasesError, match="no cell has enough cases"):
        ConformalDice(threshold=0.5, predictor="isotonic").fit([0.4, 0.6], [0.5, 0.5])
    with pytest.raises(CaseValueError, match=r"dice: .*'b'"):
        ConformalDice().fit([0.4, 0.6], [0.5, np.nan], ids=["a", "b"])
    bad = ({"level": 1.0}, {"train_share": 0}, {"predictor": "forest"}, {"threshold": np.nan}, {"seed": -1})
    for options in (*bad, {"scale": "other"}, {"correction": math.inf}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            ConformalDice(**options)


@pytest.mark.parametrize("n", [43, 57])
def test_the_level_holds_where_ties_come_sorted_by_dice(n, monkeypatch):
    """With one split for all such tables it was 77 and 79 %."""
    rng = np.random.default_rng(n)
    monkeypatch.setattr(secrets, "randbits", lambda bits: int(rng.integers(1 << bits)))
    right = []
    for _ in range(1500):
        dice = np.sort(rng.random(n))
        bounds = ConformalDice(level=0.9, predictor="isotonic").fit(np.full(n, 0.9), dice)
        right.append(rng.random() >= bounds.lower_bound([0.9]).lower[0])
    assert np.mean(right) > 0.88


@pytest.mark.needs("data:polyp", "PIL")
def test_on_polyps_the_marginal_bound_fails_the_deferred(data):
    """Out of distribution, 300 cases to learn from and 300 to check, 100 draws, a quarter deferred."""
    confidence, dice, _ = vectors(data("polyp"), OUTSIDE)
    marginal, by_decision = [], []
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(confidence.size)
        threshold = np.quantile(confidence[order[:36]], 0.25)
        learn, check = order[36:336], order[336:]
        accepted = confidence[check] >= threshold
        for found, limit in ((marginal, None), (by_decision, threshold)):
            bounds = ConformalDice(0.9, limit, "isotonic", seed=seed, scale="none")
            bounds = bounds.fit(confidence[learn], dice[learn])
            right = dice[check] >= bounds.lower_bound(confidence[check]).lower
            found.append((right.mean(), right[accepted].mean(), right[~accepted].mean()))
    assert np.mean(marginal, axis=0) == pytest.approx([0.90, 0.95, 0.76], abs=0.02)
    assert (np.mean(by_decision, axis=0) >= 0.895).all()
    assert (np.mean(by_decision, axis=0) <= 0.935).all()


@pytest.mark.needs("data:polyp", "PIL")
def test_on_polyps_the_scale_makes_intervals_narrower(data):
    """In distribution, half of the cases to learn from and half to check, 100 draws, 90 %."""
    confidence, dice, _ = vectors(data("polyp"), INSIDE)
    found = []
    for seed in range(100):
        learn, check = np.array_split(np.random.default_rng(seed).permutation(confidence.size), 2)
        for options in ({}, {"predictor": "isotonic", "scale": "none"}):
            bounds = ConformalDice(0.9, seed=seed, **options).fit(confidence[learn], dice[learn])
            pair = bounds.interval(confidence[check])
            found.append(
                (within(pair.lower, pair.upper, dice[check]).mean(), (pair.upper - pair.lower).mean())
            )
    (covered, width), (_, width_before) = np.mean(np.reshape(found, (100, 2, 2)), axis=0)
    assert covered >= 0.885
    assert width < 0.85 * width_before


def slow_interval(confidence, dice, scale, new, new_scale, level):
    """Rank the errors of the confidence one by one, as the definition says."""
    n, side = confidence.size, (1 + Fraction(str(level))) / 2
    rank = math.ceil((n + 1) * side)
    if rank > n:
        return 0.0, 1.0
    below = sorted((confidence[i] - dice[i]) / scale[i] for i in range(n))[rank - 1]
    above = sorted((dice[i] - confidence[i]) / scale[i] for i in range(n))[rank - 1]
    return min(max(new - below * new_scale, 0), 1), min(max(new + above * new_scale, 0), 1)


cases = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2)), min_size=2, max_size=50)


@given(cases, st.floats(0, 1), st.floats(0, 2), st.sampled_from([0.5, 0.8, 0.9]), st.booleans())
@settings(deadline=None)
def test_scaled_intervals_by_definition(known, new, new_spread, level, with_spread):
    confidence, dice, spread = np.array(known).T
    scale, new_scale = (spread, new_spread) if with_spread else (1 - confidence, 1 - new)
    slow = slow_interval(confidence, dice, scale + 0.02, new, new_scale + 0.02, level)
    given_spread, new_given = ({"spread": spread}, {"spread": [new_spread]}) if with_spread else ({}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SegtrustWarning)  # of reversed confidences
        fitted = ConformalDice(level, seed=0).fit(confidence, dice, **given_spread)
        same = ConformalDice(level, predictor="identity", seed=0).fit(confidence, dice, **given_spread)
    pair = fitted.interval([new], **new_given)
    assert (pair.lower[0], pair.upper[0]) == pytest.approx(slow, abs=1e-9)
    assert 0 <= pair.lower[0] <= pair.upper[0] <= 1
    assert 0 <= pair.predicted[0] <= 1
    assert fitted.predict([new], **new_given) == pair.predicted
    again = same.interval([new], **new_given)
    assert (again.lower, again.upper) == (pair.lower, pair.upper)
    assert again.predicted == new


def test_less_confident_cases_get_wider_intervals():
    confidence, dice = draw(np.random.default_rng(0), 300)
    pair = ConformalDice().fit(confidence, dice).interval([0.95, 0.85, 0.7])
    assert (np.diff(pair.upper - pair.lower) > 0).all()
    plain = ConformalDice(predictor="identity", scale="none").fit(confidence, dice).interval([0.3, 0.4])
    assert np.ptp(plain.upper - plain.lower) < 1e-12


def test_the_correction_removes_the_mean_error():
    """An overconfident model: the prediction is right on average, and inside its interval."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.8, 1.0, 400)
    dice = np.clip(1 - 3 * (1 - confidence) + rng.normal(0, 0.02, 400), 0, 1)
    fitted = ConformalDice(threshold=0.9).fit(confidence, dice)
    pair = fitted.interval(confidence)
    assert pair.predicted.mean() == pytest.approx(dice.mean(), abs=0.01)
    assert within(pair.lower, pair.upper, pair.predicted).mean() > 0.95
    assert ConformalDice(predictor="identity").fit(confidence, dice).predict([0.9]).tolist() == [0.9]


def test_a_spread_is_needed_where_it_was_learned_from():
    confidence, dice = draw(np.random.default_rng(0), 60)
    spread = np.linspace(0, 0.3, 60)
    fitted = ConformalDice().fit(confidence, dice, spread=spread)
    assert fitted.scale == "spread"
    pair = fitted.interval([0.8, 0.8], spread=[0.0, 0.3])
    narrow, wide = pair.upper - pair.lower
    assert narrow < wide
    for call in (fitted.interval, fitted.lower_bound, fitted.predict):
        with pytest.raises(ParameterError, match="spread: expected the spread of each case"):
            call([0.5])
        with pytest.raises(CaseLengthError, match="spread: expected 1 values"):
            call([0.5], spread=[0.1, 0.2])
        with pytest.raises(CaseValueError, match=r"spread: expected numbers of at least 0, got -0\.1"):
            call([0.5], spread=[-0.1])
    with pytest.raises(ParameterError, match="spread: expected the spread of each case"):
        ConformalDice(scale="spread").fit(confidence, dice)
    with pytest.raises(CaseValueError, match="for case 'a 1'"):
        ConformalDice().fit(confidence, dice, spread=-spread, ids=[f"a {i}" for i in range(60)])
    with pytest.raises(ParameterError, match="spread: fit"):
        ConformalDice().fit(confidence, dice).interval([0.5], spread=[0.1])


@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_confidences_on_another_scale_have_valid_but_constant_bounds(shift):
    rng = np.random.default_rng(0)
    confidence, dice = draw(rng, 400)
    with pytest.warns(SegtrustWarning, match='400 of 400 are outside .*predictor="isotonic", scale="none"'):
        fitted = ConformalDice(0.8).fit(confidence + shift, dice)
    new, new_dice = draw(rng, 1000)
    pair = fitted.interval(new + shift)
    assert np.ptp(pair.lower) == np.ptp(pair.upper) == 0
    assert within(pair.lower, pair.upper, new_dice).mean() == pytest.approx(0.8, abs=0.04)
    assert pair.predicted[0] == pytest.approx(dice.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConformalDice(predictor="isotonic", scale="none").fit(confidence + shift, dice)


RELEASE_0_1 = """
{"level": 0.8, "threshold": 0.5, "predictor": "isotonic", "train_share": 0.5, "seed": 3, "recalibration":
{"confidence": [0.001, 0.015, 0.054, 0.086, 0.107, 0.227, 0.236, 0.24, 0.317, 0.32, 0.377, 0.38, 0.464,
0.503, 0.613, 0.652, 0.674, 0.741, 0.798, 0.809, 0.844, 0.898, 0.951, 0.974, 0.999], "dice": [0.0,
0.040249999999999994, 0.040249999999999994, 0.052, 0.23575, 0.23575, 0.323, 0.33699999999999997,
0.33699999999999997, 0.3575, 0.3575, 0.4046, 0.4046, 0.51425, 0.51425, 0.58, 0.7156, 0.7156,
0.8108000000000001, 0.8108000000000001, 0.91775, 0.91775, 0.9466666666666667, 0.9466666666666667, 0.951]},
"cells": [{"decision": "accepted", "group": "", "n": 23, "below": 0.10260000000000002, "below_of_two":
0.14848270440251565, "above_of_two": 0.1794}, {"decision": "deferred", "group": "", "n": 22, "below":
0.13974999999999999, "below_of_two": 0.17699999999999996, "above_of_two": 0.07350000000000001}], "used_ids":
[]}
"""


def test_intervals_of_release_0_1_give_the_same_numbers():
    """Saved and computed by release 0.1.0, which knew no scale."""
    saved = json.loads(RELEASE_0_1)
    bounds = ConformalDice.from_dict(saved)
    assert (bounds.scale, bounds.correction) == ("none", None)
    pair, lower = bounds.interval([0.1, 0.45, 0.7, 0.99]), bounds.lower_bound([0.1, 0.45, 0.7, 0.99]).lower
    assert pair.lower.tolist() == [0.0, 0.22760000000000005, 0.5671172955974844, 0.8009572955974843]
    assert pair.upper.tolist() == [0.24800000000000008, 0.4781, 0.895, 1.0]
    assert pair.predicted.tolist() == [0.17450000000000007, 0.4046, 0.7156, 0.94944]
    assert lower.tolist() == [0.034750000000000086, 0.26485000000000003, 0.613, 0.8468399999999999]
    assert json.dumps(bounds.to_dict()) == json.dumps(saved)


def test_what_was_asked_in_release_0_1_can_be_asked_again():
    """Fitted on the cases of `RELEASE_0_1`."""
    rng = np.random.default_rng(5)
    confidence = rng.random(90).round(3)
    dice = np.clip(confidence + rng.normal(0, 0.1, 90), 0, 1).round(3)
    bounds = ConformalDice(0.8, threshold=0.5, predictor="isotonic", scale="none", seed=3)
    assert bounds.fit(confidence, dice).to_dict() == json.loads(RELEASE_0_1)


@pytest.mark.parametrize("bound", ["interval", "lower_bound"])
def test_names_of_cases_are_told_by_name(bound):
    fitted = getattr(ConformalDice(predictor="identity").fit(np.full(60, 0.5), np.full(60, 0.4)), bound)
    assert fitted(confidence=[0.5], group=None, ids=["a"]).lower == fitted([0.5]).lower
    with pytest.raises(TypeError, match="positional"):
        fitted([0.5], None, ["a"])


@pytest.mark.parametrize("predictor", ["corrected", "isotonic", "identity"])
@pytest.mark.parametrize("two_sided", [False, True])
def test_cases_needed_is_the_smallest_number_that_leaves_enough_to_rank(predictor, two_sided):
    for level, share in product((0.01, 0.1, 0.5, 0.55, 0.8, 0.9, 0.99), (0.01, 0.1, 0.3, 0.5, 0.9)):
        bounds = ConformalDice(level=level, train_share=share, predictor=predictor)
        side = bounds._side_level(two_sided)
        to_rank = math.ceil(side / (1 - side))
        slow = next(n for n in count(to_rank) if n - bounds._training_cases(n) >= to_rank)
        assert bounds.cases_needed(two_sided=two_sided) == slow


def test_cases_needed_for_extreme_levels():
    assert ConformalDice(level=1 - 1e-12, predictor="isotonic", train_share=0.999).cases_needed() > 10**12
