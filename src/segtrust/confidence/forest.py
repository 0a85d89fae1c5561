"""A regression forest as plain arrays: grown by scikit-learn, read without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from segtrust.errors import CaseLengthError, SavedStateError
from segtrust.optional import require
from segtrust.saved import check_keys, reading

__all__ = ["Forest", "grow_forest"]

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
    width
        Features of a row.

    Examples
    --------
    >>> nodes = {"features": [0, -1, -1], "limits": [0.5, 0.0, 0.0], "values": [0.5, 0.2, 0.8]}
    >>> ways = {"left": [1, -1, -1], "right": [2, -1, -1], "roots": [0]}
    >>> forest = Forest.from_dict({**nodes, **ways, "width": 1})
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
        """Give the mean over the trees of the leaf that each row falls into.

        Rows are compared as float32, as scikit-learn does.
        """
        rows = np.asarray(rows).astype(np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise CaseLengthError(f"rows: expected {self.width} features each, got shape {rows.shape}.")
        at = np.repeat(self.roots[np.newaxis], len(rows), 0)
        lines = np.arange(len(rows))[:, np.newaxis]
        while (inner := self.features[at] >= 0).any():
            goes_left = rows[lines, self.features[at]] <= self.limits[at]
            at = np.where(inner, np.where(goes_left, self.left[at], self.right[at]), at)
        # Sorted, so that equal leaves in another order of the trees have the same mean, to the last digit.
        return np.sort(self.values[at], axis=1).mean(1)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values, ready for JSON."""
        return {name: getattr(self, name).tolist() for name in _NODES} | {"width": self.width}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Forest:
        """Make again what `to_dict` gave."""
        values = check_keys(saved, (*_NODES, "width"), "forest")
        with reading("forest"):
            arrays = {name: _array(values[name], name, kind) for name, kind in _NODES.items()}
            found = cls(**arrays, width=index(values["width"]))
        sizes = {getattr(found, name).size for name in _NODES if name != "roots"}
        if len(sizes) > 1 or not (found._lead_to_leaves and found.features.size):
            raise SavedStateError("forest: expected trees whose nodes lead from the root to a leaf.")
        found._check_values()
        return found

    @property
    def _lead_to_leaves(self) -> bool:
        """Whether all ways lead on, and to nodes that are there."""
        nodes = np.arange(self.features.size)
        inner = self.features >= 0
        forward = all((each[inner] > nodes[inner]).all() for each in (self.left, self.right))
        inside = all((each < nodes.size).all() for each in (self.left, self.right, self.roots))
        return bool(self.roots.size and (self.roots >= 0).all() and forward and inside)

    def _check_values(self) -> None:
        """Refuse features that no row has, and numbers that are none."""
        if not ((self.features >= -1) & (self.features < self.width)).all():
            raise SavedStateError(f"forest: expected features from 0 to {self.width - 1}, and -1 for a leaf.")
        if not (np.isfinite(self.limits).all() and np.isfinite(self.values).all()):
            raise SavedStateError("forest: expected finite limits and values.")


def _array(values: Any, name: str, kind: Any) -> Any:
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in ("i" if kind is np.int64 else "if")):
        raise SavedStateError(f"{name}: expected a list of {'whole ' * (kind is np.int64)}numbers.")
    return found.astype(kind)


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
        width=np.shape(rows)[1],
    )


def _moved(children: list[Any], roots: Any) -> Any:
    """Count children from the beginning of the forest; a leaf's are -1."""
    moved = [np.where(each < 0, -1, each + root) for each, root in zip(children, roots, strict=True)]
    return np.concatenate(moved).astype(np.int64)
