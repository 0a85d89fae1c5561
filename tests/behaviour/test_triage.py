"""``segtrust triage``: the lists, the drift alarm, whether the guarantee applies, links, failures, JSON."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from tests.behaviour.decision_data import (
    MODEL,
    SETTINGS,
    rows_of_maps,
    score_rows,
    write_cases,
    write_rows,
)
from tests.behaviour.helpers import assert_golden, assert_same, read_columns, read_csv
from tests.commands import segtrust

NNUNET = Path(__file__).parents[1] / "fixtures/nnunet/plain/predictions"
SAME_MODEL = ("--predictor", MODEL)
LISTS = ("accept", "defer", "no_finding")
UNTIMED = ("seconds", "checksum", "mask_checksum", "file", "mask_file", "image_file", "policy")
ROUNDING = 1e-15  # relative_error is a difference from 1
SHOWN = ("case", "structure", "sdc", "decision", "margin")


def make_policy(folder, rows, settings=SETTINGS, target=0.36, *options):
    table = write_rows(folder / "known.csv", rows, settings)
    path = folder / "policy.json"
    done = segtrust("calibrate", table, "-o", path, "--target-risk", target, *SAME_MODEL, *options)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("policy"), rows_of_maps(160))


def flatten(path, share):
    """Make a map less confident, exactly."""
    np.save(path, (0.5 + share * (np.load(path) - 0.5)).astype(np.float32))


def triage(maps, policy, out, *options, code=0):
    done = segtrust("triage", maps, "--policy", policy, "-o", out, *options, "--json", "--details")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def lists_of(folder):
    """Return the lists in their order: the least confident case first."""
    tables = {name: read_csv(folder / f"{name}.csv") for name in LISTS}
    return {name: [{key: row[key] for key in SHOWN} for row in rows] for name, rows in tables.items()}


def values_of(told):
    """Return what was printed for machines, without words, times and places."""
    words = ("output", "warnings", "policy", "seconds", "guarantee", "calibration_cases")
    values = {key: told[key] for key in told if key not in words}
    for drift in values["drift"].values():
        drift.pop("text", None)
    return values


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """Twelve new maps: two with little confidence, two with an empty mask."""
    folder = write_cases(tmp_path_factory.mktemp("new") / "maps", 12, first=300, empty_masks=(4, 9))
    flatten(folder / "case_003.npy", 0.25)
    flatten(folder / "case_007.npy", 0.125)
    return folder


def test_lists(new, policy, tmp_path):
    told = triage(new, policy, tmp_path / "out", *SAME_MODEL, "--link")
    lists = lists_of(tmp_path / "out")
    deferred = [row["case"] for row in lists["defer"]]
    assert set(deferred) >= {"case_003", "case_004", "case_007", "case_009"}
    assert_golden("decisions/triage", {"printed": values_of(told), "lists": lists})
    for name in ("accept", "defer"):
        links = {path.name.removesuffix(".npy") for path in (tmp_path / "out" / name).iterdir()}
        assert links == {row["case"] for row in lists[name]}
        assert all(path.resolve().parent == new for path in (tmp_path / "out" / name).iterdir())


def test_files(new, policy, tmp_path):
    triage(new, policy, tmp_path / "out", *SAME_MODEL)
    names = {path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."}
    assert names == {"accept.csv", "defer.csv", "no_finding.csv", "scores.csv", "scores.csv.about.json"}
    scores = read_csv(tmp_path / "out/scores.csv", without=UNTIMED)
    decided = {row["case"]: row["decision"] for row in scores}
    lists = lists_of(tmp_path / "out")
    assert decided == {row["case"]: name.replace("_", " ") for name in LISTS for row in lists[name]}
    assert_golden(
        "decisions/triage_scores",
        [list(scores[0]), *(list(row.values()) for row in scores)],
        abs_tol=ROUNDING,
    )
    columns = {name: read_columns(tmp_path / f"out/{name}.csv") for name in ("accept", "defer", "scores")}
    internal = ("k", "mu", "lam", "s", "checksum", "mask_checksum", "seconds")
    shown = [name for name in columns["scores"] if name not in internal]
    assert columns["accept"] == [*shown, "guarantee"]
    assert columns["defer"] == [*shown, "guarantee", "reason"]
    fingerprints = {row["policy"] for row in read_csv(tmp_path / "out/scores.csv")}
    assert [len(each) for each in fingerprints] == [64]


@pytest.mark.parametrize("options", [(), ("--predictor", "ensemble")])
def test_another_model_is_estimated(new, policy, tmp_path, options):
    told = triage(new, policy, tmp_path / "out", *options)
    assert told["standing"] == {"foreground": "estimated"}
    same = triage(new, policy, tmp_path / "same", *SAME_MODEL)
    assert same["standing"] == {"foreground": "certified"}
    assert_same(told["counts"], same["counts"])


def test_drift(policy, tmp_path):
    maps = write_cases(tmp_path / "maps", 30, first=300)
    for path in maps.iterdir():
        flatten(path, 0.25)
    told = triage(maps, policy, tmp_path / "out", *SAME_MODEL, code=3)
    assert told["alarm"] is True
    assert_golden("decisions/triage_drift", values_of(told))
    quiet = triage(maps, policy, tmp_path / "quiet", *SAME_MODEL, "--alpha", 0.0005, code=3)
    assert_same(quiet["drift"]["foreground"]["p_value"], told["drift"]["foreground"]["p_value"])


def test_the_lists_say_which_guarantee_applies_and_why_a_case_is_deferred(new, policy, tmp_path):
    (new / "unreadable.npy").write_bytes(b"")
    try:
        triage(new, policy, tmp_path / "out", *SAME_MODEL, code=1)
        told = triage(new, policy, tmp_path / "other", code=1)
    finally:
        (new / "unreadable.npy").unlink()
    accepted, deferred = (read_csv(tmp_path / f"out/{name}.csv") for name in ("accept", "defer"))
    assert {row["guarantee"] for row in accepted} == {"certified"}
    assert {row["guarantee"] for row in deferred} == {"none"}
    reasons = {row["case"]: row["reason"] for row in deferred}
    assert "unreadable.npy" in reasons.pop("unreadable")
    assert reasons["case_003"] == "below the threshold"
    assert reasons["case_004"] == "empty mask"
    assert {row["guarantee"] for row in read_csv(tmp_path / "other/accept.csv")} == {"estimated"}
    assert told["guarantee"].startswith(f"The guarantee does not apply: made with {MODEL}, used with")


def test_what_is_printed(new, policy, tmp_path):
    """Drift first, then decisions, guarantee and the most urgent cases, with the next command."""
    done = segtrust("triage", new, "--policy", policy, "-o", tmp_path / "out", *SAME_MODEL)
    _, drift, counts, guarantee, title, head, _, first, *_ = filter(None, done.stdout.splitlines())
    assert drift.startswith("No drift detected (two-sample test, p = ")
    assert re.fullmatch(r"\d+ accepted, \d+ for review \(of these, 2 with an empty mask\)\.", counts)
    assert guarantee.startswith(
        "Guarantee (95 % confidence): the mean loss of accepted cases is at most 0.36."
    )
    assert guarantee.endswith("It applies to these cases.")
    assert title.startswith("Most urgent: ")
    assert head.split() == ["case", "confidence", "(SDC)", "threshold", "reason"]
    assert first.split()[0] == lists_of(tmp_path / "out")["defer"][0]["case"]
    assert done.stdout.splitlines()[-1].startswith("Next: segtrust review ")


def test_drift_comes_first_and_voids_the_guarantee(policy, tmp_path):
    maps = write_cases(tmp_path / "maps", 30, first=300)
    for path in maps.iterdir():
        flatten(path, 0.75)
    (maps / "unreadable.npy").write_bytes(b"")
    done = segtrust("triage", maps, "--policy", policy, "-o", tmp_path / "out", *SAME_MODEL)
    assert done.returncode == 3, "drift was detected, even if some also failed"
    assert done.stdout.splitlines()[1].startswith(
        "DRIFT DETECTED: these cases do not look like the calibration"
    )
    assert "The guarantee does not apply (drift)." in done.stdout
    for name in ("accept", "defer"):
        assert {row["guarantee"] for row in read_csv(tmp_path / f"out/{name}.csv")} <= {"none"}


def test_score_with_a_policy_decides_as_triage_does(new, policy, tmp_path):
    told = triage(new, policy, tmp_path / "out", *SAME_MODEL)
    done = segtrust("score", new, "-o", tmp_path / "scores.csv", "--policy", policy, *SAME_MODEL, "--json")
    scored = json.loads(done.stdout)
    assert done.returncode == 0
    for name in ("counts", "drift", "guarantee", "standing", "alarm"):
        assert_same(scored[name], told[name])


def test_a_table_that_is_printed_does_not_hide_drift(policy, tmp_path):
    maps = write_cases(tmp_path / "maps", 30, first=300)
    for path in maps.iterdir():
        flatten(path, 0.25)
    done = segtrust("score", maps, "-o", "-", "--policy", policy, *SAME_MODEL)
    assert done.returncode == 3
    assert done.stdout.startswith("case,")
    assert "DRIFT DETECTED" in done.stderr


def test_a_name_that_is_nearly_that_of_the_model(new, policy, tmp_path):
    name = MODEL.upper().replace(" ", "_")
    told = triage(new, policy, tmp_path / "out", "--predictor", name)
    assert any(f"Did you mean {MODEL!r}?" in warning for warning in told["warnings"])


def test_without_reference_there_is_no_drift_test(new, policy, tmp_path):
    shutil.copy(policy, tmp_path / "policy.json")
    told = triage(new, tmp_path / "policy.json", tmp_path / "out", *SAME_MODEL)
    assert (told["alarm"], told["drift"]) == (False, {})
    assert told["standing"] == {"foreground": "estimated"}


def test_failed_cases_are_deferred(policy, tmp_path):
    maps = write_cases(tmp_path / "maps", 5, first=300)
    (maps / "case_002.npy").write_bytes(b"")
    told = triage(maps, policy, tmp_path / "out", *SAME_MODEL, code=1)
    assert [failure["case"] for failure in told["failures"]] == ["case_002"]
    assert [row["case"] for row in read_csv(tmp_path / "out/failures.csv")] == ["case_002"]
    assert "case_002" in [row["case"] for row in read_csv(tmp_path / "out/defer.csv")]
    assert sum(told["counts"].values()) == 5


def test_empty_masks_may_be_no_finding(tmp_path):
    settings = {**SETTINGS, "empty": "agree", "estimators": {"sdc": {"empty": "agree"}}}
    policy = make_policy(tmp_path, rows_of_maps(120), settings, 0.4)
    maps = write_cases(tmp_path / "maps", 6, first=300)
    np.save(maps / "case_001.npy", np.zeros((24, 30), np.float32))
    doubtful = np.zeros((24, 30), np.float32)
    doubtful[3:5, 7:9] = 0.45
    np.save(maps / "case_002.npy", doubtful)
    told = triage(maps, policy, tmp_path / "out", *SAME_MODEL)
    lists = lists_of(tmp_path / "out")
    assert [row["case"] for row in lists["no_finding"]] == ["case_001"]
    assert_golden("decisions/triage_no_finding", {"printed": values_of(told), "lists": lists})


@pytest.mark.needs("nibabel")
def test_structures(tmp_path):
    rows = [
        {**row, "mask": "delivered"}
        for name, seed in (("organ", 3), ("lesion", 4))
        for row in score_rows(120, structure=name, seed=seed)
    ]
    policy = make_policy(tmp_path, rows)
    done = segtrust(
        "triage", NNUNET, "--policy", policy, "-o", tmp_path / "out", *SAME_MODEL, "--json", "--details"
    )
    told = values_of(json.loads(done.stdout))
    assert_golden("decisions/triage_structures", {"printed": told, "lists": lists_of(tmp_path / "out")})
    one = make_policy(tmp_path, rows[:120])
    told = triage(NNUNET, one, tmp_path / "one", *SAME_MODEL, "--region", "each", code=3)
    assert told["alarm"] is True
    assert told["counts"] == {"accept": 0, "defer": 2, "no finding": 0}


def test_recalibrated_maps(tmp_path):
    """A scaling that the calibration used is applied to new maps too."""
    scaling = st.TemperatureScaling(temperature=1.5)
    settings = {**SETTINGS, "scaling": scaling.to_dict()}
    policy = make_policy(tmp_path, rows_of_maps(120), settings, 0.4)
    maps = write_cases(tmp_path / "maps", 4, first=300)
    triage(maps, policy, tmp_path / "out", *SAME_MODEL, code=3)
    rows = read_csv(tmp_path / "out/scores.csv", without=UNTIMED)
    assert_golden("decisions/triage_recalibrated", [list(row.values()) for row in rows], abs_tol=ROUNDING)


@pytest.mark.parametrize(
    "options",
    [
        ("--threshold", "0.4"),
        ("--mask", "threshold"),
        ("--channel", "1"),
        ("--decode", "dice-optimal"),
        ("--alpha", "2"),
        ("--policy", "absent.json"),
    ],
)
def test_options_that_do_not_fit_the_policy(new, policy, tmp_path, options):
    done = segtrust("triage", new, "--policy", policy, "-o", tmp_path / "out", *options, "--details")
    assert done.returncode == 2
    assert done.stderr
    assert not (tmp_path / "out/accept.csv").exists()


def test_a_score_table_is_decided_as_its_maps_are(new, policy, tmp_path):
    told = triage(new, policy, tmp_path / "maps", *SAME_MODEL)
    assert segtrust("score", new, "-o", tmp_path / "scores.csv").returncode == 0
    of_table = triage(tmp_path / "scores.csv", policy, tmp_path / "table", *SAME_MODEL)
    for name in ("counts", "drift", "guarantee", "standing"):
        assert_same(of_table[name], told[name])
    assert_same(lists_of(tmp_path / "table"), lists_of(tmp_path / "maps"))
