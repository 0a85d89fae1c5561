"""Every look at the same cases is remembered, and copies count as one case."""

import numpy as np
import pytest

import segtrust as st
from segtrust.errors import CaseLengthError, CaseValueError, ParameterError, SavedStateError, SeenCasesError
from segtrust.policy import Policy, PolicyStatus, Scoring, StructurePolicies, certify_structures
from segtrust.selective import (
    CalibrationCases,
    Look,
    LookLog,
    Procedure,
    Target,
    case_keys,
    certify,
    certify_best,
    certify_each,
    describe_look,
)

RNG = np.random.default_rng(7)
CONFIDENCE = RNG.random(300)
LOSS = (1 - CONFIDENCE) * RNG.random(300)
IDS = [f"case {number}" for number in range(300)]
SUMS = [f"crc32:{number:08x}" for number in range(300)]


def cases(confidence=CONFIDENCE, **more):
    return CalibrationCases(confidence, LOSS, **{"ids": IDS, **more})


class TestLooks:
    def test_the_third_look_leaves_85_per_cent(self):
        asked = cases()
        first, second, third = (certify(asked, Target(risk)) for risk in (0.15, 0.18, 0.2))
        assert [each.evidence.earlier_looks for each in (first, second, third)] == [0, 1, 2]
        assert [each.total_delta for each in (first, second, third)] == pytest.approx([0.05, 0.1, 0.15])
        assert third.delta == 0.05
        assert "Guarantee (85 % confidence, third look at these cases): the mean loss" in str(third)
        made = Policy.from_certificate(third, Scoring("sdc", predictor="fold 0"))
        assert "Guarantee (85 % confidence, third look at these cases): the mean loss" in str(made)
        assert Policy.from_dict(made.to_dict()) == made

    def test_the_same_question_is_not_another_look(self):
        tied = cases(CONFIDENCE.round(1))
        first = certify(tied, Target(0.2))
        again = certify(tied, Target(0.2))
        assert again == first
        assert again.procedure.seed == first.procedure.seed > 0
        assert len(tied.looks) == 1

    def test_drawing_the_random_numbers_again_is_another_look(self):
        tied = cases(CONFIDENCE.round(1))
        certify(tied, Target(0.2))
        assert certify(tied, Target(0.2), procedure=Procedure(seed=1)).evidence.earlier_looks == 1

    @pytest.mark.parametrize(
        "change",
        [
            {"delta": 0.1},
            {"procedure": Procedure(start_coverages=(0.3,))},
            {"procedure": Procedure(p_value="betting")},
        ],
    )
    def test_another_level_start_or_test_is_another_look(self, change):
        asked = cases()
        certify(asked, Target(0.2))
        assert certify(asked, Target(0.2), **change).evidence.earlier_delta == 0.05

    def test_another_estimator_and_some_more_cases_are_recognised_by_the_shared_record(self):
        log = LookLog()
        certify(cases(looks=log), Target(0.2))
        other = cases(CONFIDENCE**2, looks=log)
        assert certify(other, Target(0.2)).evidence.earlier_looks == 1
        more = CalibrationCases([*CONFIDENCE, 0.5], [*LOSS, 0.1], ids=[*IDS, "new"], looks=log)
        assert certify(more, Target(0.2)).evidence.earlier_looks == 2
        others = CalibrationCases(CONFIDENCE, LOSS, ids=[f"new {name}" for name in IDS], looks=log)
        assert certify(others, Target(0.2)).evidence.earlier_looks == 0

    def test_a_shared_name_or_checksum_is_enough(self):
        log = LookLog()
        certify(cases(checksums=SUMS, looks=log), Target(0.2))
        renamed = cases(ids=[f"new {name}" for name in IDS], checksums=SUMS, looks=log)
        assert certify(renamed, Target(0.2)).evidence.earlier_looks == 1
        saved_again = cases(checksums=[f"sha256:{each}" for each in SUMS], looks=log)
        assert certify(saved_again, Target(0.15)).evidence.earlier_looks == 1

    def test_without_names_every_look_of_the_record_counts(self):
        log = LookLog()
        for earlier, n in enumerate((200, 250, 300)):
            part = CalibrationCases(CONFIDENCE[:n], LOSS[:n], looks=log)
            assert certify(part, Target(0.2)).evidence.earlier_looks == earlier

    def test_a_missing_checksum_does_not_make_anybody_forget(self):
        log = LookLog()
        certify(cases(checksums=SUMS, looks=log), Target(0.2))
        assert certify(cases(checksums=["", *SUMS[1:]], looks=log), Target(0.15)).evidence.earlier_looks == 1
        assert certify(cases(looks=log), Target(0.18)).evidence.earlier_looks == 2

    def test_all_cases_of_a_plan_are_remembered(self):
        log = LookLog()
        other = CalibrationCases(CONFIDENCE, LOSS, ids=[f"other {name}" for name in IDS], looks=log)
        certify_best({"one": cases(looks=log), "two": other}, Target(0.2))
        assert certify(other, Target(0.15)).evidence.earlier_looks == 1

    def test_a_plan_with_ties_draws_its_random_numbers_once(self):
        tied = cases(CONFIDENCE.round(1))
        first = certify_each(tied, [Target(0.15), Target(0.2)])
        again = certify_each(tied, [Target(0.2), Target(0.15)])
        assert len({each.procedure.seed for each in (*first, *again)}) == 1
        assert again[::-1] == first

    def test_repeating_a_certificate_is_not_another_look(self):
        tied = cases(CONFIDENCE.round(1))
        first = certify(tied, [Target(0.2), Target(0.3, below_dice=0.5)])
        turned = [Target(0.3, below_dice=0.5), Target(0.2)]
        again = certify(tied, turned, procedure=first.procedure)
        assert (again.threshold, again.evidence.earlier_looks, len(tied.looks)) == (first.threshold, 0, 1)

    def test_parts_share_the_record(self):
        asked = cases()
        certify(asked.part(slice(0, 200)), Target(0.2))
        assert certify(asked, Target(0.2)).evidence.earlier_looks == 1

    def test_what_was_planned_together_is_one_look(self):
        asked = cases()
        certify_each(asked, [Target(0.15), Target(0.2)])
        assert [look.delta for look in asked.looks.looks] == [0.05]
        assert certify(asked, Target(0.25)).total_delta == pytest.approx(0.1)

    def test_structures_spend_their_share(self):
        liver, tumour = cases(), CalibrationCases(CONFIDENCE, LOSS / 2, ids=IDS)
        by_name = {"liver": liver, "tumour": tumour}
        certify_structures(by_name, Target(0.2))
        found = certify_structures(by_name, Target(0.25))
        assert [each.total_delta for each in found.values()] == pytest.approx([0.05, 0.05])
        policies = {name: Policy.from_certificate(each, Scoring("sdc")) for name, each in found.items()}
        assert StructurePolicies(policies).delta == pytest.approx(0.1)
        assert "all of them hold together with 90 % confidence" in str(StructurePolicies(policies))

    def test_nothing_is_left_after_twenty_looks(self):
        asked = cases()
        found = [certify(asked, Target(0.2 + number / 1000)) for number in range(21)][-1]
        assert found.total_delta == 1.0
        made = Policy.from_certificate(found, Scoring("sdc"))
        assert made.status is PolicyStatus.ESTIMATED
        assert "Not guaranteed (no confidence left, look number 21 at these cases)" in str(found)
        assert "delta=1" in repr(found)
        assert "after 20 earlier looks at the same cases" in made.reason

    def test_a_refusal_names_the_cost_of_asking_again(self):
        asked = cases()
        certify(asked, Target(0.01))
        said = str(certify(asked, Target(0.02)))
        assert "would be the third look at these cases: at most 85 % confidence." in said
        assert "With new cases, start at a lower coverage" in said

    def test_records_are_saved_with_the_cases(self, tmp_path):
        asked = cases(checksums=SUMS)
        certify(asked, Target(0.2))
        asked.save(tmp_path / "cases.json")
        loaded = CalibrationCases.load(tmp_path / "cases.json")
        assert certify(loaded, Target(0.15)).evidence.earlier_looks == 1
        assert "case 7" not in (tmp_path / "cases.json").read_text().partition('"looks"')[2]

    def test_numbers_in_words(self):
        assert describe_look(2) == "second look at these cases"
        assert describe_look(11) == "look number 11 at these cases"

    def test_corrupt_records(self):
        look = Look("a question", "3f", 0.05, None, "2026-01-01T00:00:00+00:00")
        log = LookLog()
        log.record(case_keys(["a"]), look)
        saved = log.to_dict()
        assert LookLog.from_dict(saved).looks == (look,)
        bad_looks = [
            {**saved, "looks": [{**saved["looks"][0], **change}]}
            for change in ({"cases": 1}, {"cases": -1}, {"delta": 2.0}, {"asked": None})
        ]
        for bad in (*bad_looks, {**saved, "cases": ["abc"]}, {**saved, "looks": 3}, {**saved, "looks": [3]}):
            with pytest.raises(SavedStateError, match="looks: "):
                LookLog.from_dict(bad)
        with pytest.raises(ParameterError, match="looks: expected a LookLog"):
            cases(looks=[])


