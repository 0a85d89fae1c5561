"""One number where one is asked for."""

from fractions import Fraction

import numpy as np
import pytest

import segtrust
from segtrust.errors import ParameterError
from segtrust.kernels.inputs import (
    check_fraction,
    check_number,
    check_whole,
    described,
)

P = np.array([[0.9, 0.2, 0.6]])
SCORES = {
    "soft_dice_confidence": segtrust.soft_dice_confidence,
    "ideal_dice_confidence": segtrust.ideal_dice_confidence,
    "expected_iou": segtrust.expected_iou,
    "average_class_probability": segtrust.average_class_probability,
    "dice_bounds": segtrust.dice_bounds,
    "score": segtrust.score,
    "assess": segtrust.assess,
    "score_batch": segtrust.score_batch,
}


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.float16(0.5), np.int8(1), Fraction(1, 2)])
def test_numbers_of_any_kind(value):
    check_fraction(value, "threshold")


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf, -np.inf])
def test_numbers_out_of_range(value):
    with pytest.raises(ParameterError, match=r"threshold: expected a number in \[0, 1\], got"):
        check_fraction(value, "threshold")


@pytest.mark.parametrize("value", [3, np.int8(4), np.uint64(5)])
def test_whole_numbers_from_the_least_to_the_most(value):
    check_whole(value, "side", least=3, most=5)
    check_whole(value, "side", least=3)


@pytest.mark.parametrize(
    ("value", "limit"), [(2, "at least 3"), (6, "at most 5"), (4.0, "at least 3"), (True, "at least 3")]
)
def test_what_is_no_whole_number_in_between(value, limit):
    with pytest.raises(ParameterError, match=f"side: expected a whole number of {limit}, got {value}"):
        check_whole(value, "side", least=3, most=5)


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), Fraction(10**5000)], ids=["int", "negative", "fraction"]
)
@pytest.mark.parametrize("name", ["soft_dice_confidence", "score", "score_batch"])
def test_numbers_too_large_for_a_float(name, value):
    with pytest.raises(
        ParameterError, match=r"threshold: expected a number in \[0, 1\], got a number too large"
    ):
        SCORES[name](P, threshold=value)


@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_numbers_that_are_not_finite(value):
    with pytest.raises(ParameterError, match="beta: expected a finite number of at least 0, got"):
        check_number(value, "beta")


NO_NUMBERS = {
    "the text '0.5'": "0.5",
    "None": None,
    r"ndarray of shape \(2,\)": np.array([0.1, 0.5]),
    r"ndarray of shape \(\)": np.array(0.5),
    r"list \[0.5\]": [0.5],
    "complex 1j": 1j,
}


@pytest.mark.parametrize("shown", NO_NUMBERS)
@pytest.mark.parametrize("name", SCORES)
def test_thresholds_that_are_no_number(name, shown):
    with pytest.raises(
        ParameterError, match=rf"threshold: expected a number in \[0, 1\], got {shown}\. Pass one"
    ):
        SCORES[name](P, threshold=NO_NUMBERS[shown])


def test_what_came_is_said_in_a_few_words():
    assert described(segtrust.SoftDice) == "the class SoftDice"
    assert len(described(list(range(1000)))) < 80
