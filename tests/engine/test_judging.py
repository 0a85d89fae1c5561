"""The loss of a row: as computed from the arrays, for each risk; none if the row does not say enough."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from segtrust.engine.judging import Judge, loss_column, loss_name, loss_of_row, loss_of_target
from segtrust.io.tables import Table
from segtrust.maps import EmptyPolicy
from segtrust.risks import RISKS, overlap
from segtrust.selective import Target

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
    assert Judge(risk.column).judged([row])[0]["loss"] == expected


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
