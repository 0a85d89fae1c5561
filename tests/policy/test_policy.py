"""Policies: their decisions, their guarantee, their file, and uses that they reject."""

import json
import math
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pytest

import segtrust
from segtrust._files import checksum
from segtrust.calibration import MulticlassTemperatureScaling, Scaling, TemperatureScaling
from segtrust.confidence import AverageMaxProbability, PatchLevel, SoftDice
from segtrust.errors import (
    CaseLengthError,
    CasesError,
    CaseValueError,
    ParameterError,
    PolicyError,
    SavedStateError,
    SeenCasesError,
)
from segtrust.policy import Decision, Policy, PolicyStatus, Scoring
from segtrust.selective import (
    CalibrationCases,
    CalibrationEvidence,
    ConformalDice,
    HashedIds,
    Procedure,
    Target,
    certify,
    certify_threshold,
)
from tests.policy.certified import CASES, CERTIFICATE, GRID, IDS, MADE, REFERENCE, policy

NEW_IDS = [f"new {i}" for i in range(400)]


class TestDecide:
    def test_at_the_threshold(self):
        made = policy()
        assert made.decide(made.threshold) is Decision.ACCEPT
        assert made.decide(np.nextafter(made.threshold, 0)) is Decision.DEFER
        assert made.decide(np.float32(1)) is made.decide(1) is Decision.ACCEPT

    @pytest.mark.parametrize(
        ("empty", "confidence", "decision"),
        [
            ("agree", 0.99, "no finding"),
            ("agree", 0.0, "defer"),
            ("paper", 0.99, "defer"),
            ("paper", 0.0, "defer"),
        ],
    )
    def test_empty_masks(self, empty, confidence, decision):
        assert policy(empty=empty).decide(confidence, empty_mask=True) == decision

    @pytest.mark.parametrize("confidence", [np.nan, np.inf, None, "0.5", True, np.array(True), ["0.5", 1]])
    def test_what_is_no_confidence(self, confidence):
        with pytest.raises(ParameterError, match=r"confidence: expected a (finite )?number"):
            policy().decide(confidence)

    @pytest.mark.parametrize("make", [list, tuple, np.array])
    def test_several_cases_at_once(self, make):
        threshold = policy().threshold
        confidences = [0.0, threshold, 1.0, np.nextafter(threshold, 0)]
        found = policy().decide(make(confidences))
        assert found.tolist() == ["defer", "accept", "accept", "defer"]
        assert found.tolist() == [policy().decide(each) for each in confidences]
        assert (found == Decision.ACCEPT).tolist() == (found == "accept").tolist()

    @pytest.mark.parametrize("empty", ["paper", "agree"])
    def test_an_empty_mask_for_each_case(self, empty):
        one, confidences = policy(empty=empty), [1.0, 1.0, 0.0, 0.0]
        flags = [True, False, True, False]
        expected = [one.decide(c, empty_mask=flag) for c, flag in zip(confidences, flags, strict=True)]
        assert one.decide(confidences, empty_mask=flags).tolist() == expected
        assert one.decide(confidences, empty_mask=np.array(flags)).tolist() == expected
        assert set(one.decide(confidences, empty_mask=True)) == {expected[0], "defer"}

    def test_no_cases_and_arrays_without_dimensions(self):
        assert policy().decide([]).tolist() == []
        assert policy().decide(np.array(1.0)) is Decision.ACCEPT
        assert policy().decide(np.float32(1.0), empty_mask=np.array(True)) is Decision.DEFER

    @pytest.mark.needs("pandas")
    def test_a_column_keeps_its_index(self):
        import pandas

        column = pandas.Series([1.0, 0.0], index=["b", "a"], name="sdc")
        found = policy().decide(column)
        assert isinstance(found, pandas.Series)
        assert found.to_dict() == {"b": "accept", "a": "defer"}
        assert found.name == "decision"
        assert policy().decide(column, empty_mask=column > 0.5).tolist() == ["defer", "defer"]
        with pytest.raises(CaseLengthError, match=r'Use frame\["column"\] or \.ravel\(\)'):
            policy().decide(column.to_frame())
        with pytest.raises(CaseValueError, match="got nan"):
            policy().decide(pandas.Series([0.5, None]))
        with pytest.raises(ParameterError, match="confidence: expected a number"):
            policy().decide(pandas.Series(["0.5"]))

    @pytest.mark.needs("torch")
    def test_tensors(self):
        import torch

        assert policy().decide(torch.tensor(1.0, requires_grad=True)) is Decision.ACCEPT
        found = policy().decide(torch.tensor([1.0, 0.0]), empty_mask=torch.tensor([False, True]))
        assert found.tolist() == ["accept", "defer"]
        with pytest.raises(CaseLengthError, match=r"\.ravel\(\)"):
            policy().decide(torch.ones(2, 1))

    @pytest.mark.parametrize(
        ("confidence", "error"),
        [
            ([0.5, np.nan], CaseValueError),
            ([[0.5, 0.9]], CaseLengthError),
            ([True, False], ParameterError),
            (["0.5", "0.9"], ParameterError),
            ([0.5, None], CaseValueError),
        ],
    )
    def test_what_are_no_confidences(self, confidence, error):
        with pytest.raises(error, match="confidence: expected"):
            policy().decide(confidence)

    @pytest.mark.parametrize("empty_mask", [[True], [0, 1], "no", None, np.zeros((2, 1), bool)])
    def test_one_answer_per_case(self, empty_mask):
        with pytest.raises(ParameterError, match="empty_mask: expected True or False, or one of them for"):
            policy().decide([0.5, 0.9], empty_mask=empty_mask)

    @pytest.mark.parametrize("empty_mask", ["no", None, 1, [True]])
    def test_whether_a_mask_is_empty_is_yes_or_no(self, empty_mask):
        with pytest.raises(ParameterError, match="empty_mask: expected True or False, got"):
            policy().decide(0.9, empty_mask=empty_mask)


