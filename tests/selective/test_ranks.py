"""Testing every rank: the walk equals its slow twin, adaptive stakes are valid, and the start is safe."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from segtrust.errors import ParameterError
from segtrust.selective import CalibrationCases, Procedure, Target, certify, certify_threshold, find_threshold
from segtrust.selective.pvalues import P_VALUES, adaptive_betting_p_value, betting_stakes, p_values_by_rank
from segtrust.selective.shuffling import shuffled_order
from tests.selective.polyps import OUTSIDE, vectors

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*more confident cases have:segtrust.errors.SegtrustWarning"  # random confidences, by chance
)

unit_losses = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=40).map(np.array)
inner = st.floats(0.01, 0.99)


def slow_adaptive(losses, target, delta):
    """One case after the other; the spread is that of the losses so far, and of some made-up ones."""
    n, goal = len(losses), math.log(1 / delta)
    weight, mean = max(1.0, 0.1 * n), target
    squares = weight * target * (1 - target)
    capitals = [0.0]
    for seen, loss in enumerate(losses):
        stake = math.sqrt(2 * (goal - capitals[-1]) / ((n - seen) * max(squares / weight, 1e-12)))
        factor = 1 - min(stake, 1 / (1 - target)) * (loss - target)
        if factor <= 0:
            break
        capitals.append(capitals[-1] + math.log(factor))
        if capitals[-1] >= goal:
            break
        weight += 1
        squares += (loss - mean) * (loss - (mean + (loss - mean) / weight))
        mean += (loss - mean) / weight
    return math.exp(-max(capitals))


@given(unit_losses, inner, inner)
def test_adaptive_stakes_equal_the_game_played_out(losses, target, delta):
    expected = slow_adaptive(losses.tolist(), target, delta)
    assert adaptive_betting_p_value(losses, target, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.5, 1.0), (0.02, 1.0)])
def test_adaptive_stakes_are_valid_to_the_last_digit(values):
    """Every sequence with its probability, no simulation; the mean is exactly the target."""
    n = 12 if len(values) == 2 else 8
    for target, level in product((0.1, 0.3, 0.7), (0.05, 0.2)):
        high = (target - values[0]) / (1 - values[0])
        chances = (
            [1 - high, high] if len(values) == 2 else [1 - target * 4 / 3, target * 2 / 3, target * 2 / 3]
        )
        if chances[0] < 0:
            continue
        assert np.dot(chances, values) == pytest.approx(target)
        passing = 0.0
        for picks in product(range(len(values)), repeat=n):
            if adaptive_betting_p_value(np.array([values[at] for at in picks]), target, level) <= level:
                passing += math.prod(chances[at] for at in picks)
        assert passing <= level + 1e-12


@given(unit_losses, inner, st.sampled_from([0.05, 0.2]), st.integers(0, 5), st.sampled_from(sorted(P_VALUES)))
def test_p_values_by_rank_equal_those_of_each_prefix(losses, target, delta, first, name):
    losses = (losses > 0.5) * 1.0 if name == "binomial" else losses
    first = min(first, losses.size)
    order = np.random.default_rng(losses.size).permutation(losses.size)
    found = p_values_by_rank(losses, name, target, delta, first=first, bet_order=order)
    stakes = betting_stakes(max(1, round(math.sqrt(max(first, 1) * losses.size))), target, delta)
    for at, p_value in enumerate(found):
        k = first + at
        if name == "adaptive-betting":
            expected = P_VALUES[name](losses[order[order < k]], target, delta)
        elif name == "betting":
            capital = np.prod(np.maximum(1 - np.multiply.outer(stakes, losses[:k] - target), 0), axis=1)
            expected = 1 / max(1.0, capital.mean())
        else:
            expected = P_VALUES[name](losses[:k], target, delta)
        assert p_value == pytest.approx(expected, rel=1e-9), k
    if name == "adaptive-betting":
        assert (found[:-1] <= delta).all()
        assert found.size == losses.size - first + 1 or found[-1] > delta
    else:
        assert found.size == losses.size - first + 1


def slow_threshold(cases, target, delta, start):
    """Walk down the ranks; a block of equal confidences counts once its last case has passed."""
    seed = 5
    ties = shuffled_order(seed, cases.confidence, ids=cases.ids)
    ranked = ties[np.argsort(-cases.confidence[ties], kind="stable")]
    bets = shuffled_order(seed, cases.confidence, ids=cases.ids, stream=1)
    losses, best = target.losses(cases.loss), None
    name = "binomial" if target.below_dice is not None else "adaptive-betting"
    first = math.ceil(round(start * cases.n, 9))
    for k in range(first, cases.n + 1):
        sizes = [k - 1, k] if k == first else [k]
        tops = [set(ranked[:size].tolist()) for size in sizes]
        in_order = [losses[[at for at in bets if at in top]] for top in tops]
        if any(P_VALUES[name](values, target.risk, delta) > delta for values in in_order):
            break
        if k == cases.n or cases.confidence[ranked[k]] < cases.confidence[ranked[k - 1]]:
            best = cases.confidence[ranked[k - 1]]
    return best


@settings(max_examples=60)
@given(
    st.integers(2, 60), st.integers(0, 2**20), st.sampled_from([1, 10]), st.sampled_from([None, 0.5]),
    st.sampled_from([0.3, 0.5, 1.0]), st.floats(0.05, 0.9),
)  # fmt: skip
def test_the_walk_equals_its_slow_twin(n, seed, digits, below_dice, start, risk):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n).round(digits)
    cases = CalibrationCases(confidence, (1 - confidence) * rng.random(n), ids=range(n))
    target = Target(risk, below_dice)
    # The walk sorts its rows first; these are sorted already.
    cases = cases.part(np.lexsort((cases.loss, cases.confidence)))
    found = find_threshold(cases, target, 0.05, Procedure(seed=5, start_coverages=(start,)))
    assert found.threshold == slow_threshold(cases, target, 0.05, start)
    assert found.search == "ranks"


def broken_by_atom(n, target, delta, coverage, *, twice):
    """Probability of a wrong certificate in a population with an atom, from all numbers of cases.

    Cases above the atom have no loss, those on it a loss of 1, those below are coins of the target. The risk
    is just above the target at the atom and below. The exact binomial test is used at each rank; the start
    is tested without the case that marks it, and with ``twice`` also with it.
    """
    on_atom = coverage * target * 1.0001
    above = coverage - on_atom
    first = math.ceil(n / 2)

    @cache
    def passes(failures, size):
        return size > 0 and bool(binom.cdf(failures, size, target) <= delta)

    def wrong(zeros, ones):
        """Probability over the coins below the atom that it, or a threshold below it, is certified."""
        down_to_atom = zeros + ones
        if down_to_atom < first:  # the start is one of the coins
            coins = range(first - down_to_atom)
            chances = binom.pmf(list(coins), first - 1 - down_to_atom, target)
            last = [
                (1 - target) * passes(ones + coin, first) + target * passes(ones + coin + 1, first)
                for coin in coins
            ]
            before = [passes(ones + coin, first - 1) for coin in coins]
            return float(np.sum(chances * before * (np.array(last) if twice else 1.0)))
        if not passes(max(0, first - 1 - zeros), first - 1):
            return 0.0
        ranks = range(first if twice else first + 1, down_to_atom + 1)
        if not all(passes(max(0, rank - zeros), rank) for rank in ranks):
            return 0.0
        if ones:
            return 1.0
        return (1 - target) * passes(0, zeros + 1) + target * passes(1, zeros + 1)

    return sum(
        binom.pmf(zeros, n, above) * binom.pmf(ones, n - zeros, on_atom / (1 - above)) * wrong(zeros, ones)
        for zeros in range(n)
        for ones in range(min(n - zeros, 12) + 1)
    )


@pytest.mark.parametrize(("n", "target", "delta"), [(60, 0.10, 0.05), (20, 0.25, 0.0751)])
def test_the_start_is_tested_twice(n, target, delta):
    """An atom just under half of the cases: the first test of the start alone breaks the level."""
    coverages = np.linspace(0.44, 0.50, 7)
    once = max(broken_by_atom(n, target, delta, coverage, twice=False) for coverage in coverages)
    twice = max(broken_by_atom(n, target, delta, coverage, twice=True) for coverage in coverages)
    assert once > delta
    assert twice < delta


def test_no_case_is_set_aside():
    rng = np.random.default_rng(0)
    confidence = rng.random(300)
    found = certify_threshold(confidence, (1 - confidence) * rng.random(300), target_risk=0.2)
    assert (found.n, found.evidence.set_aside, found.evidence.references) == (300, 0, 0)
    assert (found.evidence.search, found.evidence.tests) == ("ranks", ("adaptive-betting",))
    assert [step.accepted for step in found.steps] == list(range(150, 150 + len(found.steps)))
    assert found.coverage == (found.steps[-1].accepted - 1) / 300


def test_a_block_that_fails_inside_is_not_certified():
    confidence = np.repeat([0.9, 0.5], [60, 40])
    loss = np.concatenate([np.zeros(60), np.full(40, 0.3)])
    found = certify_threshold(confidence, loss, target_risk=0.1)
    assert (found.threshold, found.coverage) == (0.9, 0.6)
    assert found.steps[-1].threshold == 0.5
    assert any(step.passed and step.threshold == 0.5 for step in found.steps)


def test_large_tables_use_fixed_stakes():
    rng = np.random.default_rng(0)
    confidence = rng.random(6000)
    cases = CalibrationCases(confidence, (1 - confidence) * rng.random(6000))
    assert certify(cases, Target(0.2)).evidence.tests == ("betting",)
    sharp = certify(cases, Target(0.2), procedure=Procedure(p_value="adaptive-betting"))
    assert sharp.coverage >= certify(cases, Target(0.2)).coverage - 0.01


class TestWhatCannotBeTestedAtEveryRank:
    CASES = CalibrationCases(np.linspace(0, 1, 200), np.linspace(0.4, 0, 200))

    def test_patients_with_several_cases(self):
        cases = CalibrationCases(
            self.CASES.confidence, self.CASES.loss, patients=np.repeat(np.arange(100), 2)
        )
        assert certify(cases, Target(0.3)).evidence.search == "candidates"
        with pytest.raises(ParameterError, match="got patients with several cases"):
            certify(cases, Target(0.3), procedure=Procedure(search="ranks"))

    def test_patients_with_one_case_each_are_cases(self):
        cases = CalibrationCases(self.CASES.confidence, self.CASES.loss, patients=np.arange(200))
        assert certify(cases, Target(0.3)).evidence.search == "ranks"

    def test_reference_cases(self):
        cases = CalibrationCases(self.CASES.confidence, self.CASES.loss, reference=np.linspace(0, 0.9, 33))
        assert certify(cases, Target(0.3)).evidence.search == "candidates"
        with pytest.raises(ParameterError, match="takes no reference cases"):
            certify(cases, Target(0.3), procedure=Procedure(search="ranks"))

    def test_several_targets_by_a_test_that_is_not_known_to_be_valid(self):
        targets = [Target(0.3), Target(0.4, below_dice=0.7)]
        found = certify(self.CASES, targets)
        assert (found.evidence.search, found.evidence.tests) == ("ranks", ("betting", "binomial"))
        bentkus = Procedure(p_value="hoeffding-bentkus")
        assert certify(self.CASES, targets, procedure=bentkus).evidence.search == "candidates"
        with pytest.raises(ParameterError, match="by betting or binomial, got the p-value 'hoeffding"):
            certify(self.CASES, targets, procedure=Procedure("hoeffding-bentkus", search="ranks"))


@pytest.mark.parametrize("kind", ["flat", "two levels", "all tied"])
@pytest.mark.parametrize("below_dice", [None, 0.5])
def test_the_guarantee_holds_at_every_rank(kind, below_dice):
    """Risk just above the target; `segtrust reproduce validity` has many more populations and draws."""
    n, draws, rng = 60, 1500, np.random.default_rng(4)
    broken = 0
    for draw in range(draws):
        position = rng.random(n)
        confidence = {"flat": -position, "two levels": position < 0.6, "all tied": position * 0}[kind] * 1.0
        risk = np.where(position < 0.6, 0.14, 0.2 + 0.4 * 0.15 / 0.4) if kind == "two levels" else 0.2001
        loss = (rng.random(n) < risk) * 1.0
        found = find_threshold(
            CalibrationCases(confidence, loss), Target(0.2, below_dice), 0.05, Procedure(seed=draw)
        )
        limit = 0.0 if kind == "two levels" else math.inf
        broken += found.threshold is not None and found.threshold <= limit
    assert binom.sf(broken - 1, draws, 0.05) > 1e-4


def test_the_guarantee_holds_where_the_start_lies_between_two_targets():
    """Failures are too frequent above the start, and the mean loss is too high below it."""
    n, draws, rng = 60, 2000, np.random.default_rng(5)
    targets = [Target(0.2), Target(0.1, below_dice=0.5)]

    def risks(coverage):
        top, middle, bottom = min(coverage, 0.45), np.clip(coverage - 0.45, 0, 0.1), max(coverage - 0.55, 0)
        mean = (top * (0.101 + 0.899 * 0.05) + middle * 0.443 + bottom * 0.21) / coverage
        return mean, top * 0.101 / coverage

    assert risks(0.5)[0] < 0.2 < risks(0.56)[0]
    assert risks(0.5)[1] < 0.1 < risks(0.45)[1]
    broken = 0
    for draw in range(draws):
        position = rng.random(n)
        top = np.where(rng.random(n) < 0.101, 1.0, 0.05)
        loss = np.where(position < 0.45, top, np.where(position < 0.55, 0.443, 0.21))
        found = find_threshold(CalibrationCases(-position, loss), targets, 0.05, Procedure(seed=draw))
        if found.threshold is not None:
            mean, failures = risks(-found.threshold)
            broken += mean > 0.2 or failures > 0.1
    assert binom.sf(broken - 1, draws, 0.05) > 1e-4


@pytest.mark.needs("data:polyp", "PIL")
def test_real_maps_can_be_certified_without_reference_cases(data):
    """What is asked for: 95 % of the draws, at a mean coverage of 0.60 among them."""
    confidence, dice, _ = vectors(data("polyp"), OUTSIDE)
    coverages = []
    for seed in range(500):
        chosen = np.random.default_rng(seed).permutation(dice.size)[:300]
        cases = CalibrationCases(confidence[chosen], dice=dice[chosen])
        found = find_threshold(cases, Target(0.10), 0.05, Procedure())
        coverages += [] if found.threshold is None else [np.mean(confidence >= found.threshold)]
    assert len(coverages) >= 475
    assert np.mean(coverages) >= 0.60
