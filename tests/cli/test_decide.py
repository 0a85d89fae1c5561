"""``segtrust evaluate``, ``calibrate`` and ``triage``: from maps with truths to decisions on new ones."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from segtrust.engine import Calibration, calibrate_table, calibration, make_policy
from segtrust.io import Table, read_table
from segtrust.selective import Target
from tests.cli.test_score import parsed
from tests.commands import segtrust, segtrust_process
from tests.engine.files import NNUNET, write_maps
from tests.tuning_cases import losses_of

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")
FOLD = ("--predictor", "fold 0")
COUNT = 160


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Maps in distribution with truths, others, an evaluation of both, and a policy."""
    folder = tmp_path_factory.mktemp("data")
    known = write_maps(folder / "id/predictions", COUNT, truths=folder / "id/masks")
    other = write_maps(folder / "far", 15, first=5000, truths=folder / "far_truths")
    done = segtrust_process(
        *("evaluate", folder / "id", "--ood", f"far={folder / 'far'}"),
        *("--ood-truth", f"far={folder / 'far_truths'}", "-o", folder / "run", "--resamples", 100, "--json"),
    )
    assert done.returncode == 0, done.stderr
    calibrated = segtrust_process(
        *("calibrate", folder / "run/scores.parquet", "-o", folder / "policy.json"),
        *("--target-risk", 0.42, *FOLD),
    )
    assert calibrated.returncode == 0, calibrated.stderr
    return {
        "folder": folder,
        "told": done.stdout,
        "promised": calibrated.stdout,
        "losses": np.concatenate([losses_of(known), losses_of(other)]),
    }


def test_evaluation_holds_the_losses_of_both_sets(data):
    table = read_table(data["folder"] / "run/scores.parquet")
    np.testing.assert_allclose(table.column("loss"), data["losses"], atol=1e-12)
    assert table.column("set") == ["ID"] * COUNT + ["far"] * 15
    assert table.rows[-1]["case"] == "far/case_014"


def test_evaluation_is_told_to_machines_and_written_for_people(data):
    told = parsed(data["told"])
    assert {row["set"] for row in told["sets"]} == {"ID", "far"}
    assert told["failed"] == []
    run = data["folder"] / "run"
    assert json.loads((run / "run.json").read_text())["parameters"]["sets"] == {"ID": COUNT, "far": 15}
    for name in ("report.md", "figures/risk_coverage.svg", "tables/areas.csv", "scores.parquet"):
        assert (run / name).stat().st_size > 0


def test_an_evaluation_that_lacks_truths(tmp_path):
    write_maps(tmp_path / "maps", 9, truths=tmp_path / "truths")
    none = segtrust("evaluate", tmp_path / "maps", "-o", tmp_path / "none")
    assert none.returncode == 2
    assert "expected the ground truth of its cases, got none. Pass its folder: --truth DIR." in none.stderr
    (tmp_path / "empty").mkdir()
    empty = segtrust("evaluate", tmp_path / "maps", "--truth", tmp_path / "empty", "-o", tmp_path / "none")
    said = (
        f"case_000: expected its ground truth in {tmp_path / 'empty'}, which has no files that can be read."
    )
    assert said in empty.stderr
    (tmp_path / "empty/other.npy").write_bytes((tmp_path / "truths/case_004.npy").read_bytes())
    other = segtrust("evaluate", tmp_path / "maps", "--truth", tmp_path / "empty", "-o", tmp_path / "none")
    assert "got no file of that name; the folder has files such as other.npy." in other.stderr
    (tmp_path / "truths/case_004.npy").unlink()
    some = segtrust(
        *("evaluate", tmp_path / "maps", "--truth", tmp_path / "truths"),
        *("-o", tmp_path / "some", "--resamples", 100),
    )
    assert some.returncode == 1
    assert "case_004: expected its ground truth in" in some.stderr
    assert "8 of 9 evaluated: 1 without ground truth." in some.stdout
    assert "\nID: 8 cases, mean Dice" in some.stdout


