"""The run of the embedded cases: who is new, and on whom the promise rests."""

import pytest

import segtrust as st
from segtrust.demo import nuclei
from segtrust.io import read_table

pytestmark = pytest.mark.needs("PIL")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nuclei")
    return folder, nuclei.prepare_run(folder)


def rows_in(folder, name):
    return [row for row in read_table(folder / nuclei.SCORES).rows if row["set"] == name]


def test_no_case_is_both_new_and_calibrated_with(prepared):
    folder, path = prepared
    policy = nuclei.promised(path)
    used = [row["case"] in policy.used_ids for row in rows_in(folder, "ID")]
    assert used == [False, True] * 30
    assert policy.evidence.n == 81 - 30
    assert not any(row["case"] in policy.used_ids for row in rows_in(folder, "bright"))


def test_what_is_observed_is_what_the_rows_say(prepared):
    folder, path = prepared
    policy = nuclei.promised(path)
    for found in nuclei.triage_new(folder, path):
        rows = rows_in(folder, found.set)[:: 2 if found.set == "ID" else 1]
        dice = [row["dice"] for row in rows if row["sdc"] >= policy.threshold]
        assert (found.cases, found.accepted) == (len(rows), len(dice))
        assert found.mean_dice == pytest.approx(sum(dice) / len(dice))
        assert found.observed.risk == pytest.approx(sum(each < 0.85 for each in dice) / len(dice))
        assert found.observed.low <= found.observed.risk <= found.observed.high


def test_the_new_cases_are_held_against_those_of_the_calibration(prepared):
    folder, path = prepared
    same, bright = nuclei.triage_new(folder, path)
    reference = [row["sdc"] for row in rows_in(folder, "ID")[1::2]]
    assert same.drift.n_reference == bright.drift.n_reference == 51
    assert not same.drift.alarm
    assert bright.drift.alarm
    assert st.drift_test(reference=reference, new=[row["sdc"] for row in rows_in(folder, "bright")]).alarm


def test_the_promise_is_certified_for_the_network_of_the_maps_alone(prepared):
    policy = nuclei.promised(prepared[1])
    assert str(policy.status) == "certified"
    assert str(policy.for_predictor("another").status) == "estimated"