class TestFingerprint:
    def test_is_the_checksum_of_the_file_for_any_predictor(self):
        made = policy()
        assert made.fingerprint == made.to_dict()["checksum"]
        assert made.for_predictor("another").fingerprint == made.fingerprint

    def test_tells_policies_of_one_table_apart(self):
        made = policy()
        other = replace(made, targets=tuple(replace(each, risk=0.3) for each in made.targets))
        assert (made.digest, made.fingerprint != other.fingerprint) == (other.digest, True)


class TestRecord:
    def test_keeps_what_an_audit_needs(self):
        made = policy()
        assert made.procedure == CERTIFICATE.procedure == Procedure(seed=0)
        assert made.evidence == CalibrationEvidence(
            400, 400, False, 50, 0, CASES.digest, tests=("adaptive-betting", "binomial")
        )
        assert (made.n, made.digest, made.delta) == (400, CASES.digest, 0.05)
        assert made.made == "2026-01-02T03:04:05+00:00"

    def test_patients_and_cases_set_aside(self):
        cases = CalibrationCases(GRID, (1 - GRID) / 2, patients=np.arange(400) // 2)
        made = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        assert made.evidence.patients
        assert (made.n, made.evidence.units) == (320, 160)
        assert made.evidence.references == made.evidence.set_aside == 80

    def test_refuses_the_calibration_cases_by_hashes(self):
        made = policy()
        assert not made.evidence.used_ids
        assert len(made.used_ids) == 400
        assert "patient 7" not in str(made.used_ids.to_dict())
        with pytest.raises(SeenCasesError, match=r"1 of 2 cases have been used already \('patient 7'\)"):
            made.reject_seen(["patient 7", "patient 700"])
        made.reject_seen(["patient 700"])
        made.reject_seen(iter(["patient 700"]))
        with pytest.raises(ParameterError, match="ids: expected the id of each case"):
            made.reject_seen(None)

    def test_cases_set_aside_are_refused_too(self):
        cases = CalibrationCases(GRID, (1 - GRID) / 2, ids=IDS)
        made = Policy.from_certificate(certify(cases, [Target(0.2)]), Scoring("sdc"))
        assert all(each in made.used_ids for each in IDS)

    def test_the_same_id_has_another_hash_in_another_policy(self):
        one, other = (HashedIds.of(["7"], salt) for salt in "ab")
        assert not one.hashes & other.hashes

    def test_without_ids_nobody_can_tell(self):
        found = certify_threshold(GRID, (1 - GRID) / 2, target_risk=0.2, reference=REFERENCE)
        with pytest.raises(PolicyError, match="had no ids"):
            Policy.from_certificate(found, Scoring("sdc")).reject_seen(["a"])

    def test_what_it_says(self):
        said = str(policy(predictor="fold 0"))
        assert said.startswith("Policy (certified): accept cases with a confidence (sdc) of at least 0.2")
        limits = "the mean loss of accepted cases is at most 0.2 and at most"
        assert f"Guarantee (95 % confidence): {limits}" in said
        assert "Valid for the model fold 0." in said
        tests = "betting test with adaptive stakes and exact binomial test"
        assert f"Certified on 400 cases ({tests} at candidate thresholds), 2026-01-02." in said
        cases = CalibrationCases(GRID, (1 - GRID) / 2, patients=np.arange(400) // 2, reference=REFERENCE)
        found = certify(cases, [Target(0.2)])
        patients = Policy.from_certificate(found, Scoring("sdc"), structure="liver")
        assert "Policy for liver" in str(patients)
        assert "is at most 0.2 (each patient counts once). Valid only for the model" in str(patients)
        assert "400 cases of 200 patients" in str(patients)
        assert "which has no name" in str(patients)
        assert "Policy for liver (estimated, not certified: new scanner): accept" in str(
            patients.estimated("new scanner")
        )
        assert "Expected, but not guaranteed: the mean loss" in str(patients.estimated("new scanner"))


WRONG = {
    "scoring": "sdc",
    "operation": None,
    "targets": [0.1],
    "delta": 1.5,
    "procedure": "betting",
    "used_ids": frozenset(["a"]),
    "status": "sure",
    "reason": "certified, but",
    "structure": None,
    "made": "yesterday",
    "versions": None,
}


class TestDirectly:
    @pytest.mark.parametrize("name", WRONG)
    def test_made_by_hand(self, name):
        with pytest.raises(ParameterError, match=f"{name}: expected"):
            replace(policy(), **{name: WRONG[name]})

    def test_made_without_a_zone(self):
        with pytest.raises(ParameterError, match="made: expected a time with its zone"):
            Policy.from_certificate(CERTIFICATE, Scoring("sdc"), made=datetime(2026, 1, 1))

    def test_as_many_risks_as_targets(self):
        with pytest.raises(ParameterError, match="risks: expected 1 numbers, one per target, got 2"):
            replace(policy(), targets=[Target(0.2)])
        with pytest.raises(ParameterError, match="risks: expected 3 numbers, one per target, got 2"):
            replace(policy(), targets=[Target(0.2)] * 3)

    def test_ids_are_never_readable(self):
        with pytest.raises(ParameterError, match="contains readable ids"):
            replace(policy(), evidence=CERTIFICATE.evidence)

    def test_hashes_of_other_cases(self):
        with pytest.raises(ParameterError, match="salted with the digest"):
            replace(policy(), used_ids=HashedIds.of(["a"], "pepper"))


class TestStanding:
    def test_the_same_predictor(self):
        made = policy(predictor="ensemble of 5 folds")
        assert made.for_predictor("ensemble of 5 folds") is made

    def test_another_predictor(self):
        used = policy(predictor="single folds").for_predictor("ensemble")
        assert used.status is PolicyStatus.ESTIMATED
        assert used.reason == "made with single folds, used with ensemble"

    @pytest.mark.parametrize(("ours", "theirs"), [("", "fold 0"), ("fold 0", ""), ("", "")])
    def test_what_has_no_name_is_not_known_to_be_the_same(self, ours, theirs):
        used = policy(predictor=ours).for_predictor(theirs)
        assert used.status == "estimated"
        assert "an unnamed model" in used.reason

    def test_earlier_reasons_are_kept(self):
        used = policy(predictor="a").estimated("other scanner").for_predictor("b").for_predictor("b")
        assert used.reason == "other scanner; made with a, used with b"
        assert used.for_predictor("a").status == "estimated"

    def test_a_reason_is_needed(self):
        with pytest.raises(ParameterError, match="reason: expected a text"):
            policy().estimated("")
        with pytest.raises(ParameterError, match="predictor: expected a name"):
            policy().for_predictor(None)

    def test_no_threshold_no_policy(self):
        found = certify_threshold(GRID[:30], 1 - GRID[:30], target_risk=0.1, reference=REFERENCE)
        with pytest.raises(PolicyError, match=r"There is no threshold.*Not certifiable"):
            Policy.from_certificate(found, Scoring("sdc"))


class TestIntervals:
    def bounds(self, ids=NEW_IDS, **options):
        options = {"threshold": policy().threshold, **options}
        return ConformalDice(**options).fit(GRID, (1 + GRID) / 2, ids=ids)

    def test_on_other_cases(self):
        made = policy().with_intervals(self.bounds())
        assert not made.intervals.interval([0.9]).trivial[0]
        with pytest.raises(SeenCasesError, match="'new 3'"):
            made.intervals.interval([0.9], ids=["new 3"])
        assert "new 3" not in str(made.to_dict())

    def test_on_the_cases_of_the_threshold(self):
        with pytest.raises(SeenCasesError, match="400 of 400 cases have been used already"):
            policy().with_intervals(self.bounds(ids=IDS))

    def test_used_ids_of_a_policy_can_be_handed_on(self):
        with pytest.raises(SeenCasesError, match="'patient 0'"):
            ConformalDice().fit(GRID, GRID, ids=IDS, used_ids=policy().used_ids)

    @pytest.mark.parametrize("salt", ["0" * 64, "f" * 64, ""])
    def test_hashed_for_another_policy(self, salt):
        elsewhere = replace(self.bounds(), used_ids=HashedIds.of(NEW_IDS, salt))
        with pytest.raises(PolicyError, match="hashed for another policy"):
            policy().with_intervals(elsewhere)

    def test_hashed_cases_of_the_threshold(self):
        here = replace(self.bounds(), used_ids=HashedIds.of(IDS, CASES.digest))
        with pytest.raises(PolicyError, match="based on cases that the threshold was chosen with"):
            policy().with_intervals(here)

    @pytest.mark.parametrize("threshold", [None, 0.5])
    def test_of_another_threshold(self, threshold):
        with pytest.raises(PolicyError, match=f"fitted for the threshold {threshold}, not for"):
            policy().with_intervals(self.bounds(threshold=threshold))

    def test_of_cases_without_ids(self):
        with pytest.raises(PolicyError, match="have no ids"):
            policy().with_intervals(self.bounds(ids=None))
        found = certify_threshold(GRID, (1 - GRID) / 2, target_risk=0.2, reference=REFERENCE)
        made = Policy.from_certificate(found, Scoring("sdc"))
        assert made.with_intervals(self.bounds(ids=None, threshold=made.threshold)).intervals.cells

    @pytest.mark.parametrize("bounds", [{"level": 0.9}, ConformalDice(), "bounds"])
    def test_what_are_no_intervals(self, bounds):
        with pytest.raises(PolicyError, match="expected a fitted ConformalDice"):
            policy().with_intervals(bounds)


class TestScoring:
    @pytest.mark.parametrize(
        "changes",
        [
            {"estimator": "amsp"},
            {"parameters": {"size": 4}},
            {"empty": "agree"},
            {"recalibration": {"t": 2.0}},
        ],
    )
    def test_made_otherwise(self, changes):
        usual = {"estimator": "pla", "parameters": {"size": 3}}
        with pytest.raises(PolicyError, match=f"{next(iter(changes))}: this policy was made with"):
            policy(**usual).check_scoring(Scoring(**{**usual, **changes}))

    def test_made_alike(self):
        policy(estimator="own", parameters={"sides": (1, 2)}, predictor="a").check_scoring(
            Scoring("own", {"sides": [1, 2]}, predictor="b")
        )

    def test_ids_of_a_recalibration_are_left_out(self):
        scaling = TemperatureScaling(2.0, used_ids=frozenset(["patient 999"]), n_cases=1)
        made = policy(recalibration=scaling.to_dict())
        assert "patient 999" not in str(made.to_dict())
        made.check_scoring(Scoring("sdc", recalibration=scaling.to_dict()))
        made.check_scoring(Scoring("sdc", recalibration=TemperatureScaling(2.0, n_cases=7).to_dict()))

    def test_a_recalibration_is_read_back(self, tmp_path):
        policy(recalibration=TemperatureScaling(2.0, n_cases=3).to_dict()).save(tmp_path / "policy.json")
        saved = Policy.load(tmp_path / "policy.json").scoring.recalibration
        assert Scaling.from_dict(saved) == TemperatureScaling(2.0, n_cases=3)

    def test_own_cases_are_refused(self):
        scaling = TemperatureScaling(2.0, used_ids=frozenset(["patient 99"]))
        with pytest.raises(SeenCasesError, match="patient 99"):
            policy(recalibration=scaling.to_dict())
        with pytest.raises(SeenCasesError, match="patient 98"):
            policy(estimator="sdc-tuned", parameters={"weight": 0.5, "used_ids": ["patient 98"]})
        named = replace(Scoring("tla", {"tau": 0.3, "used_ids": ["patient 97"]}), predictor="fold 0")
        with pytest.raises(SeenCasesError, match="patient 97"):
            Policy.from_certificate(CERTIFICATE, named)
        nameless = certify(CalibrationCases(GRID, (1 - GRID) / 2, reference=REFERENCE), [Target(0.2)])
        with pytest.raises(ParameterError, match=r"certificate: its cases have no ids.* Use certify"):
            Policy.from_certificate(nameless, named)

    def test_ids_are_not_letters(self):
        with pytest.raises(ParameterError, match="used_ids: expected a collection of ids, got 'abc'"):
            Scoring("sdc", {"used_ids": "abc"})

    def test_the_empty_masks_are_those_of_the_estimator(self):
        made = Policy.from_certificate(CERTIFICATE, Scoring.of(SoftDice(empty="agree")))
        assert (made.scoring.empty, made.scoring.parameters) == ("agree", {})
        assert made.decide(0.99, empty_mask=True) is Decision.NO_FINDING
        with pytest.raises(ParameterError, match="empty: the estimator has 'paper', got 'agree'"):
            Scoring.of(SoftDice(), empty="agree")

    def test_what_is_usual_need_not_be_said(self):
        policy().check_scoring(Scoring.of(SoftDice()))
        policy(estimator="pla").check_scoring(Scoring.of(PatchLevel()))
        with pytest.raises(PolicyError, match=r"parameters: .* with \{'size': 10\}, .* with \{'size': 20\}"):
            policy(estimator="pla").check_scoring(Scoring.of(PatchLevel(20)))
        policy(estimator="own").check_scoring(Scoring("own"))

    def test_what_cannot_score_a_map_becomes_no_policy(self):
        with pytest.raises(PolicyError, match=r"pla: .*'sze'"):
            policy(estimator="pla", parameters={"sze": 3})
        with pytest.raises(SavedStateError, match=r"expected one of temperature, platt, got 'multiclass"):
            policy(recalibration=MulticlassTemperatureScaling(2.0).to_dict())

    def test_an_estimator_that_no_package_offers_becomes_no_policy(self):
        @dataclass(frozen=True)
        class Half(PatchLevel):
            name = "half"

        class OtherSoftDice(AverageMaxProbability):
            name = "sdc"

        class Derived(SoftDice):  # a policy would make the estimator that is registered
            pass

        for estimator in (Half(), OtherSoftDice(), Derived()):
            with pytest.raises(ParameterError, match=r"estimator: .* cannot be stored in a policy"):
                Scoring.of(estimator)

    def test_later_changes_do_not_reach_it(self):
        parameters = {"sides": [1, 2]}
        made = Scoring("sdc", parameters)
        parameters["sides"].append(3)
        assert made.parameters == {"sides": [1, 2]}

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"empty": "maybe"}, "empty: expected 'paper' or 'agree'"),
            ({"estimator": ""}, "estimator: expected a name"),
            ({"predictor": None}, "predictor: expected a name"),
            ({"parameters": [1]}, "parameters: expected a mapping"),
            ({"parameters": {"model": object()}}, "parameters: expected plain values only"),
            ({"parameters": {"tau": np.nan}}, "parameters: expected plain values only"),
        ],
    )
    def test_refusals(self, changes, words):
        with pytest.raises(ParameterError, match=words):
            Scoring(**{"estimator": "sdc", **changes})


