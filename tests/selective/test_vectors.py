"""Vectors over cases: what is rejected before a case is ranked, labels, reference confidences."""

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, TooFewCasesError
from segtrust.selective import CalibrationCases, ConformalDice
from segtrust.selective.vectors import (
    check_confidences,
    check_dice,
    check_labels,
    check_losses,
    check_reference,
    check_vector,
    check_weights,
    format_label,
    number_labels,
)

NAN = float("nan")


class TestNumbers:
    @pytest.mark.parametrize("values", [[0.5, 1], (0.5, 1), np.array([0.5, 1], np.float32), np.array([1, 0])])
    def test_any_sequence(self, values):
        assert check_confidences(values).dtype == np.float64
        assert check_confidences(values).tolist() == list(values)

    def test_an_array_of_doubles_is_not_copied(self):
        values = np.array([0.25, 0.5])
        assert check_confidences(values) is values

    def test_an_invalid_case_is_named(self):
        for bad in (np.nan, np.inf, -np.inf):
            expected = f"expected a finite number, got {bad} for case 1 and 1 more.*fix or drop them"
            with pytest.raises(CaseValueError, match=expected):
                check_confidences([0.5, bad, bad])
            with pytest.raises(CaseValueError, match=r"loss: .* for case 'patient-7'\."):
                check_losses([0.5, bad], 2, ids=["patient-3", "patient-7"])

    @pytest.mark.parametrize("values", ["abc", ["a", "b"], None, [[1, 2], [3]], object()])
    def test_other_types(self, values):
        with pytest.raises((CaseValueError, CaseLengthError), match="confidence: expected"):
            check_confidences(values)

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
    def test_values_without_a_rank(self, values):
        with pytest.raises(CaseValueError, match="confidence: expected"):
            check_vector(values, "confidence")

    def test_a_masked_array_without_masked_values(self):
        values = np.ma.masked_array([0.1, 0.2], mask=False)
        assert check_vector(values, "confidence").tolist() == [0.1, 0.2]

    @pytest.mark.parametrize("values", [0.5, [[0.5, 0.1]]])
    def test_shapes(self, values):
        with pytest.raises(CaseLengthError, match=r"expected one value per case \(1-D\), got shape .*ravel"):
            check_confidences(values)

    def test_lengths(self):
        with pytest.raises(TooFewCasesError, match="confidence: expected at least 2 cases, got 1"):
            check_confidences([0.5], fewest=2)
        with pytest.raises(CaseLengthError, match="ids: expected 2 values, one for each confidence, got 1"):
            check_confidences([0.5, np.nan], ids=["a"])
        for check in (check_losses, check_weights, check_dice):
            with pytest.raises(CaseLengthError, match="expected 3 values, one for each confidence, got 2"):
                check([0.5, 0.5], 3)

    def test_losses(self):
        assert check_losses([0, 7.5], 2).tolist() == [0, 7.5]
        with pytest.raises(CaseValueError, match=r"a loss of at least 0, got -0\.1 for case 0"):
            check_losses([-0.1, 0.5], 2)
        assert check_losses([0, 1], 2, unit=True).tolist() == [0, 1]
        with pytest.raises(CaseValueError, match=r"a loss in \[0, 1\], got 1\.5 for case 1"):
            check_losses([0.1, 1.5], 2, unit=True)

    def test_dices(self):
        assert check_dice([0, 1], 2).tolist() == [0, 1]
        for bad in (-0.1, 1.1):
            with pytest.raises(CaseValueError, match=r"dice: expected a number in \[0, 1\], got .* case 'b'"):
                check_dice([0.5, bad], 2, ids="ab")

    def test_weights(self):
        assert check_weights(None, 3).tolist() == [1, 1, 1]
        with pytest.raises(CaseValueError, match="a weight of at least 0"):
            check_weights([1, -1], 2)
        with pytest.raises(CaseValueError, match="got only zeros"):
            check_weights([0, 0], 2)

    def test_sums_that_overflow(self):
        for check in (check_losses, check_weights):
            with pytest.raises(CaseValueError, match=r"expected a finite sum, got numbers up to 1e\+308"):
                check([1e308, 1e308], 2)
            assert check([1e307, 1e307], 2).tolist() == [1e307, 1e307]


