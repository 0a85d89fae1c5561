"""The loss of a row: from the arrays, from a column, from a file of another program."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.engine.losses import (
    LossSource,
    loss_column,
    loss_name,
    loss_of_row,
    loss_of_target,
    read_losses,
)
from segtrust.errors import WrongContentError
from segtrust.io import Table, read_scheme, write_table
from segtrust.maps import EmptyPolicy
from segtrust.risks import RISKS, overlap
from segtrust.selective import Target

# The loss of a row: as computed from the arrays, for each risk; none if the row does not say enough.


masks = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: st.tuples(*[arrays.arrays(bool, shape) for _ in range(2)])
)


def row_of(truth, mask, empty):
    """What a score table says of these masks."""
    counts = overlap(truth, mask)
    return {
        "case": "a",
        "structure": "organ",
        "k": int(mask.sum()),
        "shape": "×".join(map(str, mask.shape)),
        "truth_ratio": int(truth.sum()) / truth.size,
        **{name: RISKS[f"{name}_risk"].from_counts(counts, empty) for name in ("dice", "iou")},
    }


@given(masks, st.sampled_from(EmptyPolicy), st.sampled_from(sorted(RISKS)))
def test_is_that_of_the_arrays(pair, empty, name):
    truth, mask = pair
    risk, row = RISKS[name], row_of(truth, mask, empty)
    expected = float(risk.of(truth, mask, empty=empty))
    assert loss_of_row(row, risk.column) == loss_of_row(row, risk.name) == expected
    assert LossSource(risk.column).add_to([row])[0]["loss"] == expected


@pytest.mark.parametrize("size", [10**6, 10**10, 10**13])
def test_counts_of_large_maps_are_exact(size):
    """Whole numbers come back from the Dice, whatever the number of pixels."""
    both, in_mask, in_truth = size // 7, size // 5, size // 3
    row = {
        "k": in_mask,
        "shape": f"{size}",
        "truth_ratio": in_truth / size,
        "dice": 2 * both / (in_mask + in_truth),
    }
    assert loss_of_row(row, "hamming") == (in_mask + in_truth - 2 * both) / size


@pytest.mark.parametrize("lacking", ["dice", "k", "shape", "truth_ratio"])
@pytest.mark.parametrize("nothing", [None, "text"])
def test_rows_that_do_not_say_enough(lacking, nothing):
    row = row_of(np.eye(3, dtype=bool), np.ones((3, 3), bool), "paper")
    assert loss_of_row(row, "f2") is not None
    assert loss_of_row({**row, lacking: nothing}, "f2") is None
    del row[lacking]
    assert loss_of_row(row, "hamming") is None
    assert loss_of_row(row, "hd95") is loss_of_row(row) is None


def test_a_column_wins():
    row = row_of(np.eye(3, dtype=bool), np.ones((3, 3), bool), "paper")
    assert loss_of_row({**row, "f2": 0.75}, "f2") == 0.25
    assert loss_of_row({**row, "loss": 7.0}) == 7.0
    assert loss_of_row({"DSC": 0.75}, "DSC") == loss_of_row({"dice": 0.75}, "DSC") == 0.25
    assert loss_of_row({"hd95": 3.5}, "hd95") == 3.5


class TestTables:
    def test_one_column_for_all_rows(self):
        assert loss_column(["dice", "loss"]) == "loss"
        assert loss_column(["dice"]) == "dice"
        assert loss_column(["dice", "loss"], "hamming") == "hamming"

    @pytest.mark.parametrize(
        ("row", "about", "asked", "name"),
        [
            ({"dice": 0.5}, {}, "loss", "dice"),
            ({"dice": 0.5}, {}, "hamming_risk", "hamming"),
            ({"DSC": 0.5}, {}, "DSC", "dice"),
            ({"loss": 0.5}, {}, "loss", None),
            ({"loss": 0.5}, {"loss": "iou"}, "loss", "iou"),
            ({"loss": 0.5}, {"loss": "hd95 of table.csv"}, "loss", "hd95 of table.csv"),
        ],
    )
    def test_say_what_their_losses_are(self, row, about, asked, name):
        assert loss_name(Table.of([{"case": "a", **row}], about), asked) == name

    @pytest.mark.parametrize(
        ("target", "name", "column"),
        [
            (Target(0.1), "dice", "loss"),
            (Target(0.1), None, "loss"),
            (Target(0.1), "iou", None),  # it does not say which loss it is about
            (Target(0.1, below_dice=0.8), "hamming", "dice"),
            (Target(0.1, loss="f2"), "f2", "loss"),
            (Target(0.1, loss="f2"), "dice", "f2"),
        ],
    )
    def test_limits_are_about_one_loss(self, target, name, column):
        assert loss_of_target(target, name) == column


# Losses that somebody else computed.


ROOT = Path(__file__).parents[1] / "fixtures/nnunet"
SUMMARIES = sorted(ROOT.glob("*/validation/summary.json"))


def losses_in(*arguments):
    return read_losses(*arguments)[1]


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