def test_a_target_of_one_is_kept_where_nothing_is_accepted():
    """No case is accepted, so no risk was observed: None, and no warning."""
    cases = CalibrationCases(np.linspace(0, 0.4, 50), np.ones(50), reference=np.linspace(0.5, 1, 20))
    found = certify(cases, [Target(1.0)], procedure=Procedure(start_coverages=(1.0,)))
    assert (found.coverage, found.operation.risks) == (0.0, (None,))
    made = Policy.from_certificate(found, Scoring("sdc"), made=MADE)
    assert Policy.from_dict(made.to_dict()) == made
    assert issubclass(SeenCasesError, CasesError)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.json"


def with_intervals():
    made = policy()
    bounds = ConformalDice(threshold=made.threshold, predictor="isotonic")
    return made.with_intervals(bounds.fit(GRID, (1 + GRID) / 2, ids=[f"new {i}" for i in range(400)]))


def write(path, change, *, sealed=True):
    """Write a policy after a change; sealed with a checksum that fits, as if a program had written it."""
    values = with_intervals().to_dict()
    change(values)
    if sealed and "checksum" in values:
        rest = {name: each for name, each in values.items() if name not in ("format", "checksum")}
        values["checksum"] = checksum(rest)
    path.write_text(json.dumps(values))


