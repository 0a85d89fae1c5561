"""Policies for several structures: levels, decisions and files."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.errors import ParameterError, PolicyError, UnknownNameError
from segtrust.policy import Policy, Scoring, StructurePolicies, certify_structures
from segtrust.selective import CalibrationCases, Target
from tests.policy.certified import GRID, REFERENCE

CASES = CalibrationCases(GRID, (1 - GRID) / 2, reference=REFERENCE)


def policies(empty="agree", required=()):
    cases = CalibrationCases(GRID, (1 - GRID) / 2, reference=REFERENCE)  # nobody has looked at these yet
    found = certify_structures({"liver": cases, "tumour": cases}, [Target(0.2)])
    scoring = Scoring("sdc", empty=empty, predictor="fold 0")
    made = {name: Policy.from_certificate(each, scoring, structure=name) for name, each in found.items()}
    return StructurePolicies(made, required)


class TestCertify:
    def test_the_level_is_shared(self):
        assert policies().delta == pytest.approx(0.05)
        assert policies().policies["liver"].delta == 0.025

    def test_targets_of_their_own(self):
        targets = {"tumour": [Target(0.15), Target(0.1, below_dice=0.5)], "liver": [Target(0.2)]}
        found = certify_structures({"liver": CASES, "tumour": CASES}, targets)
        assert {name: each.targets for name, each in found.items()} == {
            name: tuple(each) for name, each in targets.items()
        }
        assert found["tumour"].threshold > found["liver"].threshold

    @pytest.mark.parametrize(
        ("targets", "error", "words"),
        [
            ({"liver": [Target(0.1)]}, ParameterError, "got none for 'tumour'"),
            (
                {name: [Target(0.1)] for name in ("liver", "tumour", "spleen")},
                UnknownNameError,
                "targets: no structure 'spleen'; there are liver, tumour",
            ),
            (
                {"liver": [Target(0.1)], "tumour": 0.1},
                ParameterError,
                "targets of 'tumour': expected a Target or a list",
            ),
            (0.1, ParameterError, "targets: expected a Target or a list"),
            ([], ParameterError, "at least one"),
        ],
    )
    def test_targets_that_do_not_fit(self, targets, error, words):
        with pytest.raises(error, match=words):
            certify_structures({"liver": CASES, "tumour": CASES}, targets)

    @pytest.mark.parametrize("name", [1, None, ""])
    def test_names_are_text(self, name):
        with pytest.raises(ParameterError, match="cases: expected the name of a structure as text, got"):
            certify_structures({name: CASES}, [Target(0.1)])

    @pytest.mark.parametrize("cases", [{}, CASES])
    def test_no_structures(self, cases):
        with pytest.raises(ParameterError, match="cases: expected cases by structure, at least one"):
            certify_structures(cases, [Target(0.1)])


class TestDecide:
    @pytest.mark.parametrize(
        ("liver", "tumour", "decision"),
        [
            (0.9, 0.9, "accept"),
            (0.9, 0.01, "defer"),
            (0.9, None, "defer"),
            (None, None, "defer"),
        ],
    )
    def test_any_deferred_defers_the_case(self, liver, tumour, decision):
        found, each = policies().decide({"liver": liver, "tumour": tumour})
        assert found == decision
        assert set(each) == {"liver", "tumour"}

    @pytest.mark.parametrize(
        ("empty", "tumour", "case", "structure"),
        [
            ("agree", 0.97, "accept", "no finding"),
            ("agree", 0.01, "defer", "defer"),  # the mask is empty, the map is not sure of it
            ("paper", 0.97, "defer", "defer"),
            ("paper", 0.0, "defer", "defer"),
        ],
    )
    def test_an_empty_mask(self, empty, tumour, case, structure):
        found, each = policies(empty).decide({"liver": 0.9, "tumour": tumour}, empty={"tumour"})
        assert (found, each["tumour"]) == (case, structure)

    def test_nothing_found(self):
        both = ["liver", "tumour"]
        assert policies().decide({"liver": 0.9, "tumour": 0.9}, empty=both)[0] == "no finding"

    def test_only_required_ones_count(self):
        found, each = policies(required=("liver",)).decide({"liver": 0.9, "tumour": 0.01})
        assert (found, each["tumour"]) == ("accept", "defer")

    def test_what_is_neither_required_nor_given_is_left_out(self):
        found, each = policies(required=("liver",)).decide({"liver": 0.9})
        assert (found, each) == ("accept", {"liver": "accept"})

    @pytest.mark.parametrize(
        ("confidences", "empty", "error", "words"),
        [
            (
                {"liver": 0.9, "tumour": 0.9, "spleen": 0.9},
                (),
                UnknownNameError,
                "confidences: no structure 'spleen'",
            ),
            ({"liver": 0.9}, (), ParameterError, "'tumour' is required"),
            ({"liver": 0.9, "tumour": None}, ["tumour"], ParameterError, "pass the confidence of that mask"),
            ({"liver": 0.9, "tumour": 0.9}, ["spleen"], UnknownNameError, "empty: no structure 'spleen'"),
            ({"liver": 0.9, "tumour": 0.9}, "tumour", ParameterError, "empty: expected names"),
            (
                {"liver": 0.9, "tumour": "0.9"},
                (),
                ParameterError,
                "confidence of 'tumour': expected a finite",
            ),
            ([0.9, 0.9], (), ParameterError, "confidences: expected numbers by structure"),
        ],
    )
    def test_invalid_confidences(self, confidences, empty, error, words):
        with pytest.raises(error, match=words):
            policies().decide(confidences, empty=empty)


class TestStanding:
    def test_certified_only_if_all_are(self):
        made = policies()
        assert made.status == "certified"
        other = made.policies["tumour"].for_predictor("ensemble")
        mixed = StructurePolicies({**made.policies, "tumour": other})
        assert mixed.status == "estimated"
        assert "Not every structure is certified, so there is no joint guarantee." in str(mixed)

    def test_what_it_says(self):
        said = str(policies())
        assert said.startswith(
            "Certified. A case is deferred if any of liver, tumour is deferred. Each guarantee"
        )
        assert "all of them hold together with 95 % confidence." in said
        assert "\nliver: Policy for liver (certified): accept" in said

    def test_what_is_required_cannot_be_changed(self):
        with pytest.raises(FrozenInstanceError):
            policies().required = ("liver",)

    def test_names(self):
        made = policies().policies
        with pytest.raises(
            UnknownNameError, match="required: no structure 'spleen'; there are liver, tumour"
        ):
            policies(required=("spleen",))
        with pytest.raises(ParameterError, match="at least one"):
            StructurePolicies({})
        with pytest.raises(ParameterError, match="required: expected names"):
            StructurePolicies(made, "liver")
        with pytest.raises(ParameterError, match="the policy for 'spleen' was made for 'liver'"):
            StructurePolicies({"spleen": made["liver"]})
        with pytest.raises(ParameterError, match="expected a Policy for 'liver'"):
            StructurePolicies({"liver": 0.5})


class TestFile:
    def test_round_trip(self, tmp_path):
        made = policies(required=("liver",))
        made.save(tmp_path / "both.json")
        loaded = StructurePolicies.load(tmp_path / "both.json")
        assert loaded == made
        assert loaded.decide({"liver": 0.9}) == made.decide({"liver": 0.9})

    def change(self, tmp_path, change):
        from segtrust._files import checksum

        values = policies().to_dict()
        change(values)
        rest = {name: each for name, each in values.items() if name not in ("format", "checksum")}
        values["checksum"] = checksum(rest)
        path = tmp_path / "both.json"
        path.write_text(json.dumps(values))
        return path

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda v: v.update(required=["spleen"]), "required: no structure 'spleen'"),
            (lambda v: v.update(more=1), "'more' is unknown"),
            (lambda v: v.pop("required"), "'required' is missing"),
            (lambda v: v.update(policies=[]), "has no attribute|expected"),
            (lambda v: v.update(format="segtrust-policy-2"), "expected format 'segtrust-structures-1'"),
            (lambda v: v["policies"]["liver"]["operation"].update(threshold=0.1), "liver: was changed after"),
        ],
    )
    def test_corrupt(self, tmp_path, change, words):
        with pytest.raises(PolicyError, match=rf"both\.json: .*({words})"):
            StructurePolicies.load(self.change(tmp_path, change))

    def test_edited(self, tmp_path):
        values = policies().to_dict()
        values["required"] = ["liver"]
        with pytest.raises(PolicyError, match="was changed after it was made"):
            StructurePolicies.from_dict(values)


def test_numbers_of_numpy_are_confidences():
    assert policies().decide({"liver": np.float32(0.9), "tumour": np.float64(0.9)})[0] == "accept"


@pytest.mark.needs("torch")
def test_tensors_are_confidences():
    import torch

    confidence = torch.tensor(0.9, requires_grad=True)
    assert policies().decide({"liver": confidence, "tumour": torch.tensor(0.9)})[0] == "accept"
    with pytest.raises(ParameterError, match="confidence of 'liver': expected a finite number"):
        policies().decide({"liver": torch.ones(2), "tumour": 0.9})
