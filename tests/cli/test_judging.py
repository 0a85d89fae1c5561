"""What is judged, by which loss, and what is refused before anything is promised."""

import csv
import json

import numpy as np
import pytest

from segtrust.io import read_table
from tests.cli.test_score import parsed
from tests.commands import segtrust
from tests.engine.files import NNUNET, write_maps

pytestmark = [pytest.mark.slow, pytest.mark.needs("matplotlib", "pyarrow")]
COUNT = 160
QUICK = ("--resamples", 100, "--estimators", "sdc")


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Maps, and their truths in a folder beside them."""
    folder = tmp_path_factory.mktemp("maps")
    write_maps(folder / "predictions", COUNT, truths=folder / "labels")
    return folder


@pytest.fixture(scope="module")
def scores(maps, tmp_path_factory):
    """Their table."""
    out = tmp_path_factory.mktemp("scores") / "scores.csv"
    done = segtrust("score", maps, "-o", out, "--estimators", "all,sdc", "--details")
    assert done.returncode == 0, done.stderr
    return out


def changed(scores, path, change):
    """Write the table with other rows."""
    with scores.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows = change(rows) or rows
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_folder_of_predictions_and_labels_is_scored_by_its_maps(scores):
    table = read_table(scores)
    assert len(table.rows) == COUNT
    assert set(table.column("mask")) == {"threshold"}
    assert all(0 <= value <= 1 for value in table.column("dice"))
    assert {"sdc", "idc", "pla"} <= set(table.columns)


def test_truths_are_not_looked_at_in_triage(maps, tmp_path):
    write_maps(tmp_path / "new/predictions", 3, first=100, truths=tmp_path / "new/labels")
    (tmp_path / "new/labels/case_000.npy").write_bytes(b"damaged")
    (tmp_path / "new/labels/alone.npy").write_bytes(b"damaged")
    policy = policy_of(maps, tmp_path)
    done = segtrust("triage", tmp_path / "new", "--policy", policy, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    assert sum(parsed(done.stdout)["counts"].values()) == 3


def policy_of(maps, tmp_path, *options):
    scores = tmp_path / "calibration.csv"
    assert segtrust("score", maps, "-o", scores, "--details").returncode == 0
    made = segtrust("calibrate", scores, "-o", tmp_path / "policy.json", "--target-risk", 0.7, *options)
    assert made.returncode == 0, made.stderr
    return tmp_path / "policy.json"


def test_a_policy_of_the_foreground_is_not_for_another_structure(maps, tmp_path):
    policy, nnunet = policy_of(maps, tmp_path), NNUNET / "plain/predictions"
    for region in ("organ", "each"):
        done = segtrust("score", nnunet, "--policy", policy, "--region", region, "-o", tmp_path / "other.csv")
        assert done.returncode == 2
        assert "expected one that the policy is for (foreground), got organ" in done.stderr
    assert not (tmp_path / "other.csv").exists()


def test_how_a_policy_stands_is_told_to_machines_and_people(maps, tmp_path):
    policy = policy_of(maps, tmp_path, "--predictor", "fold 0")
    same = segtrust(
        *("score", maps, "--policy", policy, "--predictor", "fold 0", "-o", tmp_path / "a.csv", "--json")
    )
    assert parsed(same.stdout)["standing"] == {"foreground": "certified"}
    out = ("-o", tmp_path / "run", *QUICK)
    other = segtrust("evaluate", maps, "--policy", policy, "--predictor", "fold 1", *out)
    assert other.returncode == 0, other.stderr
    assert "not certified: made with fold 0, used with fold 1)" in other.stdout
    assert set(read_table(tmp_path / "run/scores.parquet").column("decision")) <= {"accept", "defer"}


def test_a_dice_is_promised_only_of_cases_that_were_judged_by_it(maps, scores, tmp_path):
    done = segtrust("evaluate", maps, "--loss", "iou", "-o", tmp_path / "iou", *QUICK)
    assert done.returncode == 0, done.stderr
    promise = ("-o", tmp_path / "policy.json", "--target-risk", 0.9, "--below-dice", 0.8)
    refused = segtrust("calibrate", tmp_path / "iou/scores.parquet", *promise)
    assert refused.returncode == 2
    assert "expected losses that are one minus the Dice, got those of iou" in refused.stderr
    by_column = segtrust("calibrate", scores, *promise, "--loss-column", "iou")
    assert "got those of iou" in by_column.stderr
    assert segtrust("calibrate", scores, *promise).returncode == 0
    assert segtrust("calibrate", scores, *promise, "--loss-column", "dice").returncode == 0


def test_a_metric_as_the_column_of_losses_is_one_minus_it(scores, tmp_path):
    told = [
        segtrust(
            *("calibrate", scores, "-o", tmp_path / f"{name}.json", "--target-risk", 0.7, "--json"),
            *("--loss-column", name),
        ).stdout
        for name in ("loss", "dice")
    ]
    assert parsed(told[0])["foreground"]["coverage"] == parsed(told[1])["foreground"]["coverage"]


def test_empty_truths_are_left_out_also_where_losses_come_from_elsewhere(tmp_path):
    write_maps(tmp_path / "maps", 12, truths=tmp_path / "truths")
    np.save(tmp_path / "truths/case_003.npy", np.zeros_like(np.load(tmp_path / "truths/case_003.npy")))
    lines = [f"case_{i:03d},{i / 20}" for i in range(12)]
    (tmp_path / "losses.csv").write_text("\n".join(["case,loss", *lines]))
    arguments = ("evaluate", tmp_path / "maps", "--losses", tmp_path / "losses.csv", "--drop-empty-truth")
    refused = segtrust(*arguments, "-o", tmp_path / "none", *QUICK)
    assert refused.returncode == 2
    assert "expected ground truth, which shows what is empty, got none of case_000" in refused.stderr
    done = segtrust(*arguments, "--truth", tmp_path / "truths", "-o", tmp_path / "some", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    (told,) = parsed(done.stdout)["sets"]
    assert (told["cases"], told["left_out_empty_truth"]) == (11, 1)
    assert told["mean_loss"] == pytest.approx((sum(range(12)) - 3) / 20 / 11)


def twice(rows):
    return [*rows, rows[3]]


def with_text(rows):
    rows[2]["sdc"] = "high"


def with_infinity(rows):
    rows[2]["dice"] = "inf"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (twice, "expected one row for each case, got 2 of 'case_003 foreground'"),
        (with_text, "expected numbers in the column 'sdc', got 'high' for the case 'case_002'"),
        (with_infinity, "expected numbers in the column 'dice', got inf for the case 'case_002'"),
    ],
)
def test_tables_that_would_lie_are_refused(scores, tmp_path, change, said):
    table = changed(scores, tmp_path / "odd.csv", change)
    judged = segtrust("evaluate", table, "-o", tmp_path / "out", *QUICK)
    promised = segtrust("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.7)
    for done in (judged, promised):
        assert done.returncode == 2
        assert f"odd.csv: {said}" in done.stderr
        assert done.stderr.startswith("error: ")
    assert not (tmp_path / "out").exists()


def test_losses_that_a_table_has_are_kept(maps, tmp_path):
    done = segtrust("evaluate", maps, "--loss", "iou", "-o", tmp_path / "iou", *QUICK, "--json")
    again = segtrust("evaluate", tmp_path / "iou/scores.parquet", "-o", tmp_path / "again", *QUICK, "--json")
    assert json.loads(done.stdout)["areas"] == json.loads(again.stdout)["areas"]
    other = segtrust(
        *("evaluate", tmp_path / "iou/scores.parquet", "--loss", "dice", "-o", tmp_path / "dice"),
        *(*QUICK, "--json"),
    )
    assert json.loads(done.stdout)["areas"] != json.loads(other.stdout)["areas"]


@pytest.mark.needs("PIL")
def test_a_table_of_a_program_of_ones_own_is_judged(scores, tmp_path):
    """As in how-to/own-model: names, sizes of masks, confidences and Dices, and nothing else."""
    needed = ("case", "structure", "k", "sdc", "dice")
    table = changed(
        scores, tmp_path / "own.csv", lambda rows: [{name: row[name] for name in needed} for row in rows]
    )
    done = segtrust("evaluate", table, "-o", tmp_path / "out", *QUICK)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/report.html").exists()


def test_labels_that_are_taken_for_maps_are_suspected(tmp_path):
    from PIL import Image

    for number in range(3):
        mask = np.zeros((8, 9), np.uint8)
        mask[2:5] = 1
        Image.fromarray(mask).save(tmp_path / f"{number}.png")
    done = segtrust("score", tmp_path, "-o", tmp_path / "scores.csv")
    assert done.returncode == 0
    assert "All masks are empty" in done.stderr
    for path in tmp_path.glob("*.png"):
        Image.fromarray(np.asarray(Image.open(path)) * 255).save(path)
    told = segtrust("score", tmp_path, "-o", tmp_path / "masks.csv", "--json")
    assert "All maps are 0 or 1" in parsed(told.stdout)["warnings"][0]


@pytest.mark.needs("nibabel")
def test_one_structure_is_scored_without_a_policy(tmp_path):
    for name, regions in (("one", ["lesion"]), ("two", ["lesion", "organ"])):
        options = [part for each in regions for part in ("--region", each)]
        done = segtrust("score", NNUNET / "plain/predictions", *options, "-o", tmp_path / f"{name}.csv")
        assert done.returncode == 0, done.stderr
        assert set(read_table(tmp_path / f"{name}.csv").column("structure")) == set(regions)


def test_a_risk_is_never_that_of_a_mixture_of_losses(maps, tmp_path):
    lines = [f"case_{i:03d},{i / 200 if i % 2 else ''}" for i in range(COUNT)]
    (tmp_path / "half.csv").write_text("\n".join(["case,hd", *lines]))
    given = ("--losses", tmp_path / "half.csv", "--loss-column", "hd")
    done = segtrust("evaluate", maps, *given, "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 1
    assert "80 failures" in done.stderr
    promise = (
        "calibrate",
        tmp_path / "run/scores.parquet",
        "-o",
        tmp_path / "policy.json",
        "--target-risk",
        0.9,
    )
    refused = segtrust(*promise)
    assert refused.returncode == 2
    assert "expected a number in the column 'loss', got none" in refused.stderr
    assert "--drop-unjudged" in refused.stderr
    made = segtrust(*promise, "--drop-unjudged", "--json")
    assert made.returncode == 0, made.stderr
    assert parsed(made.stdout)["foreground"]["cases"] <= COUNT // 2


def with_distance(rows):
    for number, row in enumerate(rows):
        row["hd95"] = number / 8


def test_any_column_of_a_table_may_be_the_loss(maps, scores, tmp_path):
    table = changed(scores, tmp_path / "more.csv", with_distance)
    done = segtrust("evaluate", table, "--loss-column", "hd95", "-o", tmp_path / "run", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert parsed(done.stdout)["sets"][0]["mean_loss"] == pytest.approx(np.mean(np.arange(COUNT) / 8))
    kept = read_table(tmp_path / "run/scores.parquet")
    assert kept.about["loss"] == "hd95"
    assert kept.column("loss") == [number / 8 for number in range(COUNT)]
    for source in (maps, scores):
        refused = segtrust("evaluate", source, "--loss-column", "hd95", "-o", tmp_path / "none", *QUICK)
        assert refused.returncode == 2
        assert "loss" in refused.stderr


@pytest.mark.parametrize(
    "options",
    [("--threshold", "0.9"), ("--mask", "threshold"), ("--empty", "agree"), ("--pattern", "{case}")],
)
def test_options_that_would_do_nothing_for_a_table_are_refused(scores, tmp_path, options):
    done = segtrust("evaluate", scores, "-o", tmp_path / "out", *options)
    assert done.returncode == 2
    assert f"{options[0]} applies to maps" in done.stderr


def test_sets_are_judged_by_the_same_kind_of_mask(tmp_path):
    for name in ("near", "far"):
        write_maps(tmp_path / name / "predictions", 6, truths=tmp_path / name / "labels")
    masks = tmp_path / "delivered"
    masks.mkdir()
    for path in (tmp_path / "near/predictions").iterdir():
        np.save(masks / path.name, np.load(path) > 0.4)
    both = ("evaluate", tmp_path / "near", "--ood", f"far={tmp_path / 'far'}", "--mask-dir", masks)
    refused = segtrust(*both, "-o", tmp_path / "one", *QUICK)
    assert refused.returncode == 2
    assert "expected delivered masks of all sets or of none, got none of far" in refused.stderr
    done = segtrust(*both, "--ood-mask-dir", f"far={masks}", "-o", tmp_path / "both", *QUICK)
    assert done.returncode == 0, done.stderr
    assert set(read_table(tmp_path / "both/scores.parquet").column("mask")) == {"delivered"}


def test_folders_of_one_set_have_truths_of_their_own(tmp_path):
    for name, first in (("x", 0), ("a", 20), ("b", 40)):
        write_maps(tmp_path / name / "maps", 4, first=first, truths=tmp_path / name / "lab")
    near = ("evaluate", tmp_path / "x/maps", "--truth", tmp_path / "x/lab")
    others = [f"o={tmp_path / name / 'maps'}" for name in ("a", "b")]
    truths = [f"o={tmp_path / name / 'lab'}" for name in ("a", "b")]
    pooled = ("--ood", others[0], "--ood", others[1])
    done = segtrust(
        *near, *pooled, "--ood-truth", truths[0], "--ood-truth", truths[1], "-o", tmp_path / "run", *QUICK
    )
    assert done.returncode == 0, done.stderr
    found = {row["case"]: row["dice"] for row in read_table(tmp_path / "run/scores.parquet").rows}
    for name, truth in (("a", "a"), ("b", "b")):
        p = np.load(tmp_path / name / "maps/case_000.npy") >= 0.5
        y = np.load(tmp_path / truth / "lab/case_000.npy") > 0
        assert found[f"o/{name}/maps/case_000"] == pytest.approx(2 * (p & y).sum() / (p.sum() + y.sum()))
    third = ("--ood", f"o={tmp_path / 'x/maps'}")
    refused = segtrust(
        *near, *pooled, *third, "--ood-truth", truths[0], "--ood-truth", truths[1], "-o", tmp_path / "no"
    )
    assert (
        "expected one for all maps, or one per folder of maps (3: a/maps, b/maps, x/maps), got 2"
        in refused.stderr
    )


def as_others(rows):
    for row in rows:
        row["set"] = "other"


def reversed_sets(rows):
    for number, row in enumerate(rows):
        row["set"] = "ID" if number >= len(rows) // 4 else "other"


def test_nothing_is_promised_of_another_distribution_unless_it_is_named(scores, tmp_path):
    promise = ("-o", tmp_path / "policy.json", "--target-risk", 0.7, "--json")
    others = changed(scores, tmp_path / "others.csv", as_others)
    refused = segtrust("calibrate", others, *promise)
    assert refused.returncode == 2
    assert "expected cases in distribution (set ID), got only other" in refused.stderr
    assert segtrust("calibrate", others, *promise, "--set", "other").returncode == 0
    mixed = changed(scores, tmp_path / "mixed.csv", reversed_sets)
    made = segtrust("calibrate", mixed, *promise)
    assert parsed(made.stdout)["foreground"]["cases"] <= COUNT * 3 // 4
    judged = segtrust("evaluate", mixed, "-o", tmp_path / "run", *QUICK, "--json")
    assert [row["set"] for row in parsed(judged.stdout)["sets"]] == ["ID", "other"]


def test_a_promise_on_cut_maps_does_not_hold_for_delivered_masks(maps, tmp_path):
    policy = policy_of(maps, tmp_path, "--predictor", "net")
    write_maps(tmp_path / "new", 3, first=300)
    (tmp_path / "masks").mkdir()
    for path in (tmp_path / "new").iterdir():
        np.save(tmp_path / "masks" / path.name, np.load(path) > 0.3)
    common = ("triage", tmp_path / "new", "--policy", policy, "--predictor", "net")
    same = segtrust(*common, "-o", tmp_path / "same", "--json")
    assert parsed(same.stdout)["standing"] == {"foreground": "certified"}
    other = segtrust(*common, "--mask-dir", tmp_path / "masks", "-o", tmp_path / "other")
    assert (
        "The guarantee does not apply: made with masks of another kind than used (delivered)." in other.stdout
    )
    (tmp_path / "masks/case_001.npy").unlink()
    (tmp_path / "new/case_001.npy").unlink()
    (tmp_path / "new/case_002.npy").unlink()
    few = segtrust(*common, "-o", tmp_path / "few")
    assert "No drift check: it takes at least two new cases" in few.stdout


def test_parts_say_which_they_are(maps, tmp_path):
    done = segtrust("score", maps, "-o", tmp_path / "part.csv", "--num-parts", 4)
    assert done.returncode == 2
    assert "part-id: expected a number from 0 to 3, got none" in done.stderr
    assert segtrust("score", maps, "-o", tmp_path / "p.csv", "--num-parts", 4, "--part-id", 1).returncode == 0
    refused = segtrust("calibrate", tmp_path / "p.csv", "-o", tmp_path / "policy.json", "--target-risk", 0.7)
    assert "expected a whole run, got a part of one" in refused.stderr


def in_splits(rows):
    for number, row in enumerate(rows):
        row["split"] = "train" if number % 4 else "test"


def test_nothing_is_promised_on_several_splits_at_once(scores, tmp_path):
    table = changed(scores, tmp_path / "splits.csv", in_splits)
    promise = ("calibrate", table, "-o", tmp_path / "policy.json", "--target-risk", 0.9)
    refused = segtrust(*promise)
    assert refused.returncode == 2
    assert "expected cases of one split, got 'test', 'train'" in refused.stderr
    assert segtrust(*promise, "--split", "train").returncode == 0


def test_a_policy_without_its_reference_promises_nothing(maps, tmp_path):
    policy = policy_of(maps, tmp_path, "--predictor", "net")
    (tmp_path / "moved").mkdir()
    policy.rename(tmp_path / "moved/policy.json")
    out = ("--predictor", "net", "-o", tmp_path / "a.csv", "--json")
    done = segtrust("score", maps, "--policy", tmp_path / "moved/policy.json", *out)
    assert parsed(done.stdout)["standing"] == {"foreground": "estimated"}


def test_parts_of_other_cases_are_not_one_run(tmp_path):
    write_maps(tmp_path / "maps", 4)
    parts = [tmp_path / f"part-{part}.csv" for part in (0, 1)]
    for part, path in enumerate(parts):
        done = segtrust("score", tmp_path / "maps", "-o", path, "--num-parts", 2, "--part-id", part)
        assert done.returncode == 0, done.stderr
        np.save(tmp_path / "maps/a_new.npy", np.full((8, 8), 0.5))
    merged = segtrust("merge", *parts, "-o", tmp_path / "all.csv")
    assert merged.returncode == 2
    assert "expected a part made with the cases and settings of" in merged.stderr
