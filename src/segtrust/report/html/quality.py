"""What is shown of how good cases are: the metric of the risk, or the loss itself if that is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    """Return the metric of the risk that the cases are judged by; the loss if that is none of ours."""
    risk = run.risk
    if risk is None:
        return Quality("loss", "loss", False)
    name = risk.label if risk.higher_is_better else risk.loss_label
    return Quality(name, name, risk.higher_is_better)
