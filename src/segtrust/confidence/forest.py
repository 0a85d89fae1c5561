"""A regression forest as plain arrays: grown by scikit-learn, read without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.errors import SavedStateError
from segtrust.optional import require
from segtrust.saved import check_keys

__all__ = ["Forest", "grow_forest"]

_COLUMNS = {
    "features": np.int64,
    "limits": np.float64,
    "left": np.int64,
    "right": np.int64,
    "values": np.float64,
    "roots": np.int64,
}


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees one after the other; a node is a place in the arrays.

    Attributes
    ----------
    features, limits
        A row goes left where its feature is at most the limit; a leaf has the feature -1.
    left, right
        Where it goes.
    values
        Mean target of the training rows in each node.
    roots
        Where each tree begins.

    Examples
    --------
    >>> nodes = {"features": [0, -1, -1], "limits": [0.5, 0.0, 0.0], "values": [0.5, 0.2, 0.8]}
    >>> forest = Forest.from_dict({**nodes, "left": [1, -1, -1], "right": [2, -1, -1], "roots": [0]})
    >>> forest.predict([[0.1], [0.9]]).tolist()
    [0.2, 0.8]
    """

    features: Any
    limits: Any
    left: Any
    right: Any
    values: Any
    roots: Any

    def predict(self, rows: Any) -> Any:
        """Give the mean over the trees of the leaf that each row falls into.

        Rows are compared as float32, as scikit-learn does.
        """
        rows = np.asarray(rows).astype(np.float32)
        at = np.repeat(self.roots[np.newaxis], len(rows), 0)
        lines = np.arange(len(rows))[:, np.newaxis]
        while (inner := self.features[at] >= 0).any():
            goes_left = rows[lines, self.features[at]] <= self.limits[at]
            at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
        return self.values[at].mean(1)

    def to_dict(self) -> dict[str, list[Any]]:
        """Give plain lists, ready for JSON."""
        return {name: getattr(self, name).tolist() for name in _COLUMNS}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Forest:
        """Make again what `to_dict` gave."""
        values = check_keys(saved, tuple(_COLUMNS), "forest")
        found = cls(**{name: np.array(values[name], kind) for name, kind in _COLUMNS.items()})
        found._check()
        return found

    def _check(self) -> None:
        """Refuse nodes that lead nowhere, or back."""
        nodes = np.arange(self.features.size)
        inner = self.features >= 0
        forward = all((each[inner] > nodes[inner]).all() for each in (self.left, self.right))
        inside = all(
            (each < nodes.size).all() and (each >= -1).all() for each in (self.left, self.right, self.roots)
        )
        sizes = {getattr(self, name).shape for name in _COLUMNS if name != "roots"}
        if len(sizes) != 1 or not nodes.size or not self.roots.size or not (forward and inside):
            raise SavedStateError("forest: expected trees whose nodes lead from the root to a leaf.")


def grow_forest(rows: Any, targets: Any, *, trees: int, seed: int) -> Forest:
    """Fit scikit-learn's random forest with its default settings and take its trees out."""
    regressor = require("sklearn.ensemble", extra="learn").RandomForestRegressor
    fitted = regressor(n_estimators=trees, random_state=seed).fit(rows, targets)
    grown = [each.tree_ for each in fitted.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in grown[:-1])])
    return Forest(
        features=np.concatenate(
            [np.where(tree.children_left < 0, -1, tree.feature) for tree in grown]
        ).astype(np.int64),
        limits=np.concatenate([tree.threshold for tree in grown]),
        left=_moved([tree.children_left for tree in grown], roots),
        right=_moved([tree.children_right for tree in grown], roots),
        values=np.concatenate([tree.value[:, 0, 0] for tree in grown]),
        roots=roots,
    )


def _moved(children: list[Any], roots: Any) -> Any:
    """Count children from the beginning of the forest; a leaf's are -1."""
    moved = [np.where(each < 0, -1, each + root) for each, root in zip(children, roots, strict=True)]
    return np.concatenate(moved).astype(np.int64)
