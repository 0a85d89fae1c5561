"""Labels: the same however they are written, and none may be missing."""

import numpy as np
import pytest

from segtrust.errors import CaseLengthError, CaseValueError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.labels import labels_of, text_of, texts_of
from segtrust.selective.resample import Bootstrap, bootstrap_interval

NAN = float("nan")


def test_labels_become_numbers():
    assert labels_of(["b", "a", "b"], 3, "patients").tolist() == [1, 0, 1]
    assert labels_of(["b", "a", "b"], 3, "patients").dtype.kind == "i"


@pytest.mark.parametrize(
    "values",
    [
        [10, 9, 10],
        [10.0, 9.0, 10.0],
        [10, 9.0, np.int8(10)],
        ["10", "9", "10"],
        (10, 9, 10),
        range(10, 13) and iter([10, 9, 10]),
        np.array([10, 9, 10], np.uint16),
        np.array([10.0, 9.0, 10.0], np.float32),
        np.array(["10", "9", "10"]),
        np.array([10, 9.0, 10], object),
    ],
)
def test_the_same_however_they_are_written(values):
    assert texts_of(values, 3, "patients").tolist() == ["10", "9", "10"]


@pytest.mark.needs("pandas")
def test_pandas_columns():
    import pandas as pd

    for column in (
        pd.Series([7, 8], index=[5, 6]),
        pd.Series([7, 8], dtype="Int64"),
        pd.Series(["7", "8"], dtype="category"),
    ):
        assert texts_of(column, 2, "patients").tolist() == ["7", "8"]
    for column in (pd.Series([7, None]), pd.Series(["7", None]), pd.Series([7, pd.NA], dtype="Int64")):
        with pytest.raises(CaseValueError, match="for case 1"):
            texts_of(column, 2, "patients")


def test_against_plain_python():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 30, 500)
    names = sorted(set(values.tolist()))
    slow = [names.index(each) for each in values.tolist()]
    for same in (values, values.astype(float), values.astype(str), values.tolist(), values.astype(object)):
        assert labels_of(same, 500, "patients").tolist() == slow


def test_order():
    assert labels_of(["10", "9", "-1", "9"], 4, "patients").tolist() == [2, 1, 0, 1]
    assert labels_of(["10", "9", "b"], 3, "patients").tolist() == [0, 1, 2]
    assert labels_of(["7", "007"], 2, "patients").tolist() == [1, 0]
    assert labels_of([str(10**30), "9"], 2, "patients").tolist() == [0, 1]
    assert labels_of([], 0, "patients").tolist() == []


@pytest.mark.parametrize(
    "missing", [None, NAN, np.float32("nan"), np.inf, "", b"a", (1, 2), np.datetime64("NaT", "D")]
)
def test_a_missing_label_is_named(missing):
    values = np.empty(3, object)
    values[:] = ["a", missing, "b"]
    with pytest.raises(CaseValueError, match=r"expected text or a number, got .* for case 1"):
        labels_of(values, 3, "patients")
    with pytest.raises(CaseValueError, match="for case 'y'"):
        texts_of(values, 3, "patients", ids=["x", "y", "z"])


def test_of_several_that_are_missing_the_first_is_named():
    with pytest.raises(CaseValueError, match="got None for case 1"):
        texts_of(["a", None, "b", None, None], 5, "patients")


def test_numbers_with_a_gap():
    with pytest.raises(CaseValueError, match="got nan for case 2"):
        labels_of(np.array([1.0, 2.0, NAN]), 3, "patients")


@pytest.mark.parametrize("values", [[1, "1"], ["a", 2], [True, 1], [True, "a"], np.array([1, "1"], object)])
def test_two_kinds_are_not_guessed_about(values):
    with pytest.raises(CaseValueError, match="patients: expected labels of one kind, got"):
        labels_of(values, 2, "patients")


def test_truth_values_are_labels_of_their_own():
    assert texts_of([True, False], 2, "groups").tolist() == ["True", "False"]


@pytest.mark.parametrize(
    "values", ["ab", {"a", "b"}, {"a": 1, "b": 2}, 7, None, [["a", "b"]], np.zeros((2, 2))]
)
def test_what_is_no_column(values):
    with pytest.raises(CaseLengthError, match="patients: expected one label a case"):
        labels_of(values, 2, "patients")


def test_lengths():
    with pytest.raises(CaseLengthError, match="patients: expected 3 values"):
        labels_of(["a", "b"], 3, "patients")


def test_text_of_one():
    assert [text_of(each) for each in ("a", 7, 7.0, 7.5, True, np.str_("b"))] == [
        "a",
        "7",
        "7",
        "7.5",
        "True",
        "b",
    ]


class TestWhereTheyAreUsed:
    confidence = np.arange(6) / 6
    loss = np.linspace(0.5, 0, 6)

    def test_certification(self):
        with pytest.raises(CaseValueError, match=r"patients: .* got None for case 'c'"):
            CalibrationCases(self.confidence, self.loss, ["a", "b", None, "a", "b", "a"], list("abcdef"))

    def test_bootstrap(self):
        for bad in ([1.0, 2.0, NAN, 1.0, 2.0, 3.0], ["a", None, "b", "a", "b", "a"]):
            with pytest.raises(CaseValueError, match="patients: expected text or a number"):
                bootstrap_interval(self.confidence, self.loss, patients=bad)

    def test_bootstrap_is_the_same_however_patients_are_written(self):
        plan = Bootstrap(resamples=100)
        for same in ([1, 1, 2, 2, 3, 3], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0], list("112233")):
            found = bootstrap_interval(self.confidence, self.loss, patients=same, bootstrap=plan)
            assert found.units == 3
            assert found == bootstrap_interval(
                self.confidence, self.loss, patients=np.arange(6) // 2, bootstrap=plan
            )

    def test_conformal_groups(self):
        rng = np.random.default_rng(0)
        confidence, groups = rng.random(200), np.arange(200) % 2
        bounds = ConformalDice(level=0.8).fit(confidence, confidence, groups=groups)
        for one in (1, 1.0, "1", np.int8(1), np.str_("1")):
            assert bounds.interval([0.5], one).trivial.tolist() == [False]
            assert bounds.interval([0.5], [one]).trivial.tolist() == [False]
        for bad in ([None], [NAN], NAN):
            with pytest.raises(CaseValueError, match="expected text or a number"):
                bounds.interval([0.5], bad)
        with pytest.raises(CaseValueError, match="got None for case 'x'"):
            bounds.interval([0.5], [None], ids=["x"])
