"""Decisions of policies on rows, drift, and calibration cases among new ones."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust._files import plain_values
from segtrust.calibration import PlattScaling
from segtrust.confidence import PatchLevel, SoftDice, ThresholdLevel, TunedSoftDice
from segtrust.engine.calibration import (
    Calibration,
    calibrate_table,
    make_policy,
)
from segtrust.engine.score_table import ScoreTable
from segtrust.engine.scoring import parameters_of
from segtrust.engine.triage import (
    Triage,
    are_calibration_cases,
    check_drift,
    decide_rows,
    decisions_of_cases,
    load_policies,
)
from segtrust.errors import PolicyError, UnknownNameError
from segtrust.io import Stream, Table, read_table
from segtrust.maps import EmptyPolicy
from segtrust.policy import Decision, Policy, Reference, Scoring, StructurePolicies, certify_structures
from segtrust.selective import Target
from tests.policy.certified import CASES, MADE, policy
from tests.tuning_cases import blob, blobs

# Decisions on whole cases, the lists of them, and whether they still fit the policy.


ACCEPT, DEFER, NO_FINDING = Decision.ACCEPT, Decision.DEFER, Decision.NO_FINDING


@pytest.mark.parametrize(
    ("decisions", "together"),
    [
        (["accept"], ACCEPT),
        (["accept", "defer"], DEFER),
        (["no finding", "accept"], ACCEPT),
        (["no finding", "no finding"], NO_FINDING),
        (["no finding", "defer", "accept"], DEFER),
    ],
)
def test_a_case_is_deferred_if_any_structure_is(decisions, together):
    assert decisions_of_cases([{"case": "a", "decision": each} for each in decisions]) == {"a": together}


def test_cases_without_a_result_are_deferred():
    rows = [{"case": "a", "decision": "accept"}]
    assert decisions_of_cases(rows, ["a", "b"]) == {"a": DEFER, "b": DEFER}


def confidences(values, structure="organ"):
    return [{"case": str(i), "structure": structure, "sdc": value} for i, value in enumerate(values)]


def with_reference(confidences):
    return replace(policy(), reference=Reference(tuple(confidences)))


def test_drift_is_seen_and_nothing_where_nothing_can_be_compared():
    rng = np.random.default_rng(0)
    known = rng.uniform(0.6, 1.0, 200).tolist()
    same, other = rng.uniform(0.6, 1.0, 50), rng.uniform(0.2, 0.7, 50)
    policies = {"": with_reference(known)}
    assert not check_drift(confidences(same), policies)[""].alarm
    drift = check_drift(confidences(other), policies)
    assert Triage(ScoreTable.of([]), {}, drift).alarm
    assert drift[""].direction == "less confident"
    assert check_drift(confidences(same[:1]), policies) == {}
    assert check_drift(confidences(same), {"": policy()}) == {}


def test_structures_are_compared_each_with_its_own_and_share_the_level():
    known = np.linspace(0, 1, 100).tolist()
    policies = {"liver": with_reference(known), "tumour": with_reference(known)}
    rows = confidences(np.linspace(0, 1, 30), "liver") + confidences(np.linspace(0, 0.1, 30), "tumour")
    drift = check_drift(rows, policies, alpha=0.04)
    assert {name: test.alarm for name, test in drift.items()} == {"liver": False, "tumour": True}
    assert {test.alpha for test in drift.values()} == {0.02}


@pytest.fixture
def rows(tmp_path):
    made = []
    for case, margin, name in (
        ("b", 0.2, "b_prob.nii.gz"),
        ("a", 0.1, "a.npy"),
        ("v1.2", -0.1, "v1.2.npz"),
        ("set/c", -0.3, "c.npy"),
    ):
        path = tmp_path / "maps" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(case)
        decision = "accept" if margin > 0 else "defer"
        row = {"case": case, "structure": "organ", "margin": margin, "file": str(path), "decision": decision}
        made.append(row)
    return made


DECISIONS = {"a": ACCEPT, "b": ACCEPT, "v1.2": DEFER, "set/c": DEFER, "broken": DEFER}


def write_lists(folder, rows, decisions, *, link):
    Triage(ScoreTable.of(rows), decisions, {}).write(folder, link=link)


def test_lists_begin_with_the_least_trusted_and_name_what_failed(rows, tmp_path):
    write_lists(tmp_path / "out", rows, DECISIONS, link=False)
    listed = {
        name: read_table(tmp_path / f"out/{name}.csv").column("case")
        for name in ("accept", "defer", "no_finding")
    }
    assert listed == {"accept": ["a", "b"], "defer": ["set/c", "v1.2", "broken"], "no_finding": []}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "accept.csv",
        "defer.csv",
        "no_finding.csv",
    ]


def test_links_lead_to_the_maps_and_those_of_before_are_replaced(rows, tmp_path):
    write_lists(tmp_path / "out", rows, DECISIONS, link=True)
    links = {path.name: path.read_text() for path in (tmp_path / "out/defer").iterdir()}
    assert links == {"v1.2.npz": "v1.2", "set_c.npy": "set/c"}
    assert (tmp_path / "out/accept/b.nii.gz").read_text() == "b"
    write_lists(tmp_path / "out", rows, {**DECISIONS, "a": DEFER}, link=True)
    assert [path.name for path in (tmp_path / "out/accept").iterdir()] == ["b.nii.gz"]
    assert (tmp_path / "out/defer/a.npy").is_symlink()


def test_links_survive_that_all_is_moved(rows, tmp_path):
    write_lists(tmp_path / "out", rows, DECISIONS, link=True)
    (tmp_path / "moved").mkdir()
    for name in ("out", "maps"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    assert (tmp_path / "moved/out/accept/a.npy").read_text() == "a"


def test_cases_are_counted():
    found = Triage(ScoreTable.of([]), DECISIONS, {})
    assert {each: found.count(each) for each in Decision} == {ACCEPT: 2, DEFER: 3, NO_FINDING: 0}
    assert not found.alarm


def test_links_of_cases_that_are_called_alike(tmp_path):
    rows = []
    for number, case in enumerate(("x_y/z", "x/y_z")):
        path = tmp_path / f"{number}.npy"
        np.save(path, np.zeros((2, 2)))
        rows.append(
            {"case": case, "structure": "organ", "decision": "accept", "margin": 0.1, "file": str(path)}
        )
    for _ in range(2):
        write_lists(tmp_path / "out", rows, decisions_of_cases(rows), link=True)
        links = sorted((tmp_path / "out/accept").iterdir())
        assert [link.name for link in links] == ["x_y_z.npy", "x_y_z_1.npy"]
        assert {link.resolve().name for link in links} == {"0.npy", "1.npy"}


# What a policy decides on rows, by the estimator it was calibrated with.


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


# Calibration cases are recognised by name and confidence: names recur from one data set to the next.


COUNT = 300
RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(COUNT)
NAMES = [str(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A policy, and the confidences that are kept beside it."""
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    rows = [
        {"case": name, "structure": "organ", "sdc": c, "dice": (1 + c) / 2}
        for name, c in zip(NAMES, CONFIDENCE.tolist(), strict=True)
    ]
    table = Table.of(rows)
    make_policy(calibrate_table(table, Calibration("sdc", (Target(0.3),))), table).save(path)
    policy = load_policies(path)["organ"]
    return policy, policy.reference.confidences