class TestBest:
    def test_the_best_estimator_at_a_share_of_the_level(self):
        noisy = cases(CONFIDENCE + np.random.default_rng(0).normal(0, 0.4, 300))
        name, found = certify_best({"noisy": noisy, "good": cases()}, Target(0.2))
        assert (name, found.delta, found.evidence.planned) == ("good", 0.05, 2)
        assert {step.level for step in found.steps} == {0.025}
        assert "Planned as one of 2 that share δ." in str(found)
        assert [look.delta for look in noisy.looks.looks] == [0.05]

    def test_nothing_certified(self):
        name, found = certify_best({"one": cases(), "two": cases(CONFIDENCE**2)}, Target(0.01))
        assert (name, found.certified) == ("one", False)

    def test_no_cases(self):
        with pytest.raises(ParameterError, match="cases by name of the estimator"):
            certify_best({}, Target(0.1))


@pytest.mark.filterwarnings("ignore:.*more confident cases have:segtrust.errors.SegtrustWarning")
class TestCopies:
    def test_copies_count_as_one_case(self):
        twice = CalibrationCases(
            np.tile(CONFIDENCE, 2),
            np.tile(LOSS, 2),
            ids=[*IDS, *(f"copy of {name}" for name in IDS)],
            checksums=SUMS * 2,
        )
        assert (twice.n, twice.copies, twice.digest) == (300, 300, cases().digest)
        found = certify(twice, Target(0.2))
        assert found.steps == certify(cases(), Target(0.2)).steps
        assert "300 calibration cases (300 copies counted once)" in str(found)
        made = Policy.from_certificate(found, Scoring("sdc"))
        assert "; 300 copies counted once), " in str(made)
        with pytest.raises(SeenCasesError, match="'copy of case 3'"):
            made.reject_seen(["copy of case 3"])

    def test_copies_no_longer_break_the_guarantee(self):
        """20 images, 15 copies each: 33 % broken instead of 5 % if every copy counts as a case."""
        rng, broken, counted = np.random.default_rng(0), 0, 0
        for _ in range(200):
            confidence, loss = np.arange(20) / 1e6, (rng.random(20) < 0.25) * 1.0
            columns = np.repeat(confidence, 15), np.repeat(loss, 15)
            sums = np.repeat(np.arange(20), 15)
            broken += st.certify_threshold(*columns, target_risk=0.2).certified
            counted += certify(CalibrationCases(*columns, checksums=sums), Target(0.2)).certified
        assert broken > 30
        assert counted <= 20

    def test_different_losses_are_an_error(self):
        with pytest.raises(CaseValueError, match=r"'a' and 'c' are copies .*crc32:1.* 0.1 and 0.3"):
            CalibrationCases(
                [0.9, 0.4, 0.9],
                [0.1, 0.6, 0.3],
                ids=["a", "b", "c"],
                checksums=["crc32:1", "crc32:2", "crc32:1"],
            )

    def test_rounding_does_not_hide_a_copy(self):
        assert CalibrationCases([0.9, 0.9 + 1e-13], [0.1, 0.1 - 1e-13], checksums=["x", "x"]).n == 1

    def test_equal_short_checksums_of_different_maps_are_no_copies(self):
        assert CalibrationCases([0.9, 0.4], [0.1, 0.6], checksums=["crc32:1", "crc32:1"]).n == 2

    def test_cases_without_a_checksum_are_no_copies(self):
        assert CalibrationCases([0.9, 0.9, 0.9], [0.1, 0.6, 0.2], checksums=["", None, np.nan]).n == 3

    def test_one_checksum_per_case(self):
        with pytest.raises(CaseLengthError, match="checksums: expected 2 values"):
            CalibrationCases([0.9, 0.9], [0.1, 0.6], checksums=["a"])

    def test_copies_survive_saving(self, tmp_path):
        made = CalibrationCases([0.9, 0.4, 0.9], [0.1, 0.6, 0.1], checksums=["x", "y", "x"])
        made.save(tmp_path / "cases.json")
        assert CalibrationCases.load(tmp_path / "cases.json").copies == made.copies == 1


