"""What is refused before a case is ranked."""

import numpy as np
import pytest

from segtrust.errors import CaseLengthError, CaseValueError, TooFewCasesError
from segtrust.selective.vectors import (
    confidences_of,
    losses_of,
    vector,
    weights_of,
)


@pytest.mark.parametrize("values", [[0.5, 1], (0.5, 1), np.array([0.5, 1], np.float32), np.array([1, 0])])
def test_any_sequence_of_numbers(values):
    assert confidences_of(values).dtype == np.float64
    assert confidences_of(values).tolist() == list(values)


def test_an_array_of_doubles_is_not_copied():
    values = np.array([0.25, 0.5])
    assert confidences_of(values) is values


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_case_without_a_number_is_named(bad):
    with pytest.raises(CaseValueError, match=f"expected a finite number, got {bad} for case 1 and 1 more"):
        confidences_of([0.5, bad, bad])
    with pytest.raises(CaseValueError, match=r"loss: .* for case 'patient-7'\."):
        losses_of([0.5, bad], 2, ids=["patient-3", "patient-7"])


@pytest.mark.parametrize("values", ["abc", ["a", "b"], None, [[1, 2], [3]], object()])
def test_what_are_no_numbers(values):
    with pytest.raises((CaseValueError, CaseLengthError), match="confidence: expected"):
        confidences_of(values)


@pytest.mark.parametrize("values", [0.5, [[0.5, 0.1]], np.zeros((2, 2))])
def test_what_is_no_vector(values):
    with pytest.raises(CaseLengthError, match="expected one number a case, got an array of shape"):
        confidences_of(values)


def test_too_few():
    with pytest.raises(TooFewCasesError, match="confidence: expected at least 2 cases, got 1"):
        confidences_of([0.5], fewest=2)


def test_ids_are_as_many_as_cases():
    with pytest.raises(CaseLengthError, match="ids: expected 2 values, one for each confidence, got 1"):
        confidences_of([0.5, np.nan], ids=["a"])


def test_lengths():
    for check in (losses_of, weights_of):
        with pytest.raises(CaseLengthError, match="expected 3 values, one for each confidence, got 2"):
            check([0.5, 0.5], 3)


def test_losses():
    assert losses_of([0, 7.5], 2).tolist() == [0, 7.5]
    with pytest.raises(CaseValueError, match=r"a loss of at least 0, got -0\.1 for case 0"):
        losses_of([-0.1, 0.5], 2)
    with pytest.raises(CaseValueError, match=r"a loss in \[0, 1\], got 1\.5 for case 1"):
        losses_of([0.1, 1.5], 2, unit=True)


def test_weights():
    assert weights_of(None, 3).tolist() == [1, 1, 1]
    with pytest.raises(CaseValueError, match="a weight of at least 0"):
        weights_of([1, -1], 2)
    with pytest.raises(CaseValueError, match="got only zeros"):
        weights_of([0, 0], 2)


def test_sums_beyond_all_floats():
    for check in (losses_of, weights_of):
        with pytest.raises(CaseValueError, match=r"expected a finite sum, got numbers up to 1e\+308"):
            check([1e308, 1e308], 2)
        assert check([1e307, 1e307], 2).tolist() == [1e307, 1e307]


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_array([0.1, 0.2], mask=[True, False]),
        np.array([0.1 + 1j, 0.2]),
        np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"),
        ["0.1", "0.2"],
        [10**400, 1],
    ],
    ids=["masked", "complex", "dates", "text", "too large"],
)
def test_what_has_no_value_as_a_number_is_refused(values):
    with pytest.raises(CaseValueError, match="confidence: expected"):
        vector(values, "confidence")


def test_an_array_that_could_hide_values_and_does_not_is_taken():
    assert vector(np.ma.masked_array([0.1, 0.2], mask=False), "confidence").tolist() == [0.1, 0.2]
