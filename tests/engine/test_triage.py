"""Decisions on whole cases, the lists of them, and whether they still fit the policy."""

import numpy as np
import pytest

from segtrust.engine.triage import Triage, check_drift, decisions_of_cases, write_lists
from segtrust.io.tables import read_table
from segtrust.policy import Decision
from tests.policy.certified import policy

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


def test_drift_is_seen_and_nothing_where_nothing_can_be_compared():
    rng = np.random.default_rng(0)
    known = rng.uniform(0.6, 1.0, 200).tolist()
    same, other = rng.uniform(0.6, 1.0, 50), rng.uniform(0.2, 0.7, 50)
    policies = {"": policy()}
    assert not check_drift(confidences(same), policies, {"": known})[""].alarm
    drift = check_drift(confidences(other), policies, {"": known})
    assert Triage({}, drift).alarm
    assert drift[""].direction == "less confident"
    assert check_drift(confidences(same[:1]), policies, {"": known}) == {}
    assert check_drift(confidences(same), policies, {}) == {}


def test_structures_are_compared_each_with_its_own_and_share_the_level():
    policies = {"liver": policy(), "tumour": policy()}
    rows = confidences(np.linspace(0, 1, 30), "liver") + confidences(np.linspace(0, 0.1, 30), "tumour")
    known = np.linspace(0, 1, 100).tolist()
    drift = check_drift(rows, policies, {"liver": known, "tumour": known}, alpha=0.04)
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
        made.append({"case": case, "structure": "organ", "margin": margin, "file": str(path)})
    return made


DECISIONS = {"a": ACCEPT, "b": ACCEPT, "v1.2": DEFER, "set/c": DEFER, "broken": DEFER}


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
    found = Triage(DECISIONS, {})
    assert {each: found.count(each) for each in Decision} == {ACCEPT: 2, DEFER: 3, NO_FINDING: 0}
    assert not found.alarm


def test_links_of_cases_that_are_called_alike(tmp_path):
    rows = []
    for number, case in enumerate(("x_y/z", "x/y_z")):
        path = tmp_path / f"{number}.npy"
        np.save(path, np.zeros((2, 2)))
        rows.append({"case": case, "decision": "accept", "margin": 0.1, "file": str(path)})
    for _ in range(2):
        write_lists(tmp_path / "out", rows, decisions_of_cases(rows), link=True)
        links = sorted((tmp_path / "out/accept").iterdir())
        assert [link.name for link in links] == ["x_y_z.npy", "x_y_z_1.npy"]
        assert {link.resolve().name for link in links} == {"0.npy", "1.npy"}