class TestLabels:
    @pytest.mark.parametrize(
        "values",
        [
            [10, 9.0, np.int8(10)],
            ("10", "9", "10"),
            iter([10, 9, 10]),
            np.array([10, 9, 10], np.uint16),
            np.array([10.0, 9.0, 10.0], np.float32),
            np.array(["10", "9", "10"]),
            np.array([10, 9.0, 10], object),
        ],
    )
    def test_the_same_however_they_are_written(self, values):
        assert check_labels(values, 3, "patients").tolist() == ["10", "9", "10"]

    @pytest.mark.needs("pandas")
    def test_pandas_columns(self):
        import pandas as pd

        for column in (
            pd.Series([7, 8], index=[5, 6]),
            pd.Series([7, 8], dtype="Int64"),
            pd.Series(["7", "8"], dtype="category"),
        ):
            assert check_labels(column, 2, "patients").tolist() == ["7", "8"]
        for column in (pd.Series([7, None]), pd.Series(["7", None]), pd.Series([7, pd.NA], dtype="Int64")):
            with pytest.raises(CaseValueError, match="for case 1"):
                check_labels(column, 2, "patients")

    def test_numbers_compared_with_plain_python(self):
        values = np.random.default_rng(0).integers(0, 30, 500)
        distinct = sorted(set(values.tolist()))
        slow = [distinct.index(value) for value in values.tolist()]
        for same in (
            values,
            values.astype(float),
            values.astype(str),
            values.tolist(),
            values.astype(object),
        ):
            assert number_labels(same, 500, "patients").tolist() == slow

    def test_order_of_the_numbers(self):
        assert number_labels(["b", "a", "b"], 3, "patients").tolist() == [1, 0, 1]
        assert number_labels(["10", "9", "-1", "9"], 4, "patients").tolist() == [2, 1, 0, 1]
        assert number_labels(["10", "9", "b"], 3, "patients").tolist() == [0, 1, 2]
        assert number_labels(["7", "007"], 2, "patients").tolist() == [1, 0]
        assert number_labels([str(10**30), "9"], 2, "patients").tolist() == [0, 1]
        assert number_labels([], 0, "patients").tolist() == []

    @pytest.mark.parametrize(
        "missing", [None, NAN, np.float32("nan"), np.inf, "", b"a", (1, 2), np.datetime64("NaT", "D")]
    )
    def test_a_missing_label_is_named(self, missing):
        values = np.empty(3, object)
        values[:] = ["a", missing, "b"]
        with pytest.raises(CaseValueError, match=r"expected text or a number, got .* for case 1"):
            check_labels(values, 3, "patients")
        with pytest.raises(CaseValueError, match="for case 'y'"):
            check_labels(values, 3, "patients", ids=["x", "y", "z"])

    def test_the_first_of_several_missing_labels_is_named(self):
        with pytest.raises(CaseValueError, match="got None for case 1"):
            check_labels(["a", None, "b", None, None], 5, "patients")
        with pytest.raises(CaseValueError, match="got nan for case 2"):
            check_labels(np.array([1.0, 2.0, NAN]), 3, "patients")

    @pytest.mark.parametrize(
        "values", [[1, "1"], ["a", 2], [True, 1], [True, "a"], np.array([1, "1"], object)]
    )
    def test_two_kinds_are_rejected(self, values):
        with pytest.raises(CaseValueError, match=r"patients: expected labels of one kind, got \w+.* and \w+"):
            check_labels(values, 2, "patients")

    def test_truth_values(self):
        assert check_labels([True, False], 2, "groups").tolist() == ["True", "False"]

    @pytest.mark.parametrize(
        "values", ["ab", {"a", "b"}, {"a": 1, "b": 2}, 7, None, [["a", "b"]], np.zeros((2, 2))]
    )
    def test_what_is_not_a_column(self, values):
        with pytest.raises(CaseLengthError, match="patients: expected one label per case"):
            check_labels(values, 2, "patients")

    def test_lengths(self):
        with pytest.raises(CaseLengthError, match="patients: expected 3 values"):
            check_labels(["a", "b"], 3, "patients")

    def test_one_label_as_text(self):
        labels = {
            "a": "a",
            7: "7",
            8.0: "8",
            7.5: "7.5",
            True: "True",
            np.str_("b"): "b",
            "": None,
            NAN: None,
        }
        assert [format_label(label) for label in labels] == list(labels.values())

    def test_calibration_cases_name_a_case_without_a_patient(self):
        with pytest.raises(CaseValueError, match=r"patients: .* got None for case 'c'"):
            CalibrationCases(np.arange(3) / 3, np.zeros(3), ["a", "b", None], list("abc"))

    def test_conformal_groups(self):
        rng = np.random.default_rng(0)
        confidence, groups = rng.random(200), np.arange(200) % 2
        bounds = ConformalDice(level=0.8).fit(confidence, confidence, groups=groups)
        for group in (1, 1.0, "1", np.int8(1), np.str_("1")):
            assert bounds.interval([0.5], group).trivial.tolist() == [False]
            assert bounds.interval([0.5], [group]).trivial.tolist() == [False]
        for bad in ([None], [NAN], NAN):
            with pytest.raises(CaseValueError, match="expected text or a number"):
                bounds.interval([0.5], bad)
        with pytest.raises(CaseValueError, match="got None for case 'x'"):
            bounds.interval([0.5], [None], ids=["x"])


RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(300)
OTHERS = RNG.random(200)
MIXED = np.where(np.arange(300) % 2, CONFIDENCE, 0.0)  # as if half of the masks were empty

COPIES = {
    "the same object": (CONFIDENCE, CONFIDENCE),
    "the same object, all tied": 2 * (np.ones(50),),
    "a copy": (CONFIDENCE.copy(), CONFIDENCE),
    "in another order": (CONFIDENCE[::-1], CONFIDENCE),
    "a part": (CONFIDENCE[::8], CONFIDENCE),
    "ten of them": (CONFIDENCE[:10], CONFIDENCE),
    "them and others": (np.concatenate([CONFIDENCE, OTHERS]), CONFIDENCE),
    "a part, many of which are tied": (MIXED[:60], MIXED),
    "coarse, case by case": (np.round(CONFIDENCE, 1), np.round(CONFIDENCE, 1)),
    "six levels, case by case": (np.round(5 * CONFIDENCE) / 5, np.round(5 * CONFIDENCE) / 5),
    "coarse, in another order": (np.sort(np.round(CONFIDENCE, 1)), np.round(CONFIDENCE, 1)),
    "single precision": (CONFIDENCE[:50].astype(np.float32), CONFIDENCE[:50]),
    "six decimals": (0.3 + CONFIDENCE[:50].round(6) - 0.3, CONFIDENCE[:50]),
}

NOT_COPIES = {
    "of others": (OTHERS, CONFIDENCE),
    "all but one shared": (np.append(CONFIDENCE[:30], 2.0), CONFIDENCE),
    "all tied": (np.ones(50), np.ones(50)),
    "two levels": (np.repeat([0.0, 1.0], 10), np.tile([0.0, 1.0], 10)),
    "nine unique values": (np.append(CONFIDENCE[:9], [2.0, 2.0]), np.append(CONFIDENCE, [2.0, 2.0])),
    "nine shared values": (np.arange(10) % 9 / 9, np.concatenate([np.arange(9) / 9, [0.0], OTHERS])),
}