def test_another_set_that_lacks_truths_names_its_own_option(tmp_path):
    for name in ("site1", "site2"):
        write_maps(tmp_path / "maps" / name, 3, truths=tmp_path / "truths" / name)
    command = ("evaluate", tmp_path / "maps/site1", "--ood", f"far={tmp_path / 'maps/site2'}")
    done = segtrust(*command, "--truth", tmp_path / "truths", "-o", tmp_path / "run")
    assert done.returncode == 2
    said = "site2: expected the ground truth of its cases, got none. Pass its folder: --ood-truth far=DIR"
    assert f"{said} (--truth is for the first set only)." in done.stderr


def test_a_manifest_that_names_a_truth_for_some_only(tmp_path):
    write_maps(tmp_path / "maps", 9, truths=tmp_path / "truths")
    lines = [
        f"case_{i:03d},maps/case_{i:03d}.npy,{f'truths/case_{i:03d}.npy' if i else ''}" for i in range(9)
    ]
    (tmp_path / "cases.csv").write_text("\n".join(["case,probabilities,truth", *lines]))
    done = segtrust("evaluate", tmp_path / "cases.csv", "-o", tmp_path / "run", "--resamples", 100, "--json")
    assert done.returncode == 1, done.stderr
    (failure,) = parsed(done.stdout)["failed"]
    assert (failure["case"], failure["kind"]) == ("case_000", "Unpaired")
    assert "expected its ground truth, got none" in failure["reason"]
    scores = tmp_path / "scores.csv"
    assert segtrust("score", tmp_path / "cases.csv", "-o", scores).returncode == 0
    assert [row["dice"] is None for row in read_table(scores).rows] == [True] + [False] * 8
    lines[0] += "truths/case_000.npy"
    (tmp_path / "cases.csv").write_text("\n".join(["case,probabilities,truth", *lines]))
    assert segtrust("score", tmp_path / "cases.csv", "-o", scores).returncode == 0
    assert not any(row["dice"] is None for row in read_table(scores).rows)


def test_a_certified_policy_says_what_it_promises(data):
    promised = data["promised"]
    assert "Policy for foreground (certified): accept cases with a confidence (sdc) of at least" in promised
    assert "Guarantee (95 % confidence): the mean loss of accepted cases is at most 0.42." in promised
    assert "Valid for the model fold 0." in promised
    assert (data["folder"] / "policy.reference.json").exists()


def test_what_is_not_certifiable_is_1_and_says_how_many_cases_it_takes(data, tmp_path):
    table = shutil.copy(data["folder"] / "run/scores.parquet", tmp_path)  # nobody has asked these cases yet
    arguments = ("calibrate", table, "-o", tmp_path / "policy.json")
    done = segtrust(*arguments, "--target-risk", 0.28)
    assert done.returncode == 1
    assert "Not certifiable with these 160 cases at 95 % confidence: the mean loss" in done.stderr
    # Which it is depends on the last digits of the confidences.
    said = r"About \d+ new labelled cases would give|No number of cases is enough|More than \d+ cases would"
    assert re.search(said, done.stderr)
    assert "would be the second look at these cases: at most 90 % confidence." in done.stderr
    assert not (tmp_path / "policy.json").exists()
    told = segtrust(*arguments, "--target-risk", 0.28, "--json")
    assert told.returncode == 1
    assert parsed(told.stdout)["foreground"]["certified"] is False


