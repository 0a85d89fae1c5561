"""Argument checks return the checked value, or name the argument, what was expected and what was received."""

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies

import segtrust
from segtrust._arguments import (
    check_count,
    check_delta,
    check_fraction,
    check_nonnegative,
    check_number,
    check_seed,
    check_threshold,
    check_weight,
    check_whole,
    describe,
)
from segtrust.errors import ParameterError, SegtrustWarning

NOT_NUMBERS = ("1", None, [1], np.array([1.0, 2.0]), 1j)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int8(1), Fraction(1, 2)])
def test_a_threshold_may_be_of_any_real_type(value):
    checked = check_threshold(value, "threshold")
    assert isinstance(checked, float)
    assert checked == value


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf, Fraction(10**400)], ids=str)
def test_thresholds_outside_their_range(value):
    with pytest.raises(ParameterError, match=r"threshold: expected a number in \[0, 1\], got .*sigmoid"):
        check_threshold(value, "threshold")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("0.5", "the text '0.5'"),
        (None, "None"),
        (np.array(0.5), r"ndarray of shape \(\)"),
        ([0.5], r"list \[0.5\]"),
        (1j, "complex 1j"),
    ],
)
def test_a_threshold_that_is_not_a_number_is_described(value, shown):
    with pytest.raises(ParameterError, match=rf"t: expected a number in \[0, 1\], got {shown}\. Pass one"):
        check_threshold(value, "t")


def test_nonnegative_numbers_are_finite():
    assert check_nonnegative(np.finfo(float).max, "beta") == np.finfo(float).max
    assert check_nonnegative(0, "tau", "an entropy", most=1.0) == 0.0
    for value in (-1, -5e-324, np.nan, np.inf, 10**400):
        with pytest.raises(ParameterError, match=r"^beta: expected a finite number of at least 0, got"):
            check_nonnegative(value, "beta")
    with pytest.raises(ParameterError, match=r"tau: expected an entropy, got 1\.5\. Choose"):
        check_nonnegative(1.5, "tau", "an entropy", most=1.0)


def test_weights_have_a_limit():
    assert check_weight(1e20, "beta") == 1e20
    with pytest.raises(ParameterError, match=r"beta: expected .* and at most 1e\+20, got 1\.1e\+20"):
        check_weight(1.1e20, "beta")


def test_numbers_have_any_sign_and_may_be_allowed_to_be_infinite():
    assert [check_number(value, "x") for value in (1, 0.5, np.float32(2), np.int8(-3))] == [1, 0.5, 2, -3]
    assert check_number(-np.inf, "x", finite=False) == -np.inf
    for value in (*NOT_NUMBERS, np.nan, True, Fraction(1, 2)):
        for finite in (True, False):
            with pytest.raises(ParameterError, match=r"^x: expected a (finite )?number, got"):
                check_number(value, "x", finite=finite)
    for value in (np.inf, -np.inf, 10**400):
        with pytest.raises(ParameterError, match="x: expected a finite number, got"):
            check_number(value, "x")


@given(strategies.floats(0, 1))
def test_fractions(value):
    assert check_fraction(value, "risk") == value
    if 0 < value < 1:
        assert check_fraction(value, "risk", open_ends=True) == value


@pytest.mark.parametrize("value", [*NOT_NUMBERS, -0.1, 1.1, np.nan, True, Fraction(1, 2)])
def test_what_is_not_a_fraction(value):
    with pytest.raises(ParameterError, match=r"risk: expected a number in \[0, 1\], got"):
        check_fraction(value, "risk")


def test_integers_that_are_too_long_to_be_printed():
    for check in (check_threshold, check_fraction, check_number):
        with pytest.raises(ParameterError, match=r"x: expected .* got a number too large for a float"):
            check(10**5000, "x")
    with pytest.raises(ParameterError, match=r"x: .* whole number of at most 9, got a number too large"):
        check_whole(10**5000, "x", most=9)


