"""One way to save and load: each class by its own `load`, and all of them by `segtrust.load`."""

import json
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust._storage import _KINDS
from segtrust.calibration import Scaling
from segtrust.errors import PolicyError, SavedStateError
from tests.policy.certified import CASES, CERTIFICATE, GRID, policy
from tests.tuning_cases import blobs

RELEASE = Path(__file__).parent / "fixtures/release-0.1.0"


def watch():
    made = st.ExchangeabilityMartingale(GRID[::4], seed=3)
    made.extend([0.5, 0.2, 0.9])
    return made


def audit():
    made = st.AuditBound(st.Target(0.1, below_dice=0.8), population=50)
    made.extend([0, 1, 0])
    return made


def structures():
    found = st.certify_structures({"liver": CASES, "tumour": CASES}, st.Target(0.2))
    return st.StructurePolicies(
        {name: st.Policy.from_certificate(each, st.Scoring("sdc")) for name, each in found.items()}
    )


STORED = {
    "policy": policy,
    "structures": structures,
    "certificate": lambda: CERTIFICATE,
    "not certifiable": lambda: st.certify_threshold(GRID, 1 - GRID, target_risk=0.01),
    "patients": lambda: st.certify_threshold(
        GRID, (1 - GRID) / 2, target_risk=0.3, patients=np.arange(400) // 2
    ),
    "cases": lambda: CASES,
    "looks": lambda: CASES.looks,
    "intervals": lambda: st.ConformalDice(threshold=0.5).fit(GRID, (1 + GRID) / 2, ids=range(400)),
    "intervals, not fitted": st.ConformalDice,
    "volume intervals": lambda: st.ConformalVolume().fit(GRID, 1 + GRID, 2 * GRID, ids=range(400)),
    "curve": lambda: st.Recalibration.fit(GRID, GRID**2),
    "mean Dice": lambda: st.MeanDiceEstimator(level=0.9).fit(GRID, GRID**2, ids=range(400)),
    "mean Dice, not fitted": lambda: st.MeanDiceEstimator(seed=4),
    "temperature": lambda: st.TemperatureScaling(2.0),
    "Platt": lambda: st.PlattScaling(slope=0.7, intercept=0.1),
    "softmax": lambda: st.MulticlassTemperatureScaling(2.0),
    "martingale": watch,
    "audit": audit,
    "estimator": lambda: st.PatchLevel(size=7),
    "tuned estimator": lambda: st.TunedSoftDice().fit(blobs(6)),
    "empty rule": lambda: st.SoftDice(empty="agree"),
}


@pytest.mark.parametrize("name", STORED)
def test_what_is_saved_is_loaded_again(name, tmp_path):
    made, path = STORED[name](), tmp_path / "saved.json"
    made.save(path)
    for loaded in (st.load(path), type(made).load(path)):
        assert type(loaded) is type(made)
        assert loaded.to_dict() == made.to_dict()
        if type(made).__eq__ is not object.__eq__:
            assert loaded == made
    assert json.loads(path.read_text())["format"].rpartition("-")[0] in _KINDS


def test_every_kind_is_tried(tmp_path):
    kinds = set()
    for make in STORED.values():
        make().save(tmp_path / "saved.json")
        kinds.add(json.loads((tmp_path / "saved.json").read_text())["format"].rpartition("-")[0])
    assert kinds == set(_KINDS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("policy", st.Policy),
        ("structures", st.StructurePolicies),
        ("scaling", Scaling),
        ("martingale", st.ExchangeabilityMartingale),
    ],
)
def test_files_of_the_first_release(name, kind):
    loaded = st.load(RELEASE / f"{name}.json")
    assert isinstance(loaded, kind)
    assert loaded.to_dict() == kind.load(RELEASE / f"{name}.json").to_dict()


def test_a_loaded_estimate_continues_where_it_was(tmp_path):
    made = STORED["mean Dice"]()
    made.save(tmp_path / "mean.json")
    new = np.sqrt(GRID)
    assert st.load(tmp_path / "mean.json").estimate(new) == made.estimate(new)


@pytest.mark.parametrize("content", ["{}", "[1]", '{"format": 7}', '{"format": "segtrust-nothing-1"}'])
def test_other_files_are_rejected_with_the_formats(content, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(SavedStateError, match=r"a\.json: expected a file that a save method"):
        st.load(tmp_path / "a.json")
    with pytest.raises(SavedStateError, match="no such JSON file"):
        st.load(tmp_path / "b.json")


def test_another_version_and_another_kind(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"format": "segtrust-certificate-9"}')
    with pytest.raises(SavedStateError, match=r"'segtrust-certificate-9', of another version"):
        st.load(path)
    STORED["curve"]().save(path)
    with pytest.raises(PolicyError, match="expected format 'segtrust-policy-3'"):
        st.Policy.load(path)
    st.PatchLevel().save(path)
    with pytest.raises(SavedStateError, match="expected a SoftDice, got 'pla'"):
        st.SoftDice.load(path)


@pytest.mark.parametrize("name", ["certificate", "cases", "curve", "mean Dice", "intervals"])
def test_an_incomplete_file_is_named(name, tmp_path):
    path = tmp_path / "a.json"
    STORED[name]().save(path)
    values = json.loads(path.read_text())
    del values[next(key for key in values if key != "format")]
    path.write_text(json.dumps(values))
    with pytest.raises(SavedStateError, match=r"a\.json: .* is missing"):
        st.load(path)