class TestReference:
    @pytest.mark.parametrize("name", COPIES)
    def test_copied_from_the_calibration_cases(self, name):
        reference, confidence = COPIES[name]
        with pytest.raises(ParameterError, match="reference: expected confidences of other cases"):
            check_reference(reference, confidence)

    @pytest.mark.parametrize("name", NOT_COPIES)
    def test_not_copied(self, name):
        reference, confidence = NOT_COPIES[name]
        assert check_reference(reference, confidence).tolist() == list(reference)

    @pytest.mark.parametrize(("n", "references"), [(30, 10), (300, 10), (300, 300), (1000, 20)])
    def test_coarse_confidences_are_hardly_ever_taken_for_copies(self, n, references):
        rng = np.random.default_rng(1)
        for decimals in (1, 2, 3):
            for _ in range(100):
                confidence, reference = (np.round(rng.beta(8, 1, size), decimals) for size in (n, references))
                check_reference(reference, confidence)

    @pytest.mark.parametrize(("n", "m", "width"), [(300, 10, 1e-4), (2000, 30, 1e-3), (300, 300, 1e-4)])
    def test_other_cases_in_a_narrow_range_are_no_copies(self, n, m, width):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            assert check_reference(1 - width * rng.random(m), 1 - width * rng.random(n)).size == m

    def test_too_few(self):
        with pytest.raises(
            TooFewCasesError, match=r"at least 10 unlabelled cases, got 9. Pass more, or none"
        ):
            check_reference(OTHERS[:9], CONFIDENCE)
        with pytest.raises(CaseValueError, match="reference: expected a finite number, got inf"):
            check_reference([np.inf] * 10, CONFIDENCE)

    def test_public_functions_check_the_reference(self):
        loss = (1 - CONFIDENCE) / 2
        with pytest.raises(ParameterError, match="other cases"):
            CalibrationCases(CONFIDENCE, loss, reference=CONFIDENCE[::8])
        with pytest.raises(ParameterError, match="other cases"):
            st.certify_threshold(CONFIDENCE, loss, target_risk=0.2, reference=CONFIDENCE)
        assert st.certify_threshold(CONFIDENCE, loss, target_risk=0.3, reference=OTHERS).certified

    def test_parts_are_not_checked_again(self):
        """A part of coarse cases may look like a copy of the reference although the whole does not."""
        confidence = np.concatenate([np.linspace(0.1, 0.2, 12), OTHERS[:12]])
        cases = CalibrationCases(confidence, np.zeros(24), reference=np.append(OTHERS[:12], 0.5))
        assert cases.part(np.arange(12, 24)).reference is cases.reference


@pytest.mark.needs("torch")
class TestTensors:
    """Tensors that NumPy does not read itself are detached and converted."""

    def test_with_a_gradient_or_in_bfloat16(self):
        import torch

        tensor = torch.tensor([0.5, 0.25], requires_grad=True)
        for values in (tensor, tensor.bfloat16(), list(tensor), [tensor[0], 0.25]):
            assert check_vector(values, "loss").tolist() == [0.5, 0.25]

    def test_everywhere(self):
        import torch

        confidence = torch.linspace(0, 1, 40, requires_grad=True)
        loss = (1 - confidence) / 2
        assert st.risk_coverage_curve(confidence, loss).full_risk == pytest.approx(0.25)
        assert st.CalibrationCases(confidence, loss, patients=torch.arange(40)).patients[3] == "3"
        assert st.Target(0.3).observed(loss).risk == pytest.approx(0.25)
        watch = st.ExchangeabilityMartingale(confidence)
        assert watch.update(confidence[3]).n == 1
        assert watch.extend(list(confidence[:2])).n == 3


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("name", ["loss", "dice", "weights"])
def test_columns_with_different_indices_are_rejected(name):
    import pandas

    confidence = pandas.Series([0.9, 0.5, 0.1], index=["a", "b", "c"])
    other = pandas.Series([0.9, 0.5, 0.1], index=["b", "a", "c"])
    columns = {"loss": [0.1, 0.5, 0.9]} if name == "weights" else {}
    for wrong in (other, other.reset_index(drop=True)):
        with pytest.raises(ParameterError, match=f"confidence, {name}: expected pandas columns with"):
            st.risk_coverage_curve(confidence, **columns, **{name: wrong})
    st.risk_coverage_curve(confidence, **columns, **{name: other.to_numpy()})
    st.risk_coverage_curve(confidence, **columns, **{name: other.reindex(confidence.index)})
