"""torchmetrics: its Dice of empty masks."""

from __future__ import annotations

from typing import Any

import torch
from torchmetrics.functional.segmentation import dice_score

from docs.results.scripts.peers import empties
from docs.results.scripts.peers.tables import Table


def dice(truth: Any, mask: Any) -> float:
    """Dice of the foreground."""
    given = [torch.from_numpy(each.astype(int))[None] for each in (mask, truth)]
    found = dice_score(*given, num_classes=2, include_background=False, input_format="index")
    return float(found.squeeze())


def tables() -> list[Table]:
    """Give the table."""
    return [empties.table(empties.answers("torchmetrics, `dice_score`", dice))]
