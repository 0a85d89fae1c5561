"""A regression forest as plain arrays: grown by scikit-learn, evaluated without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from segtrust._files import check_keys, naming_errors
from segtrust._optional import require
from segtrust.errors import CaseLengthError, SavedStateError

_NODES = {
    "features": np.int64,
    "limits": np.float64,
    "left": np.int64,
    "right": np.int64,
    "values": np.float64,
    "roots": np.int64,
}


@dataclass(frozen=True, eq=False)
class Forest:
    """Regression trees, one after the other; a node is an index into the arrays.

    Attributes
    ----------
    features, limits
        A row goes left if its feature is at most the limit; a leaf has the feature -1.
    left, right
        The next node on either side.
    values
        Mean target of the training rows in each node.
    roots
        First node of each tree.
    width
        Number of features of a row.

    Examples
    --------
    >>> nodes = {"features": [0, -1, -1], "limits": [0.5, 0.0, 0.0], "values": [0.5, 0.2, 0.8]}
    >>> children = {"left": [1, -1, -1], "right": [2, -1, -1], "roots": [0]}
    >>> forest = Forest.from_dict({**nodes, **children, "width": 1})
    >>> forest.predict([[0.1], [0.9]]).tolist()
    [0.2, 0.8]
    """

    features: Any
    limits: Any
    left: Any
    right: Any
    values: Any
    roots: Any
    width: int

    def predict(self, rows: Any) -> Any:
        """Return the mean over the trees of the leaf that each row falls into.

        Rows are compared as float32, as scikit-learn does.
        """
        rows = np.asarray(rows).astype(np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise CaseLengthError(f"rows: expected {self.width} features each, got shape {rows.shape}.")
        nodes = np.repeat(self.roots[np.newaxis], len(rows), 0)  # of each row in each tree
        lines = np.arange(len(rows))[:, np.newaxis]
        while (inner := self.features[nodes] >= 0).any():
            goes_left = rows[lines, self.features[nodes]] <= self.limits[nodes]
            nodes = np.where(inner, np.where(goes_left, self.left[nodes], self.right[nodes]), nodes)
        # Sorted, so that equal leaves in another order of the trees have the same mean, to the last digit.
        return np.sort(self.values[nodes], axis=1).mean(1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {name: getattr(self, name).tolist() for name in _NODES} | {"width": self.width}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Forest:
        """Return the forest that `to_dict` saved."""
        values = check_keys(saved, (*_NODES, "width"), "forest")
        with naming_errors("forest"):
            arrays = {name: _as_array(values[name], name, kind) for name, kind in _NODES.items()}
            forest = cls(**arrays, width=index(values["width"]))
        sizes = {arrays[name].size for name in _NODES if name != "roots"}
        if len(sizes) > 1 or not (forest.features.size and forest._leads_to_leaves):
            raise SavedStateError("forest: expected trees whose nodes lead from the root to a leaf.")
        if not ((forest.features >= -1) & (forest.features < forest.width)).all():
            raise SavedStateError(
                f"forest: expected features from 0 to {forest.width - 1}, and -1 for a leaf."
            )
        if not (np.isfinite(forest.limits).all() and np.isfinite(forest.values).all()):
            raise SavedStateError("forest: expected finite limits and values.")
        return forest

    @property
    def _leads_to_leaves(self) -> bool:
        """Whether every node leads forward, to a node that exists."""
        nodes = np.arange(self.features.size)
        inner = self.features >= 0
        forward = all((children[inner] > nodes[inner]).all() for children in (self.left, self.right))
        inside = all((indices < nodes.size).all() for indices in (self.left, self.right, self.roots))
        return bool(self.roots.size and (self.roots >= 0).all() and forward and inside)


def _as_array(values: Any, name: str, kind: Any) -> Any:
    array = np.asarray(values)
    allowed = "i" if kind is np.int64 else "if"
    if array.ndim != 1 or (array.size and array.dtype.kind not in allowed):
        raise SavedStateError(f"{name}: expected a list of {'whole ' * (kind is np.int64)}numbers.")
    return array.astype(kind)


def grow_forest(rows: Any, targets: Any, *, trees: int, seed: int) -> Forest:
    """Fit scikit-learn's random forest with its default settings and extract its trees."""
    regressor = require("sklearn.ensemble", extra="learn").RandomForestRegressor
    fitted = regressor(n_estimators=trees, random_state=seed).fit(rows, targets)
    grown = [estimator.tree_ for estimator in fitted.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in grown[:-1])])
    return Forest(
        features=np.concatenate(
            [np.where(tree.children_left < 0, -1, tree.feature) for tree in grown]
        ).astype(np.int64),
        limits=np.concatenate([tree.threshold for tree in grown]),
        left=_join_children([tree.children_left for tree in grown], roots),
        right=_join_children([tree.children_right for tree in grown], roots),
        values=np.concatenate([tree.value[:, 0, 0] for tree in grown]),
        roots=roots,
        width=np.shape(rows)[1],
    )


def _join_children(children: list[Any], roots: Any) -> Any:
    """Count the nodes from the beginning of the forest instead of the tree; a leaf has the child -1."""
    joined = [np.where(nodes < 0, -1, nodes + root) for nodes, root in zip(children, roots, strict=True)]
    return np.concatenate(joined).astype(np.int64)