def setting(*keys, to):
    def change(values):
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = to

    return change


def test_round_trip(path):
    made = policy(estimator="tla", parameters={"tau": np.float64(0.3)}, predictor="fold 0")
    made.save(path)
    loaded = Policy.load(path)
    assert loaded == made
    assert loaded.to_dict() == made.to_dict()
    assert loaded.status is PolicyStatus.CERTIFIED
    assert [each.name for each in path.parent.iterdir()] == ["policy.json"]


def test_round_trip_with_intervals(path):
    made = with_intervals()
    made.save(path)
    loaded = Policy.load(path)
    assert loaded == made
    assert loaded.intervals.interval([0.9]).lower == made.intervals.interval([0.9]).lower
    with pytest.raises(SeenCasesError):
        loaded.reject_seen(["patient 399"])
    with pytest.raises(SeenCasesError):
        loaded.intervals.interval([0.9], ids=["new 399"])


def test_no_id_is_in_the_file(path):
    with_intervals().save(path)
    assert "patient" not in path.read_text().replace('"patients"', "")
    assert "new" not in path.read_text()


def test_an_estimated_one(path):
    policy(predictor="a").for_predictor("b").save(path)
    assert Policy.load(path).reason == "made with a, used with b"


def test_keeps_what_an_audit_needs():
    kept = policy().to_dict()
    assert kept["made"] == "2026-01-02T03:04:05+00:00"
    assert kept["versions"]["segtrust"] == segtrust.__version__
    assert kept["evidence"] == {
        "n": 400,
        "units": 400,
        "patients": False,
        "references": 50,
        "set_aside": 0,
        "digest": CASES.digest,
        "tests": ["adaptive-betting", "binomial"],
    }
    assert kept["procedure"]["p_value"] == "suited"
    assert kept["procedure"]["start_coverages"] == [0.5]
    assert [target["risk"] for target in kept["targets"]] == [0.2, 0.1]
    assert len(kept["used_ids"]["hashes"]) == 400


