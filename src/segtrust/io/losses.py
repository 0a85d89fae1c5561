"""Losses that somebody else computed: a column of a table, or nnU-Net's ``summary.json``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from segtrust._files import read_json
from segtrust.errors import WrongContentError
from segtrust.io.names import case_of
from segtrust.io.structures import LabelScheme
from segtrust.io.table import read_table
from segtrust.risks import RISKS, find_risk

__all__ = ["Losses", "as_loss", "is_dice", "read_losses"]

Losses = Mapping[tuple[str, str], float | None]
"""By case and structure, which is empty where the file does not tell them apart. ``None`` for no loss."""
_HIGHER_IS_BETTER = ("nsd", "surface_dice", "accuracy", "precision", "recall", "sensitivity")
"""Metrics of other programs for which higher is better; `RISKS` says it for those that segtrust computes."""


def is_dice(column: str) -> bool:
    """Return whether a column holds the Dice."""
    return find_risk(column) is RISKS["dice_risk"]


def as_loss(value: Any, column: str) -> float | None:
    """Return the loss for a value in a column: 1 minus a metric for which higher is better, else itself.

    Return ``None`` for NaN, which nnU-Net writes if truth and mask are both empty.

    Examples
    --------
    >>> as_loss(0.75, "Dice"), as_loss(0.75, "hd95"), as_loss(float("nan"), "Dice")
    (0.25, 0.75, None)
    """
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a whole number too large for a float") from None
    if math.isnan(number):
        return None
    risk = find_risk(column)
    if risk is not None:
        return float(risk.loss(number))
    return 1.0 - number if column.lower() in _HIGHER_IS_BETTER else number


def read_losses(path: Path, column: str | None, scheme: LabelScheme | None = None) -> tuple[str, Losses]:
    """Read the loss of each case, and say which column it is from.

    Parameters
    ----------
    path
        A table with the columns ``case``, perhaps ``structure``, and the loss; or nnU-Net's ``summary.json``.
    column
        Of the loss, ``"loss"`` where none is given; in ``summary.json`` a metric, ``"Dice"`` where none is
        given. Of metrics that are better the higher they are one minus the metric is taken.
    scheme
        Names of the structures, for the labels of ``summary.json``.
    """
    if path.suffix.lower() == ".json":
        summary = read_json(path, error=WrongContentError)
        if isinstance(summary, Mapping) and "metric_per_case" in summary:
            metric = column or "Dice"
            return metric, _of_summary(summary["metric_per_case"], metric, path, scheme)
    name = column or "loss"
    return name, _of_table(path, name)


def _of_table(path: Path, column: str) -> Losses:
    table = read_table(path)
    structures = table.column("structure") if "structure" in table.columns else [""] * len(table.rows)
    names = [(str(case), str(each)) for case, each in zip(table.column("case"), structures, strict=True)]
    (often, times), *_ = [*Counter(names).most_common(1), (("", ""), 0)]
    if times > 1:
        raise WrongContentError(
            f"{path}: expected one loss for each case, got {times} of {' '.join(often).strip()!r}."
        )
    values = table.column(column)
    try:
        losses = [as_loss(value, column) for value in values]
    except (TypeError, ValueError) as error:
        raise WrongContentError(f"{path}: expected numbers as {column!r}, got: {error}.") from None
    return dict(zip(names, losses, strict=True))


def _of_summary(cases: Any, metric: str, path: Path, scheme: LabelScheme | None) -> Losses:
    found: dict[tuple[str, str], float | None] = {}
    try:
        for each in cases:
            case = case_of(Path(str(each["prediction_file"]).replace("\\", "/")))
            for label, metrics in each["metrics"].items():
                name = (case, _structure(label, scheme))
                if name in found:
                    raise ValueError(f"the case {case!r} comes twice")
                found[name] = as_loss(metrics[metric], metric)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WrongContentError(
            f"{path}: expected nnU-Net's metrics of each case with {metric!r}, got something else: {error!r}."
        ) from None
    return found


def _structure(label: str, scheme: LabelScheme | None) -> str:
    """Name the structure of a label such as ``1``, or of a region such as ``(1, 2, 3)``."""
    values = tuple(int(part) for part in label.strip("()[] ").split(",") if part.strip())
    named = {} if scheme is None else {of_name: name for name, of_name in scheme.labels}
    return named.get(values, label)
