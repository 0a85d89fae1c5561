"""Forests as plain arrays predict what scikit-learn's do."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from segtrust.confidence.forest import Forest, grow_forest
from segtrust.errors import CaseLengthError, SavedStateError

STUMP = {
    "features": [1, -1, -1],
    "limits": [0.5, 0.0, 0.0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "values": [0.5, 0.2, 0.8],
    "roots": [0],
    "width": 2,
}


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(("n", "trees"), [(1, 1), (2, 10), (60, 10)])
def test_predicts_what_scikit_learn_predicts(n, trees):
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(n)
    rows, targets = rng.normal(0, 1e6, (n, 12)), rng.random(n)
    rows[:, 3] = 1.0
    theirs = RandomForestRegressor(n_estimators=trees, random_state=7).fit(rows, targets)
    ours = grow_forest(rows, targets, trees=trees, seed=7)
    unseen = np.concatenate([rows, rng.normal(0, 1e6, (50, 12))])
    np.testing.assert_allclose(ours.predict(unseen), theirs.predict(unseen), rtol=1e-12)


@pytest.mark.needs("sklearn")
def test_rows_at_a_limit_go_left_as_float32():
    """scikit-learn rounds rows to float32; a row between two floats must fall on the same side."""
    from sklearn.ensemble import RandomForestRegressor

    rows = np.array([[0.1], [0.1 + 1e-9], [0.2], [0.3]])
    targets = np.array([0.0, 0.3, 0.6, 0.9])
    theirs = RandomForestRegressor(n_estimators=20, random_state=0).fit(rows, targets)
    ours = grow_forest(rows, targets, trees=20, seed=0)
    grid = np.sort(np.concatenate([np.linspace(0.05, 0.35, 301), ours.limits]))[:, np.newaxis]
    np.testing.assert_allclose(ours.predict(grid), theirs.predict(grid), rtol=1e-12)


def test_a_stump():
    forest = Forest.from_dict(STUMP)
    assert forest.predict([[9.0, 0.4], [0.0, 0.5], [0.0, 0.6]]).tolist() == [0.2, 0.2, 0.8]


def test_the_order_of_the_trees_makes_no_difference():
    """Rows that fall into equal leaves must tie, whichever tree has which."""
    leaves = [0.1, 0.2, 0.7, 0.3, 0.6]
    nodes = {"features": [0] * 5 + [-1] * 10, "limits": [0.5] * 5 + [0.0] * 10}
    ways = {"left": [5, 6, 7, 8, 9] + [-1] * 10, "right": [10, 11, 12, 13, 14] + [-1] * 10}
    values = [0.0] * 5 + leaves + leaves[::-1]
    forest = Forest.from_dict({**nodes, **ways, "values": values, "roots": [*range(5)], "width": 1})
    left, right = forest.predict([[0.0], [1.0]])
    assert left == right


@pytest.mark.needs("sklearn")
def test_plain_values_make_it_again():
    rng = np.random.default_rng(0)
    rows = rng.random((20, 5))
    forest = grow_forest(rows, rng.random(20), trees=8, seed=1)
    again = Forest.from_dict(json.loads(json.dumps(forest.to_dict())))
    assert again.predict(rows).tolist() == forest.predict(rows).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"left": [0, -1, -1]},  # back to itself
        {"right": [5, -1, -1]},
        {"values": [0.5]},
        {"roots": []},
        {"roots": [3]},
        {"roots": [-1]},
        {name: [] for name in STUMP if name != "width"},
    ],
)
def test_nodes_that_lead_nowhere_are_refused(change):
    with pytest.raises(
        SavedStateError, match="forest: expected trees whose nodes lead from the root to a leaf"
    ):
        Forest.from_dict(STUMP | change)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"features": [2, -1, -1]}, "features from 0 to 1, and -1 for a leaf"),
        ({"features": [-2, -1, -1]}, "features from 0 to 1"),
        ({"features": [7, -1, -1], "width": 7}, "features from 0 to 6, and -1 for a leaf"),
        ({"values": [0.5, float("nan"), 0.8]}, "finite limits and values"),
        ({"limits": [float("inf"), 0.0, 0.0]}, "finite limits and values"),
        ({"left": [1.5, -1, -1]}, "left: expected a list of whole numbers"),
        ({"values": [0.5, "a", 0.8]}, "values: expected a list of numbers"),
        ({"values": [[0.5], [0.1, 0.2]]}, "forest: "),
        ({"left": [10**30, -1, -1]}, "left: expected a list of whole numbers"),
        ({"width": "2"}, "forest: "),
    ],
)
def test_damaged_values_are_refused(change, expected):
    with pytest.raises(SavedStateError, match=expected):
        Forest.from_dict(STUMP | change)


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        ([[0.0, 0.0, 0.0]], r"\(1, 3\)"),
        ([0.0, 0.0], r"\(2,\)"),
        (0.0, r"\(\)"),
        ([[[0.0, 0.0]]], r"\(1, 1, 2\)"),
    ],
)
def test_rows_of_another_shape_are_refused(rows, shape):
    with pytest.raises(CaseLengthError, match=f"rows: expected 2 features each, got shape {shape}"):
        Forest.from_dict(STUMP).predict(rows)


def test_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Forest.from_dict(STUMP).width = 3


def test_missing_arrays_are_named():
    with pytest.raises(SavedStateError, match="forest: 'limits' is missing"):
        Forest.from_dict({name: values for name, values in STUMP.items() if name != "limits"})
