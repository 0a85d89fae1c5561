"""The numbers of an evaluation, each from its definition."""

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import CaseValueError, TooFewCasesError, WrongContentError
from segtrust.evaluation import (
    ALL_STRUCTURES,
    EvaluationSettings,
    evaluate_rows,
    evaluated_sets,
    over_structures,
    rankable_sets,
)

QUICK = st.Bootstrap(resamples=200)


def rows(n, seed=0, structure="organ", **more):
    rng = np.random.default_rng(seed)
    loss = rng.random(n)
    return [
        {
            "case": f"{i}",
            "structure": structure,
            "group": f"patient {i // 2}",
            "k": int(rng.integers(1, 50)),
            "sdc": 1 - loss[i] + 0.3 * rng.random(),
            "amsp": rng.random(),
            "loss": loss[i],
            "truth_ratio": 0.0 if i == 0 else 0.2,
            "relative_error": float("nan") if i == 1 else 1e-4 * (i + 1),
            "shape": "4×5",
            **more,
        }
        for i in range(n)
    ]


def how(**options):
    return EvaluationSettings(("sdc", "amsp"), **{"bootstrap": QUICK, **options})


class TestTables:
    def test_areas_and_their_intervals(self):
        found = rows(40)
        table = evaluate_rows({"ID": found}, how())["areas"]
        loss = [row["loss"] for row in found]
        assert [row["estimator"] for row in table] == ["sdc", "amsp", "oracle", "random"]
        for row in table[:2]:
            confidence = [each[row["estimator"]] for each in found]
            curve = st.risk_coverage_curve(confidence, loss)
            interval = st.bootstrap_interval(confidence, loss, bootstrap=QUICK)
            assert (row["aurc"], row["augrc"]) == (curve.aurc, curve.augrc)
            assert (row["low"], row["high"]) == (interval.low, interval.high)
            assert row["normalised_aurc"] == curve.normalised_aurc
        assert table[2]["aurc"] == st.risk_coverage_curve(np.negative(loss), loss).aurc
        assert table[3]["aurc"] == pytest.approx(np.mean(loss))

    def test_coverage_at_the_risk_of_the_first_set(self):
        inside, outside = rows(40), rows(60, seed=1)
        for row in outside:
            row["loss"] = min(1.0, row["loss"] + 0.2)
        table = evaluate_rows({"ID": inside, "OOD": outside}, how())["coverages"]
        target = np.mean([row["loss"] for row in inside])
        for row in table:
            assert row["target_risk"] == pytest.approx(target)
            if row["set"] == "OOD" and row["estimator"] == "sdc":
                curve = st.risk_coverage_curve(
                    [each["sdc"] for each in outside], [each["loss"] for each in outside]
                )
                assert row["coverage"] == curve.coverage_at_risk(target) < 1

    def test_comparisons_are_paired(self):
        found = rows(40)
        (row,) = evaluate_rows({"ID": found}, how())["comparisons"]
        expected = st.compare_estimators(
            *([each[name] for each in found] for name in ("sdc", "amsp")),
            [each["loss"] for each in found],
            bootstrap=QUICK,
        )
        assert (row["estimator"], row["against"]) == ("sdc", "amsp")
        assert (row["difference"], row["p_value"]) == (expected.difference, expected.p_value)

    def test_bounds_leave_out_empty_masks(self):
        (row,) = evaluate_rows({"ID": rows(10)}, how())["bounds"]
        errors = [1e-4 * (i + 1) for i in range(10) if i != 1]
        assert (row["cases"], row["empty_masks"]) == (9, 1)
        assert (row["max_epsilon"], row["mean_epsilon"]) == pytest.approx((max(errors), np.mean(errors)))

    def test_sets_say_what_was_left_out(self):
        (row,) = evaluate_rows({"ID": rows(10)}, how(drop_empty=True))["sets"]
        assert (row["cases"], row["left_out_empty_truth"]) == (9, 1)
        (row,) = evaluate_rows({"ID": rows(10)}, how())["sets"]
        assert (row["cases"], row["left_out_empty_truth"]) == (10, 0)

    def test_patients_are_drawn_as_wholes(self):
        found = rows(40)
        (ours, *_) = evaluate_rows({"ID": found}, how(by_patient=True))["areas"]
        expected = st.bootstrap_interval(
            [row["sdc"] for row in found],
            [row["loss"] for row in found],
            patients=[row["group"] for row in found],
            bootstrap=QUICK,
        )
        assert (ours["low"], ours["high"]) == (expected.low, expected.high)

    def test_another_estimator_is_compared_where_the_sdc_is_not_there(self):
        assert EvaluationSettings(("amsp", "ane")).reference == "amsp"

    def test_copies_are_drawn_together(self):
        found = rows(40)
        for row in found:
            row["checksum"] = f"crc32:{row['case']}"
        for copy, original in zip(found[20:], found[:20], strict=True):  # the same 20 images, twice
            copy.update({**original, "case": copy["case"]})
        units = [row["checksum"] for row in found]
        (area, *_) = evaluate_rows({"ID": found}, how())["areas"]
        interval = st.bootstrap_interval(
            [row["sdc"] for row in found],
            [row["loss"] for row in found],
            patients=units,
            bootstrap=how().bootstrap,
        )
        assert (area["low"], area["high"]) == (interval.low, interval.high)
        for number, row in enumerate(found):
            row["checksum"] = f"crc32:{number}"
        (alone, *_) = evaluate_rows({"ID": found}, how())["areas"]
        assert alone["aurc"] == area["aurc"]
        assert alone["high"] - alone["low"] < area["high"] - area["low"]

    def test_only_copies_of_one_map_are_too_few(self):
        found = [{**row, "checksum": "crc32:1"} for row in rows(5)]
        with pytest.raises(TooFewCasesError, match="at least 2 different maps to rank, got 1"):
            evaluate_rows({"ID": found}, how())


