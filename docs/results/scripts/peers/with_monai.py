"""MONAI: its Dice of empty masks."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from monai.metrics import compute_dice

from docs.results.scripts.peers import empties
from docs.results.scripts.peers.tables import Table


def dice(truth: Any, mask: Any, ignore_empty: bool) -> float:
    """Dice of the foreground."""
    given = [torch.from_numpy(each)[None, None].float() for each in (mask, truth)]
    return float(compute_dice(*given, include_background=True, ignore_empty=ignore_empty).squeeze())


def tables() -> list[Table]:
    """Give the table."""
    rows = [
        empties.answers(f"MONAI, `compute_dice`, `ignore_empty={flag}`", partial(dice, ignore_empty=flag))
        for flag in (True, False)
    ]
    return [empties.table(*rows)]