def test_an_edited_file_is_refused(path):
    write(path, setting("operation", "threshold", to=0.01), sealed=False)
    with pytest.raises(PolicyError, match=r"policy\.json: was changed after it was made"):
        Policy.load(path)


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"format": "other"}', "3", "null", "[" * 99999])
def test_what_is_no_policy(path, text):
    path.write_text(text)
    with pytest.raises(PolicyError, match=r"policy\.json: expected"):
        Policy.load(path)


def test_another_version(path):
    write(path, setting("format", to="segtrust-policy-1"))
    with pytest.raises(PolicyError, match=r"policy\.json: .*got 'segtrust-policy-1', of another version"):
        Policy.load(path)


def test_an_incomplete_one(path):
    for name in policy().to_dict():
        write(path, lambda values, name=name: values.pop(name))
        with pytest.raises(PolicyError, match=rf"policy\.json: .*('{name}' is missing|format)"):
            Policy.load(path)


@pytest.mark.parametrize("part", ["scoring", "operation", "procedure", "evidence", "used_ids", "intervals"])
def test_incomplete_parts(path, part):
    name = next(iter(with_intervals().to_dict()[part]))
    write(path, lambda values: values[part].pop(name))
    with pytest.raises(PolicyError, match=rf"policy\.json: {part}: '{name}' is missing"):
        Policy.load(path)
    write(path, setting(part, "more", to=1))
    with pytest.raises(PolicyError, match=rf"policy\.json: {part}: 'more' is unknown"):
        Policy.load(path)
    write(path, setting(part, to=[1]))
    with pytest.raises(PolicyError, match=rf"policy\.json: {part}: expected a mapping with {name}"):
        Policy.load(path)