class TestStructures:
    def test_each_has_its_own_and_all_have_their_mean(self):
        both = [*rows(10), *rows(10, seed=1, structure="lesion")]
        found = evaluated_sets({"ID": both}, how())
        assert [each.structure for each in found] == ["organ", "lesion", ALL_STRUCTURES]
        assert len(found[2].rows) == 10

    def test_confidence_is_that_of_the_predicted_and_loss_that_of_those_there(self):
        first, second = rows(2)[0], rows(2, structure="lesion")[0]
        first |= {"k": 5, "sdc": 0.8, "loss": 0.2, "truth_ratio": 0.1}
        second |= {"k": 0, "sdc": 0.0, "loss": 1.0, "truth_ratio": 0.0}
        (row,) = over_structures([first, second], how())
        assert (row["sdc"], row["loss"]) == (0.8, 0.2)
        second["truth_ratio"] = 0.3  # missed, which is a loss
        (row,) = over_structures([first, second], how())
        assert (row["sdc"], row["loss"]) == (0.8, pytest.approx(0.6))

    def test_where_nothing_is_there_all_of_them_count(self):
        pair = [rows(1)[0] | {"k": 0, "sdc": each, "loss": 1.0, "truth_ratio": 0.0} for each in (0.0, 0.4)]
        (row,) = over_structures(pair, how())
        assert (row["sdc"], row["loss"]) == (pytest.approx(0.2), 1.0)


class TestRefusals:
    def test_too_few_cases(self):
        with pytest.raises(
            TooFewCasesError, match="ID, organ: expected at least 2 cases to rank, got 1 after 1"
        ):
            evaluate_rows({"ID": rows(2)}, how(drop_empty=True))

    def test_what_can_be_ranked_is_though_other_sets_cannot(self):
        sets = {"ID": [*rows(6), *rows(1, structure="lesion")], "far": rows(1, seed=1)}
        found, told = rankable_sets(sets, how())
        assert [(each.name, each.structure) for each in found] == [("ID", "organ"), ("ID", ALL_STRUCTURES)]
        assert told == [
            "ID, lesion: expected at least 2 cases to rank, got 1.",
            "far, organ: expected at least 2 cases to rank, got 1.",
        ]

    def test_cases_of_one_patient(self):
        with pytest.raises(TooFewCasesError, match="ID, organ: expected at least 2 patients to rank, got 1"):
            evaluated_sets({"ID": rows(6, group="the same")}, how(by_patient=True))

    def test_a_missing_number_names_the_case(self):
        found = rows(5)
        found[3]["amsp"] = None
        with pytest.raises(WrongContentError, match="3: expected a number in the column 'amsp'"):
            evaluate_rows({"ID": found}, how())

    def test_a_case_without_its_patient(self):
        with pytest.raises(CaseValueError, match="expected the patient of each case"):
            evaluate_rows({"ID": rows(5, group="")}, how(by_patient=True))