def test_the_very_cases_are_recognised(made):
    policy, reference = made
    assert are_calibration_cases(NAMES, CONFIDENCE, policy, reference).all()
    rounded = np.array([float(f"{each:.12g}") for each in CONFIDENCE])
    assert are_calibration_cases(NAMES, rounded, policy, reference).all(), "a table may have fewer digits"


def test_others_of_the_same_names_are_new(made):
    policy, reference = made
    other = np.random.default_rng(1).random(COUNT)
    assert not are_calibration_cases(NAMES, other, policy, reference).any()
    near = CONFIDENCE * (1 + 1e-6)
    assert not are_calibration_cases(NAMES, near, policy, reference).any()


def test_others_of_the_same_confidence_are_new(made):
    policy, reference = made
    assert not are_calibration_cases([f"new {name}" for name in NAMES], CONFIDENCE, policy, reference).any()


def test_names_alone_where_no_confidences_are_known(made):
    policy, _ = made
    found = are_calibration_cases(["0", "new", "299"], [0.5, 0.5, np.nan], policy)
    assert found.tolist() == [True, False, True]


def test_no_cases_and_no_numbers(made):
    policy, reference = made
    assert are_calibration_cases([], [], policy, reference).size == 0
    assert not are_calibration_cases(["0"], [np.nan], policy, reference).any()


def test_zero_and_negative_confidences(made):
    policy, _ = made
    found = are_calibration_cases(["0", "1", "2"], [0.0, -0.25, 0.25], policy, [-0.25, 0.0])
    assert found.tolist() == [True, True, False]


def test_copies_count_once_in_the_drift_test():
    policies = {"": with_reference(np.linspace(0.4, 1.0, 200).tolist())}
    one = {"structure": "organ", "sdc": 0.45, "k": 5, "checksum": "crc32:1", "file": "a.npy"}
    others = [{**one, "sdc": 0.4 + at / 50, "checksum": f"crc32:{at + 2}"} for at in range(30)]
    alone = check_drift([one, *others], policies)[""]
    copied = check_drift([one] * 40 + others, policies)[""]
    assert copied.p_value == alone.p_value
    unknown = [{**one, "checksum": ""}] * 40 + others  # nothing tells that these are copies
    assert check_drift(unknown, policies)[""].p_value < alone.p_value