def test_an_unknown_key(path):
    write(path, setting("more", to=1))
    with pytest.raises(PolicyError, match=r"policy\.json: 'more' is unknown; expected format, scoring"):
        Policy.load(path)


WRONG_IN_FILE = {
    "threshold": ("operation", "threshold", math.nan),
    "delta": ("delta", 0.0),
    "n": ("evidence", "n", 0),
    "target_risk": ("targets", 0, "risk", 1.5),
    "made": ("made", "yesterday"),
    "status": ("standing", "sure"),
    "reason": ("standing", "estimated"),
    "empty": ("scoring", "empty", "maybe"),
    "p_value": ("procedure", "p_value", "t-test"),
    "used_ids": ("used_ids", "hashes", ["patient 7"]),
    "used_ids of others": ("used_ids", "salt", "pepper"),
    "level": ("intervals", "level", 2),
    "decision": ("intervals", "cells", 0, "decision", "perhaps"),
    "recalibration": ("intervals", "recalibration", "dice", [0.5, 0.1]),
    "intervals": ("intervals", "threshold", 0.9),
}


@pytest.mark.parametrize("name", WRONG_IN_FILE)
def test_a_wrong_value_with_a_fitting_checksum(path, name):
    *keys, value = WRONG_IN_FILE[name]
    write(path, setting(*keys, to=value))
    with pytest.raises(PolicyError, match=rf"policy\.json: (.*: )?{name.split()[0]}: ") as found:
        Policy.load(path)
    assert str(found.value).count("policy.json") == 1


