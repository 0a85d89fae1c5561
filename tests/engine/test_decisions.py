"""What a policy decides on rows, by the estimator it was calibrated with."""

import numpy as np
import pytest

from segtrust._files import plain_values
from segtrust.calibration import PlattScaling
from segtrust.confidence import PatchLevel, SoftDice, ThresholdLevel, TunedSoftDice
from segtrust.engine.decisions import decide_rows, load_policies, parameters_of
from segtrust.errors import PolicyError, UnknownNameError
from segtrust.io.rows import Stream
from segtrust.maps import EmptyPolicy
from segtrust.policy import Policy, Scoring, StructurePolicies, certify_structures
from segtrust.selective import Target
from tests.policy.certified import CASES, MADE, policy
from tests.tuning_cases import blob, blobs


def both():
    found = certify_structures(
        {"liver": CASES, "tumour": CASES}, {"liver": [Target(0.2)], "tumour": [Target(0.3)]}
    )
    return StructurePolicies(
        {
            name: Policy.from_certificate(each, Scoring("sdc"), structure=name, made=MADE)
            for name, each in found.items()
        }
    )


def row(confidence, structure="foreground", k=5, column="sdc"):
    return {"case": "a", "structure": structure, "k": k, column: confidence}


def test_a_policy_and_one_of_several_structures_are_read(tmp_path):
    policy().save(tmp_path / "one.json")
    assert load_policies(tmp_path / "one.json") == {"": policy()}
    both().save(tmp_path / "two.json")
    assert load_policies(tmp_path / "two.json") == both().policies


@pytest.mark.parametrize("content", ["{}", "[1]", "nonsense", '{"policies": {}}', '"text"'])
def test_what_is_no_policy_is_refused_with_its_file(tmp_path, content):
    (tmp_path / "policy.json").write_text(content)
    with pytest.raises(PolicyError, match=r"policy\.json"):
        load_policies(tmp_path / "policy.json")


def test_rows_are_decided_at_the_threshold_and_by_the_margin():
    one = policy()
    found = decide_rows({"": one})([row(one.threshold), row(np.nextafter(one.threshold, 0))])
    assert [each["decision"] for each in found] == ["accept", "defer"]
    assert found[0]["margin"] == 0.0
    assert found[1]["margin"] < 0.0
    assert {each["policy"] for each in found} == {one.fingerprint}


def test_an_empty_mask_is_no_finding_only_where_it_may_be_right():
    rows = [row(1.0, k=0)]
    assert decide_rows({"": policy()})(rows)[0]["decision"] == "defer"
    assert decide_rows({"": policy(empty="agree")})(rows)[0]["decision"] == "no finding"


def test_each_structure_has_its_own_threshold():
    policies = both().policies
    between = (policies["liver"].threshold + policies["tumour"].threshold) / 2
    decided = decide_rows(policies)([row(between, "liver"), row(between, "tumour")])
    assert [each["decision"] for each in decided] == ["defer", "accept"]


def test_a_stream_of_rows_is_decided_as_it_is_read_and_refused_as_a_whole():
    rows = [row(0.5, "kidney"), row(0.5, "liver")]
    decided = decide_rows(both().policies)(Stream(lambda: iter(rows)))
    assert isinstance(decided, Stream)
    assert list(decided) == list(decide_rows(both().policies)(rows))
    with pytest.raises(PolicyError, match="got kidney"):
        decide_rows(both().policies)(Stream(lambda: iter(rows[:1])))


def test_structures_without_a_policy_are_refused_unless_there_are_others():
    with pytest.raises(
        PolicyError, match=r"expected one that the policy is for \(liver, tumour\), got kidney"
    ):
        decide_rows(both().policies)([row(0.5, "kidney")])
    kidney, liver = decide_rows(both().policies)([row(0.5, "kidney"), row(0.5, "liver")])
    assert (kidney["decision"], kidney["margin"], kidney["policy"]) == ("", None, "")
    assert liver["decision"]


@pytest.mark.parametrize(
    "estimator",
    [
        SoftDice(),
        SoftDice(EmptyPolicy.AGREE),
        PatchLevel(size=20),
        ThresholdLevel(tau=0.3),
        TunedSoftDice().fit(blobs(6)),
    ],
)
def test_the_estimator_of_a_policy_is_that_of_the_calibration(estimator):
    scoring = Scoring(
        **plain_values({"estimator": estimator.name, "parameters": parameters_of(estimator)}, "scoring")
    )
    made = scoring.make_estimator()
    case = blob(7)
    assert made.score(case) == estimator.score(case)
    assert parameters_of(made) == parameters_of(estimator)


@pytest.mark.needs("sklearn")
def test_a_forest_of_a_policy_is_that_of_the_calibration():
    from segtrust.confidence import SoftDiceFeatureAggregation

    fitted = SoftDiceFeatureAggregation(trees=5).fit(blobs(8))
    parameters = plain_values(parameters_of(fitted), "parameters")
    assert Scoring("aef-sdc", parameters).make_estimator().score(blob(9)) == fitted.score(blob(9))


def test_an_estimator_that_is_not_known():
    with pytest.raises(UnknownNameError, match="Unknown estimator 'sdk'; available: aef"):
        Scoring("sdk").make_estimator()


def test_parameters_of_another_estimator_are_refused():
    with pytest.raises(PolicyError, match=r"policy: sdc: .*unexpected keyword argument 'size'"):
        Scoring("sdc", {"size": 10}).make_estimator()


def test_the_recalibration_of_a_policy_is_that_of_the_calibration():
    scaling = PlattScaling(slope=0.5, intercept=-1.0, used_ids=frozenset(["a"]), n_cases=1)
    kept = Scoring("sdc", recalibration=scaling.to_dict()).make_scaling()
    assert kept.curve == scaling.curve
    assert kept.used_ids == frozenset()
    assert Scoring("sdc").make_scaling() is None
