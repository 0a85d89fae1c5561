"""What a report says of a policy: which cases are new to it, and for which sets its promise is in doubt."""

import re
from dataclasses import replace

import pytest

from segtrust.io import Table, write_table
from segtrust.report.html.page import write_report
from tests.report.runs import section, words
from tests.review.desks import PREDICTOR, rows_of, write_policy

ABOUT = {"read": {"mask": "delivered", "threshold": 0.5, "channel": None, "labels": None}}


def of_set(name, rows, scale=1.0):
    return [{**row, "set": name, "mask": "delivered", "sdc": scale * row["sdc"]} for row in rows]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Cases that a policy was made with, and the policy."""
    folder = tmp_path_factory.mktemp("policy")
    known = of_set("ID", rows_of(300, ties=False))
    return known, write_policy(folder / "policy.json", Table.of(known, ABOUT), rows=300)


def summary_of(folder, rows, policy):
    write_table(folder / "scores.csv", Table.of(rows, ABOUT))
    page = write_report(folder / "scores.csv", policy=policy, predictor=PREDICTOR).read_text()
    return section(page, "summary")


def test_calibration_cases_are_not_compared_with_themselves(made, tmp_path):
    known, policy = made
    told = words(summary_of(tmp_path, known, policy))
    assert "ID: " in told
    assert "The policy was calibrated with these very cases, so this is no test of it." in told
    assert "No drift check, ID: the policy was calibrated with all 300 cases, and none is new." in told
    assert "No drift detected" not in told


def test_others_of_the_same_names_are_new(made, tmp_path):
    known, policy = made
    other = of_set("other", rows_of(300, seed=1, ties=False), 0.5)
    assert {row["case"] for row in other} == {row["case"] for row in known}
    shown = summary_of(tmp_path, other, policy)
    told = words(shown)
    assert "calibrated with" not in told.replace("is not known", "")
    assert "other: Drift detected (two-sample test," in told
    assert 'class="promise estimated"' in shown


def test_some_calibration_cases_are_left_out(made, tmp_path):
    known, policy = made
    new = of_set("ID", rows_of(400, seed=2, ties=False))[350:]
    told = words(summary_of(tmp_path, [*known[:40], *new], policy))
    assert "The policy was calibrated with 40 of them, which are no test of it." in told
    assert re.search(r"ID: No drift detected .*: 50 new cases compared with 300 reference cases", told)
    assert "40 calibration cases left out" in told


def test_too_few_new_cases_are_told(made, tmp_path):
    known, policy = made
    (new,) = of_set("ID", rows_of(401, seed=2, ties=False))[400:]
    told = words(summary_of(tmp_path, [*known[:40], new], policy))
    assert "No drift check, ID: 1 new case cannot be compared" in told
    assert "40 calibration cases left out" in told


def test_one_set_in_alarm_is_enough_for_doubt(made, tmp_path):
    known, policy = made
    rows = [*known, *of_set("near", rows_of(120, seed=3, ties=False))]
    assert 'class="promise certified"' in summary_of(tmp_path, rows, policy)
    rows += of_set("far", rows_of(120, seed=4, ties=False), 0.5)
    rows += of_set("farther", rows_of(120, seed=5, ties=False), 0.3)
    shown = summary_of(tmp_path, rows, policy)
    assert 'class="promise estimated"' in shown
    assert "What the threshold promises: certified, but in doubt for far and farther" in words(shown)


def test_names_alone_where_the_confidences_are_lost(made, tmp_path):
    known, policy = made
    alone = tmp_path / "policy.json"
    alone.write_bytes(policy.read_bytes())
    told = words(summary_of(tmp_path, known, alone))
    assert "No drift check: the calibration confidences are not beside the policy." in told
    assert "The policy was calibrated with these very cases" in told


def test_one_accepted_case_is_one(made, tmp_path):
    known, policy = made
    table = replace(Table.of(known), rows=tuple(sorted(known, key=lambda row: -row["sdc"])))
    told = words(summary_of(tmp_path, [table.rows[0], {**table.rows[-1], "sdc": 0.0}], policy))
    assert "ID: 1 of 2 is accepted (50 %); its mean loss is" in told