def test_how_masks_were_made_is_kept_only_where_it_is_unusual(path):
    usual, sought = policy(), policy(decode="dice-optimal")
    assert "decode" not in usual.to_dict()["scoring"]  # policies of earlier versions keep their fingerprints
    sought.save(path)
    assert Policy.load(path) == sought
    assert sought.fingerprint != usual.fingerprint
    with pytest.raises(PolicyError, match=r"decode: this policy was made with 'dice-optimal'"):
        sought.check_scoring(usual.scoring)


def test_a_way_to_make_masks_that_is_not_known_is_refused():
    with pytest.raises(segtrust.errors.ParameterError, match="decode: expected threshold or dice-optimal"):
        policy(decode="best")


POLICY = policy()


@pytest.mark.parametrize(
    ("old", "new"), [("standing", "status"), ("remark", "reason"), ("refuse", "reject_seen")]
)
def test_attributes_of_the_first_release_still_work_with_a_warning(old, new):
    with pytest.warns(DeprecationWarning, match=f"Policy.{old} was renamed: use {new}"):
        assert getattr(POLICY, old) == getattr(POLICY, new)


def test_keys_in_files_stay_those_of_the_first_release():
    values = policy().estimated("another scanner").to_dict()
    assert (values["standing"], values["remark"]) == ("estimated", "another scanner")
    assert not {"status", "reason"} & set(values)