def test_a_look_that_cannot_be_recorded_is_told(data, tmp_path):
    table = Path(shutil.copy(data["folder"] / "run/scores.parquet", tmp_path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(calibration, "write_json", raise_full_disk)
        done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.42)
    assert done.returncode == 0
    assert (
        "calibration-looks.json: this look at the cases could not be recorded (No space left" in done.stderr
    )


def raise_full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--estimator", "ane"), "expected one that was scored (sdc, idc, amsp), got 'ane'"),
        (("--loss-column", "surface"), "expected a number in the column 'surface'"),
        (("--set", "near"), "expected rows with"),
        (("--target-risk", "1.5"), "target_risk"),
    ],
)
def test_what_cannot_be_calibrated_is_2(data, tmp_path, options, said):
    options = options if "--target-risk" in options else (*options, "--target-risk", "0.4")
    table = data["folder"] / "run/scores.parquet"
    done = segtrust("calibrate", table, "-o", tmp_path / "policy.json", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("error: ")


def flatten(path, share):
    """Make a map less sure of itself."""
    np.save(path, 0.5 + share * (np.load(path) - 0.5))


def triage(data, maps, out, *options, run=segtrust):
    return run("triage", maps, "--policy", data["folder"] / "policy.json", "-o", out, *options)


def test_triage_lists_links_and_keeps_the_promise_of_the_same_predictor(data, tmp_path):
    write_maps(tmp_path / "new", 12, first=300)
    flatten(tmp_path / "new/case_003.npy", 0.3)
    flatten(tmp_path / "new/case_007.npy", 0.2)
    done = triage(data, tmp_path / "new", tmp_path / "out", *FOLD, "--link", run=segtrust_process)
    assert done.returncode == 0, done.stderr
    assert "Guarantee (95 % confidence)" in done.stdout
    assert "No drift detected" in done.stdout
    lists = {name: read_table(tmp_path / f"out/{name}.csv") for name in ("accept", "defer", "no_finding")}
    assert sorted(case for table in lists.values() for case in table.column("case")) == [
        f"case_{number:03d}" for number in range(12)
    ]
    for name in ("accept", "defer"):
        links = {path.name.removesuffix(".npy") for path in (tmp_path / "out" / name).iterdir()}
        assert links == set(lists[name].column("case"))
        assert lists[name].column("sdc") == sorted(lists[name].column("sdc"))
    assert set(lists["defer"].column("case")) == {"case_003", "case_007"}


def test_triage_with_another_predictor_is_estimated(data, tmp_path):
    write_maps(tmp_path / "new", 12, first=300)
    for options in ((), ("--predictor", "ensemble")):
        done = triage(data, tmp_path / "new", tmp_path / "out", *options)
        assert done.returncode == 0, done.stderr
        assert "The guarantee does not apply: made with fold 0, used with" in done.stdout
    told = parsed(triage(data, tmp_path / "new", tmp_path / "out", "--json").stdout)
    assert told["standing"] == {"foreground": "estimated"}
    assert sum(told["counts"].values()) == 12
    assert told["drift"]["foreground"]["alarm"] is told["alarm"] is False


def test_drift_rings_the_alarm(data, tmp_path):
    write_maps(tmp_path / "new", 30, first=300)
    for path in (tmp_path / "new").iterdir():
        flatten(path, 0.2)
    done = triage(data, tmp_path / "new", tmp_path / "out", *FOLD)
    assert done.returncode == 3
    assert "DRIFT DETECTED" in done.stdout
    told = triage(data, tmp_path / "new", tmp_path / "out", *FOLD, "--json")
    assert told.returncode == 3
    assert parsed(told.stdout)["alarm"] is True


def test_a_case_that_cannot_be_read_is_deferred(data, tmp_path):
    write_maps(tmp_path / "new", 5, first=300)
    (tmp_path / "new/case_002.npy").write_bytes(b"")
    done = triage(data, tmp_path / "new", tmp_path / "out", *FOLD, "--json")
    assert done.returncode == 1
    assert [failure["case"] for failure in parsed(done.stdout)["failures"]] == ["case_002"]
    assert "case_002" in read_table(tmp_path / "out/defer.csv").column("case")
    assert read_table(tmp_path / "out/failures.csv").column("case") == ["case_002"]


@pytest.mark.needs("PIL")
def test_no_estimator_accepts_an_empty_mask(data, tmp_path):
    """A 0/1 mask saved as 8-bit levels, 12-bit levels and per cent: all are near 0, and aMSP is near 1."""
    from PIL import Image

    policy, folder = tmp_path / "amsp.json", data["folder"]
    scored = segtrust(
        *("evaluate", folder / "id", "-o", tmp_path / "run", "--estimators", "amsp", "--resamples", 100),
    )
    assert scored.returncode == 0, scored.stderr
    done = segtrust(
        *("calibrate", tmp_path / "run/scores.parquet", "--estimator", "amsp"),
        *("-o", policy, "--target-risk", 0.6, *FOLD),
    )
    assert done.returncode == 0, done.stderr
    new = tmp_path / "new"
    new.mkdir()
    wave = np.rint((np.sin(np.arange(1024).reshape(32, 32) / 50) + 1) * 50)
    for name, values in {
        "mask": (wave > 50).astype(np.uint8),
        "percent": wave.astype(np.uint8),
        "twelve_bits": (wave * 40.95).astype(np.uint16),
    }.items():
        Image.fromarray(values).save(new / f"{name}.png")
    done = segtrust("triage", new, "--policy", policy, "-o", tmp_path / "triage", *FOLD)
    deferred = read_table(tmp_path / "triage/defer.csv")
    assert sorted(deferred.column("case")) == ["mask", "percent", "twelve_bits"], done.stdout
    assert max(deferred.column("margin")) > 0  # the threshold alone would accept one


def test_without_its_reference_a_policy_says_that_drift_is_not_looked_for(data, tmp_path):
    write_maps(tmp_path / "new", 3, first=300)
    shutil.copy(data["folder"] / "policy.json", tmp_path / "policy.json")
    done = segtrust("triage", tmp_path / "new", "--policy", tmp_path / "policy.json", "-o", tmp_path / "out")
    assert done.returncode == 0
    assert "No drift check" in done.stdout


def test_policies_of_several_structures(tmp_path):
    grid = np.linspace(0, 1, 400).tolist()
    table = Table.of(
        [
            {"case": str(i), "structure": name, "sdc": c, "dice": (1 + c) / 2, "mask": "delivered"}
            for name in ("organ", "lesion")
            for i, c in enumerate(grid)
        ],
        {"read": {"mask": "delivered", "threshold": 0.5, "channel": None, "labels": None}},
    )
    how = Calibration("sdc", (Target(0.2),), predictor="fold 0")
    make_policy(calibrate_table(table, how), table).save(tmp_path / "policy.json")
    done = segtrust(
        *("triage", NNUNET / "plain/predictions", "--policy", tmp_path / "policy.json"),
        *("-o", tmp_path / "out", *FOLD),
    )
    assert done.returncode in (0, 3), done.stderr
    guaranteed = [line for line in done.stdout.splitlines() if line.startswith(("organ: ", "lesion: "))]
    assert len(guaranteed) == 2
    rows = read_table(tmp_path / "out/scores.csv").rows
    assert [row["structure"] for row in rows] == ["organ", "lesion"] * 2
    for case in ("test_0", "test_1"):
        each = {row["decision"] for row in rows if row["case"] == case}
        listed = "defer" if "defer" in each else "accept"
        assert case in read_table(tmp_path / f"out/{listed}.csv").column("case")


def test_structures_that_the_policy_is_not_for_are_told(tmp_path):
    grid = np.linspace(0, 1, 400).tolist()
    rows = [{"case": str(i), "structure": "organ", "sdc": c, "dice": (1 + c) / 2} for i, c in enumerate(grid)]
    table = Table.of(rows)
    make_policy(calibrate_table(table, Calibration("sdc", (Target(0.2),))), table).save(
        tmp_path / "policy.json"
    )
    command = (
        "triage",
        NNUNET / "plain/predictions",
        "--policy",
        tmp_path / "policy.json",
        "--region",
        "each",
    )
    done = segtrust(*command, "-o", tmp_path / "out")
    assert "0 accepted, 2 for review." in done.stdout
    assert "The policy is not for lesion: cases that have such a structure are deferred" in done.stderr
    told = json.loads(segtrust(*command, "-o", tmp_path / "out", "--json").stdout)["warnings"]
    assert any("The policy is not for lesion" in each for each in told)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--threshold", "0.4"), "threshold 0.5, not 0.4"),
        (("--mask", "threshold"), "mask 'delivered', not 'threshold'"),
        (("--channel", "1"), "channel None, not 1"),
    ],
)
def test_maps_that_are_read_otherwise_than_those_of_the_calibration_are_refused(
    data, tmp_path, options, said
):
    write_maps(tmp_path / "new", 1)
    done = triage(data, tmp_path / "new", tmp_path / "out", *options)
    assert done.returncode == 2
    assert f"made with cases that were read with {said}" in done.stderr


def test_a_policy_that_was_edited_is_refused(data, tmp_path):
    write_maps(tmp_path / "new", 1)
    content = json.loads((data["folder"] / "policy.json").read_text())
    content["operation"]["threshold"] = 0.0
    (tmp_path / "policy.json").write_text(json.dumps(content))
    done = segtrust("triage", tmp_path / "new", "--policy", tmp_path / "policy.json", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "was changed after it was made" in done.stderr
