"""``segtrust evaluate``: every table, the score table, ``run.json``, exit codes and the choice of losses."""

import json
import os
import re
import shutil

import pytest

from tests.behaviour.decision_data import score_rows, write_cases, write_rows
from tests.behaviour.helpers import assert_golden, assert_same, read_csv
from tests.commands import segtrust, segtrust_process

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")
QUICK = ("--resamples", 100)
TABLES = ("areas", "bounds", "comparisons", "coverages", "sets")
UNTIMED = ("seconds", "checksum", "mask_checksum", "file", "mask_file", "truth_file", "image_file")
ROUNDING = 1e-15  # relative_error is a difference from 1
NEAR_ZERO = 1e-13  # differences of areas cancel


def evaluate(*arguments, code=0):
    done = segtrust("evaluate", *arguments, *QUICK, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def tables_of(folder, names=TABLES):
    return {name: read_csv(folder / f"tables/{name}.csv") for name in names}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Cases in distribution, of which two masks and one ground truth are empty, and cases from elsewhere."""
    folder = tmp_path_factory.mktemp("sets")
    unlike = {"empty_masks": (5, 17), "empty_truth": (5, 9)}
    write_cases(folder / "near/predictions", 30, truth_folder=folder / "near/masks", **unlike)
    far = {"blur": (2.0, 5.0), "shift": 9.0, "first": 500}
    write_cases(folder / "far", 12, truth_folder=folder / "far_truth", **far)
    return folder


@pytest.fixture(scope="module")
def evaluated(sets):
    """An evaluation of both sets: its folder, and what it printed."""
    arguments = (sets / "near", "--ood", f"far={sets / 'far'}", "--ood-truth", f"far={sets / 'far_truth'}")
    estimators = "sdc,idc,amsp,apc,ane,mmmc,pla"
    told = evaluate(*arguments, "-o", sets / "run", "--estimators", estimators, "--predictor", "fold 0")
    return sets / "run", told


@pytest.fixture(scope="module")
def scores(evaluated, tmp_path_factory):
    return evaluated[0] / "scores.parquet"


def test_tables(evaluated):
    folder, _ = evaluated
    assert_golden("decisions/evaluate_tables", tables_of(folder), abs_tol=NEAR_ZERO)
    for name in TABLES:
        for suffix in ("md", "tex"):
            assert (folder / f"tables/{name}.{suffix}").stat().st_size > 0


def test_printed_numbers_are_those_of_the_tables(evaluated):
    folder, told = evaluated
    others = {"evaluated", "calibration", "tuning", "unranked", "failed", "warnings", "output"}
    assert set(told) == {*TABLES, *others}
    assert (told["failed"], told["unranked"], told["tuning"]) == ([], [], [])
    for name in TABLES:
        rows = [{key: "" if value is None else value for key, value in row.items()} for row in told[name]]
        assert_same(rows, tables_of(folder)[name])


def test_mean_confidence_is_compared_with_the_mean_dice(evaluated):
    folder, told = evaluated
    import pyarrow.parquet as parquet

    rows = parquet.read_table(folder / "scores.parquet").to_pylist()
    assert told["evaluated"]["evaluated"] == len({row["case"] for row in rows})
    for mean in told["calibration"]:
        of_set = [row for row in rows if row["set"] == mean["set"] and row["structure"] == mean["structure"]]
        for name, column in (("mean_confidence", "sdc"), ("mean_dice", "dice")):
            assert mean[name] == pytest.approx(sum(row[column] for row in of_set) / len(of_set), rel=1e-12)
        assert mean["difference"] == pytest.approx(mean["mean_confidence"] - mean["mean_dice"])


@pytest.mark.parametrize("columns", [80, 120])
def test_what_is_printed(sets, tmp_path, columns):
    """First how many cases were evaluated, then a block per set without what says nothing."""
    others = ("--ood", f"far={sets / 'far'}", "--ood-truth", f"far={sets / 'far_truth'}")
    command = ("evaluate", sets / "near", *others, "-o", tmp_path / "run", *QUICK)
    done = segtrust_process(*command, env=os.environ | {"COLUMNS": str(columns)})
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout, "no colour without a terminal"
    assert max(map(len, done.stdout.splitlines()[2:-1])) <= columns, "all but paths"
    counts, *blocks = done.stdout.split("\n\n")
    assert re.fullmatch(r"(\d+) of \1 evaluated\.", counts.splitlines()[-1])
    first, far, last = blocks
    assert re.match(r"ID: \d+ cases, mean Dice 0\.\d{3}\nMean SDC 0\.\d{3}: (over|under)confident by", first)
    assert "coverage" not in first, "it is a tautology at the risk of all cases of this set"
    assert far.startswith("far: ")
    assert "coverage at" in far
    names = [line.split()[0] for line in far.splitlines() if line.startswith(("SDC", "aMSP", "oracle"))]
    assert names == ["SDC", "aMSP", "oracle"]
    assert last.startswith("Report: ")


def test_cases_without_ground_truth_are_counted_first(sets, tmp_path):
    shutil.copytree(sets / "near", tmp_path / "near")
    next((tmp_path / "near/masks").iterdir()).unlink()
    done = segtrust("evaluate", tmp_path / "near", "-o", tmp_path / "run", *QUICK)
    assert done.returncode == 1
    assert re.search(r"^\d+ of \d+ evaluated: 1 without ground truth\.$", done.stdout, re.MULTILINE), (
        done.stdout
    )


def test_another_set_may_be_a_manifest(sets, tmp_path):
    """Its own ground truth is named there."""
    maps = sorted((sets / "far").glob("*.npy"))
    lines = [f"{path.stem},{path},{next((sets / 'far_truth').glob(path.stem + '.*'))}" for path in maps]
    (tmp_path / "far.csv").write_text("\n".join(["case,probabilities,truth", *lines]))
    by_manifest = evaluate(sets / "near", "--ood", f"far={tmp_path / 'far.csv'}", "-o", tmp_path / "a")
    others = ("--ood", f"far={sets / 'far'}", "--ood-truth", f"far={sets / 'far_truth'}")
    by_folder = evaluate(sets / "near", *others, "-o", tmp_path / "b")
    for name in ("areas", "coverages", "comparisons", "calibration"):
        assert_same(by_manifest[name], by_folder[name])


def test_score_table(evaluated):
    import pyarrow.parquet as parquet

    table = parquet.read_table(evaluated[0] / "scores.parquet")
    rows = [{key: row[key] for key in row if key not in UNTIMED} for row in table.to_pylist()]
    assert_golden(
        "decisions/evaluate_scores",
        {"columns": table.column_names, "rows": [list(row.values()) for row in rows]},
        abs_tol=ROUNDING,
    )


def test_run_json(evaluated):
    content = json.loads((evaluated[0] / "run.json").read_text())
    assert content.pop("seconds") > 0
    assert content.pop("finished")[:2] == "20"
    assert {"python", "segtrust", "numpy", "scipy", "numba"} <= set(content.pop("versions"))
    assert content["parameters"].pop("arguments")[0] == "evaluate"
    assert_golden("decisions/evaluate_run", content)


def test_files(evaluated):
    folder, _ = evaluated
    assert {path.name for path in folder.iterdir() if path.name[0] != "."} == {
        *("figures", "report.html", "report.md", "run.json", "scores.parquet", "tables")
    }
    assert {path.name for path in (folder / "figures").iterdir()} == {
        f"{name}.{suffix}"
        for name in ("confidence_dice", "risk_band", "risk_coverage")
        for suffix in ("pdf", "png", "svg")
    }


def test_losses_of_one_set(sets, scores, tmp_path):
    """IoU instead of Dice, without empty ground truth, patients as units, an own column, an own file."""
    found = {}
    found["iou"] = evaluate(scores, "--loss", "iou", "--drop-empty-truth", "-o", tmp_path / "iou")
    rows = [{**row, "hd95": row["k"] / 8} for row in score_rows(20)]
    table = write_rows(tmp_path / "rows.csv", rows)
    found["patients"] = evaluate(table, "--loss-column", "hd95", "--patients", "-o", tmp_path / "patients")
    lines = [f"case_{number:03d},{number / 32}" for number in range(12)]
    (tmp_path / "losses.csv").write_text("\n".join(["case,loss", *lines]))
    losses = ("--losses", tmp_path / "losses.csv", "--estimators", "sdc")
    found["file"] = evaluate(sets / "far", *losses, "-o", tmp_path / "file")
    for told in found.values():
        for name in ("output", "warnings", "evaluated", "calibration"):
            told.pop(name)
    assert_golden("decisions/evaluate_losses", found, abs_tol=NEAR_ZERO)


def test_two_empty_masks_agree(sets, tmp_path):
    told = evaluate(sets / "near", "--empty", "agree", "--estimators", "sdc,idc", "-o", tmp_path / "run")
    tables = {name: told[name] for name in TABLES}
    assert_golden("decisions/evaluate_agree", tables, abs_tol=NEAR_ZERO)


def test_structures_and_sets_of_a_table(tmp_path):
    rows = [
        {**row, "set": "ID" if at % 3 else "other"}
        for structure, seed in (("organ", 1), ("lesion", 2))
        for at, row in enumerate(score_rows(24, structure=structure, seed=seed))
    ]
    told = evaluate(write_rows(tmp_path / "scores.csv", rows), "-o", tmp_path / "run")
    tables = {name: told[name] for name in TABLES}
    assert_golden("decisions/evaluate_structures", tables, abs_tol=NEAR_ZERO)


@pytest.mark.needs("sklearn")
def test_tuned_estimators(sets, tmp_path):
    told = evaluate(
        *(sets / "near", "--drop-empty-truth", "--estimators", "sdc", "-o", tmp_path / "run"),
        *("--tune", "sdc-tuned", "--repeats", 2, "--seed", 4),
    )
    assert_golden("decisions/evaluate_tuning", told["tuning"])
    assert_same(
        read_csv(tmp_path / "run/tables/tuning.csv"),
        [{key: "" if value is None else value for key, value in row.items()} for row in told["tuning"]],
    )


def test_missing_ground_truth(sets, tmp_path):
    none = segtrust("evaluate", sets / "far", "-o", tmp_path / "none", *QUICK)
    assert none.returncode == 2
    assert not list(tmp_path.glob("none/tables/*"))
    write_cases(tmp_path / "maps", 9, truth_folder=tmp_path / "truth")
    (tmp_path / "truth/case_004.npy").unlink()
    told = evaluate(tmp_path / "maps", "--truth", tmp_path / "truth", "-o", tmp_path / "some", code=1)
    assert [row["cases"] for row in told["sets"]] == [8]
    assert [failure["case"] for failure in told["failed"]] == ["case_004"]
    assert [row["case"] for row in read_csv(tmp_path / "some/failures.csv")] == ["case_004"]


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "volume"),
        ("--loss-column", "absent"),
        ("--threshold", "0.9"),
        ("--empty", "agree"),
        ("--estimators", "surest"),
        ("--resamples", "99"),
        ("--patients",),
        ("--tune", "sdc"),
    ],
)
def test_options_that_do_not_fit_are_rejected(scores, tmp_path, options):
    done = segtrust("evaluate", scores, "-o", tmp_path / "run", *options)
    assert done.returncode == 2, done.stdout
    assert done.stderr
    assert not list(tmp_path.glob("run/tables/*"))