def test_a_policy_names_a_loss_other_than_that_of_the_dice(tmp_path):
    targets = tuple(replace(each, below_dice=None, loss="hamming") for each in policy().targets)
    made = replace(policy(), targets=targets)
    made.save(tmp_path / "policy.json")
    assert Policy.load(tmp_path / "policy.json") == made
    assert "the mean loss (Hamming loss) of accepted cases is at most" in str(made)
    assert all("loss" not in target for target in policy().to_dict()["targets"])  # as in release 0.1


def test_masked_confidences_are_rejected():
    with pytest.raises(ParameterError, match="expected a number for every case, got masked values"):
        policy().decide(np.ma.masked_array([0.9, 0.95], mask=[True, False]))
    assert policy().decide(np.ma.masked_array([0.9, 0.05], mask=False)).tolist() == ["accept", "defer"]


@pytest.mark.parametrize("confidence", [93.0, [0.9, 93.0], np.float32(1.1)])
def test_a_confidence_above_1_is_rejected(confidence):
    with pytest.raises(
        ParameterError, match=r"expected at most 1, as sdc gives it, got .* percentage by 100"
    ):
        policy().decide(confidence)
    of_others = policy(estimator="of-others")
    assert np.all(np.asarray(of_others.decide(confidence)).astype(str) == "accept")
    assert policy().decide(1.0 + 1e-7) == "accept"  # rounding of single precision


@pytest.mark.needs("pandas")
def test_columns_with_different_indices_are_rejected():
    import pandas

    confidence = pandas.Series([0.9, 0.95], index=["a", "b"])
    is_empty = pandas.Series([True, False], index=["b", "a"])
    with pytest.raises(ParameterError, match="confidence, empty_mask: expected pandas columns with the same"):
        policy().decide(confidence, empty_mask=is_empty)
    decided = policy().decide(confidence, empty_mask=is_empty.reindex(confidence.index))
    assert decided.to_dict() == {"a": "accept", "b": "defer"}


@pytest.mark.needs("torch")
def test_tensors_with_a_gradient_are_decided_on():
    import torch

    tensor = torch.tensor([0.9, 0.05], requires_grad=True)
    for confidence in (tensor, list(tensor), tensor.bfloat16(), [tensor[0], 0.05]):
        assert policy().decide(confidence).tolist() == ["accept", "defer"]
    assert policy().decide(tensor[0]) == "accept"
    assert policy().decide(list(tensor), empty_mask=[torch.tensor(True), False]).tolist() == ["defer"] * 2


def test_the_representation_names_the_loss():
    certificate = certify(CASES, [Target(0.2, loss="hamming"), Target(0.1, below_dice=0.6)])
    shown = repr(Policy.from_certificate(certificate, Scoring("sdc")))
    assert "mean loss (Hamming loss) <= 0.2, share below Dice 0.6 <= 0.1" in shown
