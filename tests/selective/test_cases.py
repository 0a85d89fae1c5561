"""Calibration cases are checked when they are made, and know who has seen them."""

import numpy as np
import pytest

from segtrust.errors import CaseLengthError, CaseValueError, SeenCasesError, TooFewCasesError
from segtrust.selective.cases import CalibrationCases

CONFIDENCE, LOSS, IDS = [0.9, 0.4, 0.7], [0.1, 0.6, 0.2], ["a", "b", "c"]


def test_units_are_cases_or_patients():
    assert CalibrationCases(CONFIDENCE, LOSS).units.tolist() == [0, 1, 2]
    assert CalibrationCases(CONFIDENCE, LOSS, patients=["y", "x", "y"]).units.tolist() == [1, 0, 1]


BAD = {
    "lengths": ({"loss": [0.1, 0.2]}, CaseLengthError, "loss: expected 3 values"),
    "loss above 1": ({"loss": [0.1, 0.2, 1.2]}, CaseValueError, r"a loss in \[0, 1\], got 1\.2 for case 'c'"),
    "NaN": ({"confidence": [0.1, np.nan, 0.2]}, CaseValueError, "nan for case 'b'"),
    "one case": ({"confidence": [0.1], "loss": [0.2], "ids": None}, TooFewCasesError, "at least 2 cases"),
    "same id": ({"ids": ["a", "b", "a"]}, CaseValueError, "'a' more than once"),
    "too few ids": ({"ids": ["a"]}, CaseLengthError, "ids: expected 3 values"),
    "patients": ({"patients": ["a"]}, CaseLengthError, "patients: expected 3 values"),
    "reference": ({"reference": [np.inf]}, CaseValueError, "finite number, got inf"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused(name):
    changes, error, words = BAD[name]
    with pytest.raises(error, match=words):
        CalibrationCases(**{"confidence": CONFIDENCE, "loss": LOSS, "ids": IDS, **changes})


def test_digest_does_not_depend_on_the_order_of_rows():
    cases = CalibrationCases(CONFIDENCE, LOSS, ids=IDS)
    turned = CalibrationCases(CONFIDENCE[::-1], LOSS[::-1], ids=IDS[::-1])
    other = CalibrationCases(CONFIDENCE, [0.1, 0.6, 0.2000001], ids=IDS)
    assert cases.digest == turned.digest != other.digest


def test_parts_keep_everything():
    cases = CalibrationCases(CONFIDENCE, LOSS, patients=["x", "y", "x"], ids=IDS, reference=[0.5])
    part = cases.part(np.array([True, False, True]))
    assert (part.confidence.tolist(), part.ids, part.patients.tolist()) == (
        [0.9, 0.7],
        ("a", "c"),
        ["x", "x"],
    )
    assert part.reference.tolist() == [0.5]


class TestSeen:
    def test_nobody_has_learned(self):
        CalibrationCases(CONFIDENCE, LOSS).refuse(())

    def test_others_were_learned_from(self):
        CalibrationCases(CONFIDENCE, LOSS, ids=IDS).refuse({"d", "e"})

    def test_one_was_learned_from(self):
        with pytest.raises(SeenCasesError, match="1 of 3 cases were learned from already, 'b' the first"):
            CalibrationCases(CONFIDENCE, LOSS, ids=IDS).refuse({"b", "z"})

    def test_nobody_can_tell(self):
        with pytest.raises(SeenCasesError, match="give the ids"):
            CalibrationCases(CONFIDENCE, LOSS).refuse({"b"})
