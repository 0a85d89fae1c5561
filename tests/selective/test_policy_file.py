"""Policies as files: what is kept, and that nothing wrong is read."""

import json
import math

import numpy as np
import pytest

import segtrust
from segtrust.errors import PolicyError, SeenCasesError
from segtrust.saved import checksum
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.policy import Policy, Standing
from tests.selective.certified import CASES, GRID, policy


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.json"


def with_intervals():
    made = policy()
    bounds = ConformalDice(threshold=made.threshold)
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
    assert loaded.standing is Standing.CERTIFIED
    assert [each.name for each in path.parent.iterdir()] == ["policy.json"]


def test_round_trip_with_intervals(path):
    made = with_intervals()
    made.save(path)
    loaded = Policy.load(path)
    assert loaded == made
    assert loaded.intervals.interval([0.9]).lower == made.intervals.interval([0.9]).lower
    with pytest.raises(SeenCasesError):
        loaded.refuse(["patient 399"])
    with pytest.raises(SeenCasesError):
        loaded.intervals.interval([0.9], ids=["new 399"])


def test_no_id_is_in_the_file(path):
    with_intervals().save(path)
    assert "patient" not in path.read_text().replace('"patients"', "")
    assert "new" not in path.read_text()


def test_an_estimated_one(path):
    policy(predictor="a").for_predictor("b").save(path)
    assert Policy.load(path).remark == "made with a, used with b"


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


@pytest.mark.parametrize("name", [*policy().to_dict()])
def test_an_incomplete_one(path, name):
    write(path, lambda values: values.pop(name))
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


WRONG = {
    "threshold": ("operation", "threshold", math.nan),
    "threshold without an end": ("operation", "threshold", math.inf),
    "coverage": ("operation", "coverage", 1.5),
    "coverage_interval": ("operation", "coverage_interval", [0.9, 0.1]),
    "risks": ("operation", "risks", [0.1, "0.2"]),
    "delta": ("delta", 0.0),
    "delta as text": ("delta", "0.05"),
    "n": ("evidence", "n", 0),
    "n as a fraction": ("evidence", "n", 400.5),
    "units": ("evidence", "units", 401),
    "digest": ("evidence", "digest", "abc"),
    "target_risk": ("targets", 0, "risk", 1.5),
    "below_dice": ("targets", 1, "below_dice", -1),
    "made": ("made", "yesterday"),
    "made on no day": ("made", "2026-02-30T00:00:00+00:00"),
    "standing": ("standing", "sure"),
    "remark": ("standing", "estimated"),
    "empty": ("scoring", "empty", "maybe"),
    "p_value": ("procedure", "p_value", "t-test"),
    "step": ("procedure", "step", 2),
    "start_coverages": ("procedure", "start_coverages", 0.5),
    "used_ids": ("used_ids", "hashes", ["patient 7"]),
    "used_ids of others": ("used_ids", "salt", "pepper"),
    "level": ("intervals", "level", 2),
    "decision": ("intervals", "cells", 0, "decision", "perhaps"),
    "below": ("intervals", "cells", 0, "below", math.nan),
    "recalibration": ("intervals", "recalibration", "dice", [0.5, 0.1]),
    "intervals": ("intervals", "threshold", 0.9),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_with_a_fitting_checksum(path, name):
    *keys, value = WRONG[name]
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
