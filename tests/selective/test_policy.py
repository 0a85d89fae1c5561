"""Policies: what they decide, what they keep, and what they refuse to be used for."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

import segtrust
from segtrust.errors import ParameterError, PolicyError, UnknownNameError
from segtrust.selective.cases import CalibrationCases
from segtrust.selective.certify import certify, certify_threshold
from segtrust.selective.policy import Decision, Policy, Scoring, Standing
from segtrust.selective.structures import StructurePolicies, certify_structures
from segtrust.selective.targets import Target

GRID = np.linspace(0, 1, 400)
CASES = CalibrationCases(GRID, (1 - GRID) / 2, reference=GRID[::8])
MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def policy(**scoring):
    found = certify(CASES, [Target(0.2), Target(0.1, below_dice=0.6)])
    return Policy.from_certificate(found, Scoring(**{"estimator": "sdc", **scoring}), made=MADE)


class TestDecide:
    def test_at_the_threshold(self):
        made = policy()
        assert made.decide(made.threshold) is Decision.ACCEPT
        assert made.decide(np.nextafter(made.threshold, 0)) is Decision.DEFER

    @pytest.mark.parametrize(
        ("empty", "confidence", "decision"),
        [
            ("agree", 0.99, "no finding"),
            ("agree", 0.0, "defer"),
            ("paper", 0.99, "accept"),
            ("paper", 0.0, "defer"),
        ],
    )
    def test_empty_masks(self, empty, confidence, decision):
        assert policy(empty=empty).decide(confidence, empty_mask=True) == decision

    @pytest.mark.parametrize("confidence", [np.nan, np.inf])
    def test_what_is_no_confidence(self, confidence):
        with pytest.raises(ParameterError, match="finite"):
            policy().decide(confidence)


class TestFile:
    def test_round_trip(self, tmp_path):
        made = policy(estimator="tla", parameters={"tau": np.float64(0.3)}, predictor="fold 0")
        made.save(tmp_path / "policy.json")
        loaded = Policy.load(tmp_path / "policy.json")
        assert loaded.to_dict() == made.to_dict()
        assert loaded.operation == made.operation
        assert loaded.targets == made.targets
        assert loaded.standing is Standing.CERTIFIED

    def test_keeps_what_an_audit_needs(self):
        kept = policy().to_dict()
        assert kept["made"] == "2026-01-02T03:04:05+00:00"
        assert kept["versions"]["segtrust"] == segtrust.__version__
        assert kept["digest"] == CASES.digest
        assert (kept["n"], kept["delta"]) == (400, 0.05)
        assert [target["risk"] for target in kept["targets"]] == [0.2, 0.1]

    def test_an_edited_file_is_refused(self, tmp_path):
        path = tmp_path / "policy.json"
        policy().save(path)
        values = json.loads(path.read_text())
        values["operation"]["threshold"] = 0.01
        path.write_text(json.dumps(values))
        with pytest.raises(PolicyError, match=r"policy\.json: was changed after it was made"):
            Policy.load(path)

    @pytest.mark.parametrize("text", ["", "{", "[1]", "{}", '{"format": "other"}'])
    def test_what_is_no_policy(self, tmp_path, text):
        path = tmp_path / "policy.json"
        path.write_text(text)
        with pytest.raises(PolicyError, match=r"policy\.json: expected"):
            Policy.load(path)

    def test_an_incomplete_one(self):
        from segtrust.selective.policy import _checksum

        values = policy().to_dict()
        rest = {name: value for name, value in values.items() if name not in ("format", "checksum", "n")}
        with pytest.raises(PolicyError, match="no complete policy"):
            Policy.from_dict({"format": values["format"], **rest, "checksum": _checksum(rest)})

    def test_only_plain_values(self):
        with pytest.raises(ParameterError, match="plain values only"):
            policy(parameters={"model": object()}).to_dict()


class TestStanding:
    def test_the_same_predictor(self):
        made = policy(predictor="ensemble of 5 folds")
        assert made.for_predictor("ensemble of 5 folds").standing == "certified"

    def test_another_predictor(self):
        used = policy(predictor="single folds").for_predictor("ensemble")
        assert used.standing == "estimated"
        assert used.remark == "made with single folds, used with ensemble"

    def test_no_threshold_no_policy(self):
        found = certify_threshold(GRID[:30], GRID[:30], target_risk=0.1, reference=GRID[:30])
        with pytest.raises(PolicyError, match=r"There is no threshold.*Not certifiable"):
            Policy.from_certificate(found, Scoring("sdc"))


class TestScoring:
    @pytest.mark.parametrize(
        "changes",
        [
            {"estimator": "amsp"},
            {"parameters": {"tau": 0.4}},
            {"empty": "agree"},
            {"recalibration": {"t": 2.0}},
        ],
    )
    def test_made_otherwise(self, changes):
        usual = {"estimator": "sdc", "parameters": {"tau": 0.3}}
        with pytest.raises(PolicyError, match=f"{next(iter(changes))}: this policy was made with"):
            policy(**usual).check_scoring(Scoring(**{**usual, **changes}))

    def test_made_alike(self):
        policy(parameters={"sides": (1, 2)}, predictor="a").check_scoring(
            Scoring("sdc", {"sides": [1, 2]}, predictor="b")
        )

    def test_unknown_empty_policy(self):
        with pytest.raises(ParameterError, match="empty: expected 'paper' or 'agree'"):
            Scoring("sdc", empty="maybe")


class TestStructures:
    def policies(self, empty="agree", required=()):
        found = certify_structures({"liver": CASES, "tumour": CASES}, [Target(0.2)])
        made = {
            name: Policy.from_certificate(each, Scoring("sdc", empty=empty)) for name, each in found.items()
        }
        return StructurePolicies(made, required)

    def test_the_level_is_shared(self):
        assert self.policies().delta == pytest.approx(0.05)
        assert self.policies().policies["liver"].delta == 0.025

    @pytest.mark.parametrize(
        ("liver", "tumour", "decision"),
        [
            (0.9, 0.9, "accept"),
            (0.9, 0.01, "defer"),
            (0.9, None, "accept"),
            (None, None, "no finding"),
            (None, 0.01, "defer"),
        ],
    )
    def test_any_deferred_defers_the_case(self, liver, tumour, decision):
        found, each = self.policies().decide({"liver": liver, "tumour": tumour})
        assert found == decision
        assert set(each) == {"liver", "tumour"}

    def test_only_required_ones_count(self):
        found, each = self.policies(required=("liver",)).decide({"liver": 0.9, "tumour": 0.01})
        assert (found, each["tumour"]) == ("accept", "defer")

    def test_an_absent_structure_is_deferred_where_empty_masks_are_wrong(self):
        assert self.policies(empty="paper").decide({"liver": 0.9, "tumour": None})[0] == "defer"

    def test_names(self):
        with pytest.raises(
            UnknownNameError, match="no policy for 'spleen'; there are some for liver, tumour"
        ):
            self.policies(required=("spleen",))
        with pytest.raises(ParameterError, match="'tumour' is required"):
            self.policies().decide({"liver": 0.9})
        with pytest.raises(ParameterError, match="at least one structure"):
            certify_structures({}, [Target(0.1)])
        with pytest.raises(ParameterError, match="at least one structure"):
            StructurePolicies({})
