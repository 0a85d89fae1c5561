"""From a score table to policies and the confidences they are compared with later."""

import json
from dataclasses import replace

import numpy as np
import pytest

from segtrust.calibration import TemperatureScaling
from segtrust.engine.calibration import (
    Calibration,
    calibrate_table,
    make_policy,
)
from segtrust.engine.triage import load_policies
from segtrust.errors import CaseValueError, ParameterError, SavedStateError, SeenCasesError, WrongContentError
from segtrust.io import Table
from segtrust.policy import Policy, reference_path
from segtrust.selective import CalibrationCases, Target, certify

COUNT = 400
GRID = np.linspace(0, 1, COUNT)


def rows(structure="organ", **more):
    return [
        {"case": str(i), "structure": structure, "group": f"p{i // 4}", "sdc": c, "dice": (1 + c) / 2, **more}
        for i, c in enumerate(GRID.tolist())
    ]


HOW = Calibration("sdc", (Target(0.2),), predictor="fold 0")


def test_the_certificate_is_that_of_the_vectors():
    certificate, scoring = calibrate_table(Table.of(rows()), HOW)["organ"]
    by_hand = certify(CalibrationCases(GRID, 1 - (1 + GRID) / 2, ids=map(str, range(COUNT))), [Target(0.2)])
    assert certificate.threshold == by_hand.threshold
    assert certificate.digest == by_hand.digest
    assert (scoring.estimator, scoring.predictor, scoring.recalibration) == ("sdc", "fold 0", None)


def test_a_column_of_ones_own_is_the_loss():
    table = Table.of([{**row, "surface": 0.5 * (1 - row["sdc"]), "dice": 0.0} for row in rows()])
    own = calibrate_table(table, Calibration("sdc", (Target(0.2),), loss="surface"))["organ"][0]
    assert own.threshold == calibrate_table(Table.of(rows()), HOW)["organ"][0].threshold


def test_a_column_called_loss_is_taken_before_the_dice():
    table = Table.of(rows(loss=0.0))
    assert calibrate_table(table, HOW)["organ"][0].coverage > 0.9


def test_empty_masks_rank_last_where_they_are_never_accepted():
    """aMSP rates empty maps as most confident; their losses of 1 would spoil every threshold."""
    empty = [{**row, "case": f"e{i}", "k": 0, "sdc": 0.999, "dice": 0.0} for i, row in enumerate(rows()[:60])]
    table = [{**row, "k": 5} for row in rows()]
    # The exact binomial test does not depend on the order of the cases, and so on their confidences.
    how = replace(
        HOW,
        targets=(Target(0.2, below_dice=0.6),),
        reference={"organ": np.linspace(0.001, 0.999, 50).tolist()},
    )
    found = calibrate_table(Table.of([*table, *empty]), how)["organ"][0]
    last = calibrate_table(Table.of([*table, *({**row, "sdc": -1.0} for row in empty)]), how)["organ"][0]
    agree = Table.of([*table, *empty], {"empty": "agree"})
    assert found.certified
    assert found.operation.threshold == last.operation.threshold
    assert not calibrate_table(agree, how)["organ"][0].certified


def test_empty_masks_with_a_small_loss_certify_nothing_for_the_others():
    """A loss of one's own may be 0 for empty masks, which are never accepted: half of the cases here."""
    table = [{**row, "k": 5, "own": 0.3} for row in rows()]
    empty = [{**row, "case": f"e{i}", "k": 0, "own": 0.0} for i, row in enumerate(rows())]
    how = Calibration("sdc", (Target(0.2),), loss="own", reference={"organ": np.linspace(-1, 1, 50).tolist()})
    assert not calibrate_table(Table.of([*table, *empty]), how)["organ"][0].certified
    with pytest.raises(CaseValueError, match=r"expected a loss in \[0, 1\], got 5"):
        calibrate_table(Table.of([*table, {**empty[0], "own": 5.0}]), how)


def test_empty_masks_are_no_copies_of_each_other():
    """All empty maps have one checksum, but are maps of different images: they count, with a loss of 1."""
    table = [{**row, "k": 5, "checksum": f"crc32:{at:08x}"} for at, row in enumerate(rows())]
    empty = [
        {**row, "case": f"e{at}", "k": 0, "sdc": 0.0, "dice": 0.0, "checksum": "crc32:0"}
        for at, row in enumerate(rows())
    ]
    certificate = calibrate_table(Table.of([*table, *empty]), HOW)["organ"][0]
    assert (certificate.n, certificate.evidence.copies) == (2 * len(table), 0)
    assert certificate.threshold is None or certificate.threshold > 0.0
    agree = Table.of([*table, *({**row, "dice": at % 2} for at, row in enumerate(empty))], {"empty": "agree"})
    assert calibrate_table(agree, HOW)["organ"][0].n == 2 * len(table), "different losses are no error"


def test_maps_of_one_stack_are_no_copies_of_each_other():
    """The checksum in a table is that of the file; some maps of a stack have the same confidence."""
    table = [
        {
            **row,
            "k": 5,
            "checksum": "zip-crc32:1",
            "sdc": round(row["sdc"], 1),
            "file": f"stack.npz::p_hat[{at}]",
        }
        for at, row in enumerate(rows())
    ]
    certificate = calibrate_table(Table.of(table), HOW)["organ"][0]
    assert (certificate.n, certificate.evidence.copies) == (len(table), 0)


