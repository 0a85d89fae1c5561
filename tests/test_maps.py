"""Predictions and cases: frozen, and checked when they are made."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.confidence import get_estimator
from segtrust.errors import (
    EmptyArrayError,
    GeometryError,
    MaskError,
    MaskShapeError,
    NotBinaryError,
    ParameterError,
    ProbabilityTypeError,
)
from segtrust.maps import Case, EmptyPolicy, Prediction

P = np.zeros((4, 5), np.float32)


class TestPrediction:
    def test_defaults(self):
        prediction = Prediction(P)
        assert (prediction.mask, prediction.threshold, prediction.id, prediction.spacing_mm) == (
            None,
            0.5,
            "",
            None,
        )
        assert prediction.shape == (4, 5)

    def test_nothing_is_copied(self):
        mask = np.ones((4, 5), bool)
        prediction = Prediction(P, mask)
        assert prediction.probabilities is P
        assert prediction.mask is mask

    def test_is_frozen(self):
        with pytest.raises(FrozenInstanceError):
            Prediction(P).id = "other"

    def test_values_are_looked_at_later(self):
        Prediction(np.full((2, 2), np.nan), mask=np.full((2, 2), 7))

    @pytest.mark.parametrize("shape", [(5, 4), (4,), (4, 5, 1), ()])
    def test_mask_of_another_shape(self, shape):
        with pytest.raises(
            MaskShapeError, match=r"case 7: mask: expected the shape of the map, \(4, 5\), got"
        ):
            Prediction(P, np.zeros(shape), id="case 7")

    @pytest.mark.parametrize("shape", [(0,), (3, 0)])
    def test_no_pixel(self, shape):
        with pytest.raises(EmptyArrayError, match="case 7: expected at least one pixel, got an array of"):
            Prediction(np.zeros(shape), id="case 7")

    @pytest.mark.parametrize("dtype", ["complex64", "int8", "int64", "uint32", "object", "U3", "M8[s]"])
    def test_types_that_hold_no_probabilities(self, dtype):
        hints = {"c": "Probabilities are real", "i": "Signed integers have no agreed", "u": "Only uint8"}
        hint = hints.get(np.dtype(dtype).kind, "Convert the map to float32")
        with pytest.raises(ProbabilityTypeError, match=rf"case 7: expected float16.*, got .*\. {hint}"):
            Prediction(np.zeros(3, dtype), id="case 7")

    @pytest.mark.parametrize("dtype", ["float16", ">f4", "float64", "longdouble", "uint8", ">u2", "bool"])
    def test_types_that_do(self, dtype):
        assert Prediction(np.zeros(3, dtype)).shape == (3,)

    @pytest.mark.parametrize("threshold", [-0.01, 1.01, np.nan, np.inf, "0.5", None, np.full(2, 0.5)])
    def test_threshold_out_of_range(self, threshold):
        with pytest.raises(
            ParameterError, match=r"prediction: threshold: expected a number in \[0, 1\], got"
        ):
            Prediction(P, threshold=threshold)

    @pytest.mark.parametrize("threshold", [0, 0.35, 1])
    def test_threshold_at_the_ends(self, threshold):
        assert Prediction(P, threshold=threshold).threshold == threshold

    @pytest.mark.parametrize(
        "spacing_mm",
        [
            (1.0,),
            (1.0, 1.0, 1.0),
            (1.0, 0.0),
            (1.0, -2.0),
            (1.0, np.nan),
            (1.0, np.inf),
            1.0,
            np.float32(1.0),
            "ab",
            ("a", "b"),
            np.ones((2, 2)),
        ],
    )
    def test_spacing_that_does_not_fit(self, spacing_mm):
        with pytest.raises(GeometryError, match="spacing_mm: expected 2 positive numbers, one per axis, got"):
            Prediction(P, spacing_mm=spacing_mm)

    def test_spacing_that_fits(self):
        assert Prediction(P, spacing_mm=(0.5, 2.0)).spacing_mm == (0.5, 2.0)
        Prediction(P, spacing_mm=np.array([0.5, 2.0], np.float32))

    def test_mask_errors_name_the_case(self):
        prediction = Prediction(P, np.full((4, 5), 7), id="case 7")
        for case in (prediction, Case(prediction, truth=np.zeros((4, 5)))):
            with pytest.raises(NotBinaryError, match="case 7: mask: expected only 0 and 1, got the values 7"):
                get_estimator("sdc").score(case)
        with pytest.raises(MaskError, match="case 7: mask: expected bool, integers or floats"):
            get_estimator("sdc").score(Prediction(P, np.zeros((4, 5), complex), id="case 7"))

    @pytest.mark.parametrize(("name", "source"), [("", "prediction"), ("case 7", "case 7")])
    def test_errors_name_it(self, name, source):
        assert Prediction(P, id=name).source == source


class TestCase:
    def test_bears_the_name_of_its_prediction(self):
        assert Case(Prediction(P, id="a"), truth=np.zeros((4, 5))).id == "a"

    def test_truth_of_another_shape(self):
        with pytest.raises(
            MaskShapeError, match=r"a: truth: expected the shape of the map, \(4, 5\), got \(5, 4\)"
        ):
            Case(Prediction(P, id="a"), truth=np.zeros((5, 4)))

    def test_is_frozen(self):
        with pytest.raises(FrozenInstanceError):
            Case(Prediction(P), truth=P).truth = None


class TestEmptyPolicy:
    @pytest.mark.parametrize("name", ["paper", "agree"])
    def test_by_name(self, name):
        assert EmptyPolicy(name) == name

    @pytest.mark.parametrize("name", ["Paper", "", None, 1])
    def test_unknown_names_list_the_known(self, name):
        with pytest.raises(ParameterError, match="empty: expected one of 'paper', 'agree', got"):
            EmptyPolicy(name)


MAKERS = {
    "a": lambda values: Prediction(values, id="a"),
    "a: mask": lambda values: Prediction(np.zeros(2), values, id="a"),
    "a: truth": lambda values: Case(Prediction(np.zeros(2), id="a"), values),
}


@pytest.mark.parametrize("name", MAKERS)
def test_lists_are_rejected_by_name(name):
    with pytest.raises(ParameterError, match=f"{name}: expected an array, got list"):
        MAKERS[name]([0, 1])


@pytest.mark.parametrize("name", MAKERS)
def test_masked_arrays_are_rejected_by_name(name):
    message = rf"{name}: .* got 1 of 2 pixels masked by numpy\.ma.* values\.filled\(0\), or crop"
    with pytest.raises(ParameterError, match=message):
        MAKERS[name](np.ma.array([0.0, 1.0], mask=[True, False]))
    MAKERS[name](np.ma.array([0.0, 1.0]))


@pytest.mark.parametrize("value", [P, None, "case 7"])
def test_a_case_is_made_of_a_prediction(value):
    with pytest.raises(
        ParameterError, match=rf"prediction: expected a Prediction, got {type(value).__name__}\. Wrap"
    ):
        Case(value, P)


def test_an_estimator_rejects_a_bare_array():
    with pytest.raises(ParameterError, match="Wrap an array first"):
        get_estimator("sdc").score(np.zeros(2))
