"""Curves of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from segtrust.report.figures import new_axes

__all__ = ["draw_training"]

_LOSS, _DICE = "#0072b2", "#d55e00"


def draw_training(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Any:
    """Draw training loss and validation Dice against the epoch; a mark at the epoch that is kept."""
    figure, axes = new_axes(1, 2, width=7.0, height=2.6)
    epochs = [row["epoch"] for row in rows]
    axes[0, 0].plot(epochs, [row["loss"] for row in rows], color=_LOSS, linewidth=1.2)
    axes[0, 0].set_ylabel("training loss")
    validated = [row for row in rows if row["val_dice"] is not None]
    if validated:
        _draw_dice(axes[0, 1], validated)
    for each in axes.flat:
        each.set_xlabel("epoch")
    figure.suptitle(title, fontsize=9)
    return figure


def _draw_dice(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    best = max(rows, key=lambda row: row["val_dice"])
    axes.plot([row["epoch"] for row in rows], [row["val_dice"] for row in rows], color=_DICE, linewidth=1.2)
    axes.plot(best["epoch"], best["val_dice"], "o", color=_DICE, markersize=4)
    axes.annotate(
        f"{best['val_dice']:.3f}", (best["epoch"], best["val_dice"]), fontsize=8, ha="right", va="bottom"
    )
    axes.set_ylabel("validation Dice")
    axes.set_ylim(0.0, 1.0)
