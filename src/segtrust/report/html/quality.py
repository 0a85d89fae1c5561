"""What cases are judged by, and how that is called: the Dice where it is known, else the loss itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from segtrust.io.losses import is_dice
from segtrust.report.html.run import ReportedRun

__all__ = ["Quality", "quality_of"]


@dataclass(frozen=True)
class Quality:
    """What is shown of how good cases are.

    Attributes
    ----------
    axis, word
        On an axis, and in a sentence.
    is_share
        Whether it is one minus the loss, from 0 to 1 and better the higher; else it is the loss.
    """

    axis: str
    word: str
    is_share: bool

    def of(self, losses: Any) -> Any:
        """Give it from losses.

        Examples
        --------
        >>> Quality("Dice", "Dice", True).of(0.25), Quality("loss", "loss", False).of(7.0)
        (0.75, 7.0)
        """
        return 1.0 - losses if self.is_share else losses


def quality_of(run: ReportedRun) -> Quality:
    """Give what the losses of a run are one minus of; the loss where that is not said."""
    if is_dice(run.loss_name):
        return Quality("Dice", "Dice", True)
    if run.loss_name == "iou":
        return Quality("IoU", "IoU", True)
    return Quality("loss", "loss", False)
