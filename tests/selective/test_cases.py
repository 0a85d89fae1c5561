"""Calibration cases are checked when they are made, and know who has seen them."""

import numpy as np
import pytest
from scipy.stats import chisquare

from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SeenCasesError, TooFewCasesError
from segtrust.selective.cases import CalibrationCases

CONFIDENCE, LOSS, IDS = [0.9, 0.4, 0.7], [0.1, 0.6, 0.2], ["a", "b", "c"]


def test_units_are_cases_or_patients():
    assert CalibrationCases(CONFIDENCE, LOSS).units.tolist() == [0, 1, 2]
    assert CalibrationCases(CONFIDENCE, LOSS, patients=["y", "x", "y"]).units.tolist() == [0, 1, 0]


BAD = {
    "lengths": ({"loss": [0.1, 0.2]}, CaseLengthError, "loss: expected 3 values"),
    "loss above 1": ({"loss": [0.1, 0.2, 1.2]}, CaseValueError, r"a loss in \[0, 1\], got 1\.2 for case 'c'"),
    "NaN": ({"confidence": [0.1, np.nan, 0.2]}, CaseValueError, "nan for case 'b'"),
    "one case": ({"confidence": [0.1], "loss": [0.2], "ids": None}, TooFewCasesError, "at least 2 cases"),
    "same id": ({"ids": ["a", "b", "a"]}, CaseValueError, "'a' 2 times"),
    "too few ids": ({"ids": ["a"]}, CaseLengthError, "ids: expected 3 values"),
    "patients": ({"patients": ["a"]}, CaseLengthError, "patients: expected 3 values"),
    "reference": ({"reference": [np.inf] * 10}, CaseValueError, "finite number, got inf"),
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


def test_digest_does_not_depend_on_the_containers():
    confidence, loss, patients = [0.5, 0.0, 1.0], [0.25, 0.5, 0.0], [1, 2, 1]
    tables = [
        CalibrationCases(confidence, loss, patients, ["a", "b", "c"]),
        CalibrationCases(tuple(confidence), np.array(loss), np.array(patients), np.array(["a", "b", "c"])),
        CalibrationCases(np.float32(confidence), np.float32(loss), np.array([1.0, 2.0, 1.0]), iter("abc")),
        CalibrationCases([0.5, -0.0, 1], [0.25, 0.5, -0.0], ["1", "2", "1"], np.array(list("abc"), object)),
    ]
    assert len({cases.digest for cases in tables}) == 1
    assert CalibrationCases(confidence, loss, patients).digest != CalibrationCases(confidence, loss).digest


def test_digest_does_not_change():
    """Policies hold it: what was made with an earlier version must be found again."""
    digest = CalibrationCases([0.5, 1 / 3], [0.25, 0.5], patients=["x", "y"], ids=["a", "b"]).digest
    assert digest == "d6e039b7d2192a7f20a9177f3347db6580aca73f295547722ee63d4c96581717"


def test_tables_are_copied_and_stay_as_they_are():
    confidence, loss, patients = np.array(CONFIDENCE), np.array(LOSS), np.array(["x", "y", "x"])
    reference = np.linspace(0, 1, 12)
    cases = CalibrationCases(confidence, loss, patients, reference=reference)
    before = cases.digest
    confidence[:], loss[:], patients[:], reference[:] = 0, 0, "z", 0
    assert cases.digest == before
    assert cases.reference.max() == 1
    for name in ("confidence", "loss", "patients", "reference"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(cases, name)[0] = getattr(cases, name)[1]


def test_parts_keep_everything():
    cases = CalibrationCases(CONFIDENCE, LOSS, patients=["x", "y", "x"], ids=IDS, reference=[0.5] * 10)
    part = cases.part(np.array([True, False, True]))
    assert (part.confidence.tolist(), part.ids, part.patients.tolist()) == (
        [0.9, 0.7],
        ("a", "c"),
        ["x", "x"],
    )
    assert part.reference.tolist() == [0.5] * 10


class TestShuffled:
    def test_does_not_depend_on_the_order_of_rows(self):
        rng = np.random.default_rng(0)
        confidence, loss, patients = rng.random(50), rng.random(50), rng.integers(0, 9, 50)
        order = rng.permutation(50)
        found = CalibrationCases(confidence, loss, patients).shuffled(3)
        turned = CalibrationCases(confidence[order], loss[order], patients[order]).shuffled(3)
        assert found.confidence.tolist() == turned.confidence.tolist()
        assert found.patients.tolist() == turned.patients.tolist()

    def test_keeps_patients_together(self):
        cases = CalibrationCases(np.arange(12.0), np.zeros(12), patients=np.arange(12) % 4).shuffled(0)
        assert cases.patients.tolist() == np.repeat(cases.patients[::3], 3).tolist()
        assert cases.units.tolist() == np.repeat(np.arange(4), 3).tolist()

    def test_every_rank_comes_first_equally_often(self):
        """With one order for all data sets promises were broken more often than they may be."""
        rng = np.random.default_rng(0)
        firsts = []
        for _ in range(2000):
            confidence = rng.random(10)
            cases = CalibrationCases(confidence, rng.random(10)).shuffled(0)
            firsts.append(int((confidence > cases.confidence[0]).sum()))
        assert chisquare(np.bincount(firsts, minlength=10)).pvalue > 1e-4

    def test_knows_nothing_of_the_losses(self):
        rng = np.random.default_rng(0)
        confidence, ids = np.round(rng.random(60), 1), [f"{i:02d}" for i in range(60)]
        orders = {CalibrationCases(confidence, rng.random(60), ids=ids).shuffled(0).ids for _ in range(5)}
        assert len(orders) == 1

    def test_ids_tell_equal_confidences_apart(self):
        ids, order = np.array([f"{i:02d}" for i in range(40)]), np.random.default_rng(1).permutation(40)
        loss = np.linspace(0, 1, 40)
        found = CalibrationCases(np.ones(40), loss, ids=ids).shuffled(0)
        turned = CalibrationCases(np.ones(40), loss[order], ids=ids[order]).shuffled(0)
        assert found.ids == turned.ids

    def test_seeds_give_other_orders(self):
        cases = CalibrationCases(np.arange(30.0), np.zeros(30))
        assert cases.shuffled(0).confidence.tolist() != cases.shuffled(1).confidence.tolist()


class TestSeen:
    def test_nobody_has_learned(self):
        CalibrationCases(CONFIDENCE, LOSS).refuse(())

    def test_others_were_learned_from(self):
        CalibrationCases(CONFIDENCE, LOSS, ids=IDS).refuse({"d", "e"})

    def test_one_was_learned_from(self):
        with pytest.raises(SeenCasesError, match=r"1 of 3 cases have been used already \('b'\)"):
            CalibrationCases(CONFIDENCE, LOSS, ids=IDS).refuse({"b", "z"})

    def test_nobody_can_tell(self):
        with pytest.raises(ParameterError, match="expected the id of each case"):
            CalibrationCases(CONFIDENCE, LOSS).refuse({"b"})
