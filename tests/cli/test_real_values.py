"""The values that an independent computation found on the real maps, as a user gets them."""

import csv

import pytest
from typer.testing import CliRunner

from segtrust.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.needs("pyarrow", "sklearn", "matplotlib", "PIL")]
ESTIMATORS = ("sdc", "amsp", "ane", "mmmc", "pla", "tla", "oracle", "random")
AREAS = {
    ("polyp", "ID"): (0.035290, 0.066684, 0.066675, 0.078392, 0.054027, 0.130004, 0.026722, 0.078392),
    ("polyp", "OOD"): (0.078558, 0.138772, 0.137689, 0.186170, 0.104124, 0.299306, 0.064422, 0.201406),
    ("busi", "ID"): (0.238831, 0.399238, 0.391348, 0.409063, 0.392172, 0.449413, 0.180871, 0.391646),
    ("busi", "dice_plain"): (0.175707, 0.300250, 0.300259, 0.326067, 0.290952, 0.342506, 0.143090, 0.326067),
}
# cases, largest and mean bound; the reference has 1e-6 and 2.3e-4 for the first and the last mean
BOUNDS = {
    ("polyp", "ID"): (162, "2.8e-05", "1.4e-06"),
    ("polyp", "OOD"): (636, "2.6e-03", "1.8e-05"),
    ("busi", "ID"): (124, "2.0e-04", "1.9e-05"),
    ("busi", "dice_plain"): (124, "2.7e-02", "2.2e-04"),
}


def invoke(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def rows_of(path, **of):
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[name] == value for name, value in of.items())]


def check(tables, data, name):
    areas = {
        row["estimator"]: round(float(row["aurc"]), 6) for row in rows_of(tables / "areas.csv", set=name)
    }
    assert {each: areas[each] for each in ESTIMATORS} == dict(zip(ESTIMATORS, AREAS[data, name], strict=True))
    (bound,) = rows_of(tables / "bounds.csv", set=name)
    shown = [f"{float(bound[column]):.1e}" for column in ("max_epsilon", "mean_epsilon")]
    (judged,) = rows_of(tables / "sets.csv", set=name)
    assert (int(judged["cases"]), *shown) == BOUNDS[data, name]


@pytest.mark.needs("data:polyp")
def test_polyps(data, tmp_path):
    polyp = data("polyp")
    invoke("tasks", "predict", "polyp", "--data", polyp, "--maps", polyp, "-o", tmp_path / "runs/polyp")
    how = ("--repeats", 0, "--resamples", 100, "--workers", 1)
    told = invoke("reproduce", "medical", "--data", tmp_path / "runs", "--out", tmp_path / "out", *how)
    tables = tmp_path / "out/tables"
    for name in ("ID", "OOD"):
        check(tables, "polyp", name)
    coverage = {row["estimator"]: row["coverage"] for row in rows_of(tables / "coverages.csv", set="OOD")}
    assert round(float(coverage["sdc"]), 4) == 0.6085
    assert round(float(coverage["oracle"]), 4) == 0.7500
    assert "| SDC | **60.85 %** [60.53 %, +0.32 points] |" in told
    assert "splits" not in told


@pytest.mark.needs("data:busi-predictions")
def test_breast_ultrasound(data, tmp_path):
    busi = data("busi-predictions")
    maps = ("BCE_plain", "--truth", busi / "masks", "--ood", f"dice_plain={busi / 'dice_plain'}")
    truths = ("--ood-truth", f"dice_plain={busi / 'masks'}", "--drop-empty-truth")
    how = ("--estimators", "all", "--resamples", 100, "--workers", 1)
    invoke("evaluate", busi / maps[0], *maps[1:], *truths, *how, "-o", tmp_path / "out")
    for name in ("ID", "dice_plain"):
        check(tmp_path / "out/tables", "busi", name)
