"""The comparison itself: it finds every difference that matters, and no other."""

import json

import numpy as np
import pytest

from tests.behaviour.helpers import assert_same, differences, format_golden, plain, read_csv


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1.0, 1.0 + 1e-11),
        (1, 2),
        (1, True),
        (True, 1.0),
        ("accept", "defer"),
        ([1, 2], [1, 3]),
        ([1], [1, 1]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": [{"b": 0.5}]}, {"a": [{"b": 0.6}]}),
        (None, 0),
        (float("nan"), 0.0),
        (float("inf"), float("-inf")),
        ("1", 1),
    ],
)
def test_finds_differences(actual, expected):
    assert len(differences(actual, expected)) == 1
    with pytest.raises(AssertionError, match="1 differences"):
        assert_same(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (1.0, 1.0 + 1e-13),
        (1, 1.0),
        (float("nan"), float("nan")),
        (np.float64(0.5), 0.5),
        (np.array([[1, 2]]), [[1, 2]]),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ],
)
def test_accepts_equal_values(actual, expected):
    assert_same(actual, expected)


def test_order_matters_in_lists():
    assert len(differences([1, 2], [2, 1])) == 2


def test_absolute_tolerance():
    assert_same(1e-16, 0.0, abs_tol=1e-15)
    assert differences(1e-14, 0.0, abs_tol=1e-15)


def test_unknown_types_are_rejected():
    with pytest.raises(TypeError, match="no JSON for object"):
        plain(object())


def test_recorded_text_holds_the_value():
    value = {"long": list(range(100)), "rows": [{"a": 0.1, "b": "text"}] * 9, "empty": []}
    assert json.loads(format_golden(value)) == value
    assert max(map(len, format_golden(value).splitlines())) <= 110


def test_tables_are_read_with_their_numbers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("case,sdc,pixels,seconds\na,0.5,3,0.1\nb,,,0.2\n")
    expected = [{"case": "a", "sdc": 0.5, "pixels": 3}, {"case": "b", "sdc": "", "pixels": ""}]
    assert read_csv(path, without=("seconds",)) == expected
