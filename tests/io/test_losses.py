"""Losses that somebody else computed."""

import json
import math
from pathlib import Path

import pytest

from segtrust.errors import WrongContentError
from segtrust.io import losses as module
from segtrust.io.nnunet import read_scheme
from segtrust.io.tables import Table, write_table

ROOT = Path(__file__).parents[1] / "fixtures/nnunet"
SUMMARIES = sorted(ROOT.glob("*/validation/summary.json"))


def losses_in(*arguments):
    return module.read_losses(*arguments)[1]


def test_there_are_fixtures():
    assert len(SUMMARIES) == 2


@pytest.mark.parametrize("path", SUMMARIES, ids=lambda path: path.parts[-3])
@pytest.mark.parametrize("metric", ["Dice", "IoU", "FN"])
def test_summaries_of_nnunet_are_read(path, metric):
    scheme = read_scheme(path.parents[1] / "predictions/dataset.json")
    losses = losses_in(path, metric, scheme)
    names = dict(scheme.labels)
    cases = json.loads(path.read_text())["metric_per_case"]
    assert len(losses) == len(cases) * len(names)
    for each in cases:
        case = Path(each["prediction_file"]).name.removesuffix(".nii.gz")
        for name, values in names.items():
            metrics = next(found for key, found in each["metrics"].items() if numbers(key) == values)
            value = metrics[metric]
            wanted = None if math.isnan(value) else value if metric == "FN" else 1 - value
            assert losses[case, name] == wanted


def numbers(key):
    found = json.loads(key.replace("(", "[").replace(")", "]"))
    return tuple(found) if isinstance(found, list) else (found,)


def test_without_names_labels_are_named_by_their_numbers():
    path = ROOT / "plain/validation/summary.json"
    assert {structure for _, structure in losses_in(path, None)} == {"1", "2"}
    path = ROOT / "regions/validation/summary.json"
    assert {structure for _, structure in losses_in(path, None)} == {"(1, 2, 3)", "(2, 3)", "3"}


def summary(tmp_path, cases):
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"metric_per_case": cases}))
    return path


def test_paths_of_windows_and_empty_masks(tmp_path):
    case = {"prediction_file": "C:\\out\\a.nii.gz", "metrics": {"1": {"Dice": math.nan}}}
    assert losses_in(summary(tmp_path, [case]), None) == {("a", "1"): None}


@pytest.mark.parametrize(
    "cases",
    [
        [{"metrics": {"1": {"Dice": 1}}}],
        [{"prediction_file": "a.nii.gz", "metrics": {"1": {"IoU": 1}}}],
        [{"prediction_file": "a.nii.gz", "metrics": {"organ": {"Dice": 1}}}],
        [{"prediction_file": "a.nii.gz", "metrics": {"1": {"Dice": "good"}}}],
        [{"prediction_file": "a.nii.gz", "metrics": [1]}],
        [7],
        7,
    ],
)
def test_summaries_of_another_kind_are_told(tmp_path, cases):
    path = summary(tmp_path, cases)
    with pytest.raises(
        WrongContentError, match=f"^{path}: expected nnU-Net's metrics of each case with 'Dice'"
    ):
        losses_in(path, None)


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_a_column_of_a_table(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    write_table(path, Table.of([{"case": "007", "loss": 0.25}, {"case": "b", "loss": None}]))
    assert losses_in(path, None) == {("007", ""): 0.25, ("b", ""): None}


def test_structures_and_metrics_of_a_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("case,structure,Dice,cost\na,organ,0.75,3\na,lesion,1,\n")
    assert losses_in(path, "Dice") == {("a", "organ"): 0.25, ("a", "lesion"): 0.0}
    assert losses_in(path, "cost") == {("a", "organ"): 3.0, ("a", "lesion"): None}


def test_a_case_that_comes_twice_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("case,loss\na,0.5\nb,0.5\na,0.25\n")
    with pytest.raises(WrongContentError, match=f"^{path}: expected one loss for each case, got 2 of 'a'"):
        losses_in(path, None)


def test_text_is_no_loss(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("case,loss\na,high\n")
    with pytest.raises(WrongContentError, match=f"^{path}: expected numbers as 'loss', got: .*'high'"):
        losses_in(path, None)


def test_a_missing_column_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("case,dice\na,0.5\n")
    with pytest.raises(WrongContentError, match=f"^{path}: expected a column 'loss', got case, dice"):
        losses_in(path, None)
    path.write_text("name,loss\na,0.5\n")
    with pytest.raises(WrongContentError, match=f"^{path}: expected a column 'case', got name, loss"):
        losses_in(path, None)
    path.write_text("case,loss\n")
    assert losses_in(path, None) == {}


def test_json_that_is_neither_is_told(tmp_path):
    path = tmp_path / "a.json"
    for content in ("{}", "[]", "words"):
        path.write_text(content)
        with pytest.raises(WrongContentError, match=f"^{path}: expected"):
            losses_in(path, None)


def test_the_dice_has_many_names(tmp_path):
    path = tmp_path / "losses.csv"
    write_table(path, Table.of([{"case": "a", "DSC": 0.75, "hd95": 3.0}]))
    assert losses_in(path, "DSC") == {("a", ""): 0.25}
    assert losses_in(path, "hd95") == {("a", ""): 3.0}