@pytest.mark.parametrize("value", [0, 1, 0.0, np.float64(1.0)])
def test_open_ends(value):
    assert check_fraction(value, "risk") == value
    with pytest.raises(ParameterError, match=r"delta: expected a number in \(0, 1\), got"):
        check_fraction(value, "delta", open_ends=True)


def test_delta_keeps_away_from_its_ends():
    assert check_delta(1e-12) == 1e-12
    with pytest.warns(SegtrustWarning, match="the guarantee does not hold"):
        assert check_delta(1 - 1e-12) == 1 - 1e-12
    for delta in (9e-13, np.nextafter(1 - 1e-12, 1)):
        with pytest.raises(ParameterError, match=r"delta: expected a number in \[1e-12, 1 - 1e-12\], got"):
            check_delta(delta)
    with pytest.raises(ParameterError, match=r"delta: expected a number in \(0, 1\), got 0"):
        check_delta(0)


@pytest.mark.parametrize(("delta", "is_usual"), [(0.05, True), (0.5, True), (0.51, False), (0.95, False)])
def test_a_delta_above_one_half_is_probably_one_minus_delta(delta, is_usual):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert check_delta(delta) == delta
    assert [str(each.category.__name__) for each in caught] == [] if is_usual else ["SegtrustWarning"]
    assert is_usual or Path(caught[0].filename) == Path(__file__)  # points at the caller, not into segtrust


@pytest.mark.parametrize("value", [3, np.int8(4), np.uint64(5)])
def test_whole_numbers_include_their_limits(value):
    checked = check_whole(value, "side", least=3, most=5)
    assert type(checked) is int
    assert checked == value


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (2, "at least 3, got 2"),
        (6, "at most 5, got 6"),
        (4.0, "at least 3, got 4.0"),
        (True, "at least 3, got True"),
    ],
)
def test_what_is_not_a_whole_number_within_its_limits(value, limit):
    with pytest.raises(ParameterError, match=f"side: expected a whole number of {limit}"):
        check_whole(value, "side", least=3, most=5)


def test_a_whole_number_starts_at_0_and_a_count_at_1():
    assert check_whole(0, "n") == 0
    assert check_count(np.uint8(3), "n") == 3
    assert check_count(0, "n", least=0) == 0
    for value in (0, -1, 1.0, True, "1", None):
        with pytest.raises(ParameterError, match="n: expected a whole number of at least 1"):
            check_count(value, "n")


@pytest.mark.parametrize("seed", [-1, 0.5, None, "a", True])
def test_what_is_not_a_seed(seed):
    with pytest.raises(ParameterError, match="seed: expected a whole number of at least 0"):
        check_seed(seed)


def test_a_seed_makes_a_generator():
    assert check_seed(3).random() == np.random.default_rng(3).random()


def test_descriptions_are_short():
    assert describe(segtrust.SoftDice) == "the class SoftDice"
    assert describe("x" * 58) == f"the text '{'x' * 58}'"
    assert describe("x" * 900) == f"the text '{'x' * 59}…"
    assert describe("two\nlines") == r"the text 'two\nlines'"
    assert describe(np.zeros((2, 3))) == "ndarray of shape (2, 3)"


@pytest.mark.parametrize(
    "name",
    [
        *("soft_dice_confidence", "ideal_dice_confidence", "expected_iou", "average_class_probability"),
        *("dice_bounds", "score", "assess", "score_batch"),
    ],
)
def test_public_functions_check_their_threshold(name):
    function, p = getattr(segtrust, name), np.array([[0.9, 0.2, 0.6]])
    for value, shown in (("0.5", "the text '0.5'"), (10**400, "a number too large"), (1.1, "1.1")):
        with pytest.raises(ParameterError, match=rf"threshold: expected a number in \[0, 1\], got {shown}"):
            function(p, threshold=value)