def test_two_structures_share_the_risk_of_a_broken_promise():
    found = calibrate_table(Table.of([*rows("liver"), *rows("tumour")]), HOW)
    assert [each.delta for each, _ in found.values()] == [0.025, 0.025]


def test_patients_are_the_units():
    how = Calibration("sdc", (Target(0.2),), by_patient=True)
    assert calibrate_table(Table.of(rows()), how)["organ"][0].evidence.patients
    with pytest.raises(WrongContentError, match="group: expected the patient of each case"):
        calibrate_table(Table.of([{**row, "group": ""} for row in rows()]), how)


def test_a_table_from_elsewhere_needs_no_structure_but_a_name_for_each_case():
    bare = [{"case": row["case"], "sdc": row["sdc"], "loss": 1 - row["dice"]} for row in rows()]
    assert calibrate_table(Table.of(bare), HOW)["foreground"][0].certified
    with pytest.raises(WrongContentError, match="table: expected a column 'case'"):
        calibrate_table(Table.of([{"sdc": 0.5, "loss": 0.1}]), HOW)


def test_a_case_without_a_loss_or_a_confidence_is_named():
    with pytest.raises(WrongContentError, match="17: expected a number in the column 'dice'"):
        calibrate_table(
            Table.of([{**row, "dice": None} if row["case"] == "17" else row for row in rows()]), HOW
        )
    with pytest.raises(WrongContentError, match="0: expected a number in the column 'idc'"):
        calibrate_table(Table.of(rows()), Calibration("idc", (Target(0.2),)))


def test_an_estimator_that_was_not_scored_is_refused_with_those_that_were():
    about = {"estimators": {"sdc": {"empty": "paper"}, "pla": {"size": 7}}}
    with pytest.raises(ParameterError, match=r"expected one that was scored \(sdc, pla\), got 'idc'"):
        calibrate_table(Table.of(rows(), about), Calibration("idc", (Target(0.2),)))


def test_how_the_table_was_made_goes_into_the_policy():
    scaling = TemperatureScaling(1.5, used_ids=frozenset(["x"]), n_cases=1)
    about = {"estimators": {"sdc": {"empty": "agree"}}, "scaling": scaling.to_dict()}
    _, scoring = calibrate_table(Table.of(rows(), about), HOW)["organ"]
    assert scoring.empty == "agree"
    assert scoring.recalibration["temperature"] == 1.5


def test_cases_that_the_recalibration_has_learned_from_are_refused():
    scaling = TemperatureScaling(1.5, used_ids=frozenset(["17"]), n_cases=1)
    with pytest.raises(SeenCasesError, match="17"):
        calibrate_table(Table.of(rows(), {"scaling": scaling.to_dict()}), HOW)


@pytest.mark.parametrize("structures", [("foreground",), ("organ",), ("liver", "tumour")])
def test_policies_and_their_reference_belong_together(tmp_path, structures):
    table = Table.of([row for name in structures for row in rows(name)])
    path = tmp_path / "new/policy.json"
    policy = make_policy(calibrate_table(table, HOW), table)
    policy.save(path)
    assert "ertified" in str(policy)
    policies = load_policies(path)
    assert list(policies) == list(structures)
    assert all(list(policy.reference.confidences) == GRID.tolist() for policy in policies.values())
    assert not any(f'"{row["case"]}"' in reference_path(path).read_text() for row in table.rows[:5])


def test_the_reference_of_another_policy_is_refused(tmp_path):
    for name, risk in (("one", 0.2), ("two", 0.3)):
        table = Table.of([{**row, "sdc": row["sdc"] * risk} for row in rows()])
        make_policy(calibrate_table(table, HOW), table).save(tmp_path / f"{name}.json")
    reference_path(tmp_path / "one.json").replace(reference_path(tmp_path / "two.json"))
    with pytest.raises(ParameterError, match="expected the confidences that the policy was made with"):
        load_policies(tmp_path / "two.json")


def test_no_reference_and_one_that_is_damaged(tmp_path):
    table = Table.of(rows())
    path = tmp_path / "policy.json"
    make_policy(calibrate_table(table, HOW), table).save(path)
    reference_path(path).write_text(json.dumps({"format": "other-1"}))
    with pytest.raises(SavedStateError, match=r"policy.reference\.json: expected format 'segtrust-reference"):
        load_policies(path)
    reference_path(path).unlink()
    assert load_policies(path)["organ"].reference is None


def test_a_table_that_certifies_nothing_gives_an_estimated_policy_with_the_reason(tmp_path):
    rows = [
        {"case": str(i), "structure": "organ", "group": "", "sdc": i / 400, "dice": 0.5 + i / 800}
        for i in range(400)
    ]
    table = Table.of(rows, {"predictor": "fold 0", "doubt": "of many folds"})
    found = calibrate_table(table, Calibration("sdc", (Target(0.2),)))
    policy = make_policy(found, table)
    assert "Expected, but not guaranteed" in str(policy)
    policy.save(tmp_path / "p.json")
    assert Policy.load(tmp_path / "p.json") == policy
    assert (str(policy.status), policy.reason) == ("estimated", "of many folds")
    assert policy.scoring.predictor == "fold 0", "the table tells, where nobody else does"
    assert policy.for_predictor("fold 0").reason == "of many folds"