def blobs(n):
    rng = np.random.default_rng(3)
    for number in range(n):
        p = rng.random((6, 6))
        yield st.Case(
            st.Prediction(p, id=f"fit {number}", checksum=SUMS[number]), p + rng.normal(0, 0.3, p.shape) > 0.5
        )


class TestSeenByChecksum:
    @pytest.mark.parametrize(
        "make", [st.TunedSoftDice, st.TunedPatchLevel, st.ThresholdLevel, st.PlattScaling]
    )
    def test_a_fitted_case_under_another_name_is_recognised(self, make):
        fitted = make().fit(list(blobs(12)))
        assert {"fit 3", f"checksum:{SUMS[3]}"} <= fitted.used_ids
        with pytest.raises(SeenCasesError, match="12 of 300 cases have been used already"):
            certify(cases(checksums=SUMS), Target(0.2), used_ids=fitted.used_ids)
        assert certify(cases(), Target(0.2), used_ids=fitted.used_ids).n == 300

    def test_a_policy_recognises_its_cases_under_another_name(self):
        made = Policy.from_certificate(certify(cases(checksums=SUMS), Target(0.2)), Scoring("sdc"))
        made.reject_seen(["new"], checksums=["crc32:ffffffff"])
        with pytest.raises(SeenCasesError, match="'new'"):
            made.reject_seen(["new"], checksums=[SUMS[5]])

    @pytest.mark.parametrize(
        ("make", "columns"),
        [
            (st.ConformalDice, (CONFIDENCE, 1 - LOSS)),
            (st.ConformalVolume, (CONFIDENCE, 1 + CONFIDENCE, 1 + CONFIDENCE)),
        ],
    )
    def test_intervals_reject_calibration_cases_under_another_name(self, make, columns):
        used = cases(checksums=SUMS).used_ids
        new = [f"new {name}" for name in IDS]
        with pytest.raises(SeenCasesError):
            make().fit(*columns, ids=new, used_ids=used, checksums=SUMS)
        others = [f"other {each}" for each in SUMS]
        fitted = make().fit(*columns, ids=new, used_ids=used, checksums=others)
        assert f"checksum:{others[0]}" in fitted.used_ids
        column = np.array([None, np.nan, *others[2:]], object)  # as in a pandas column
        assert "checksum:nan" not in make().fit(*columns, ids=new, checksums=column).used_ids
        with pytest.raises(SeenCasesError):
            make().fit(*columns, ids=new, used_ids=used, checksums=np.array(SUMS))
        with pytest.raises(CaseLengthError, match="checksums: expected 300 values"):
            make().fit(*columns, ids=new, checksums=others[:7])

    def test_checksums_alone_are_enough(self):
        with pytest.raises(SeenCasesError, match="'case 1'"):
            st.reject_seen(None, ["checksum:b"], 2, checksums=["a", "b"])
