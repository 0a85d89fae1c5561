"""rankseg: masks that aim at the Dice, and what segtrust's exact expected Dice says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rankseg import RankSEG

import segtrust as st
from docs.results.scripts.peers import inputs
from docs.results.scripts.peers.tables import Table


def decoded(p: Any, solver: str) -> Any:
    """Give the masks of one solver."""
    search = RankSEG(metric="dice", output_mode="multilabel", solver=solver)
    return search.predict(torch.from_numpy(p)[:, None])[:, 0].numpy().astype(bool)


def row(name: str, p: Any, truth: Any, masks: Any) -> tuple[str, str, str]:
    """Give the mean of the exact expected Dice, and of the Dice."""
    expected = [st.ideal_dice_confidence(one, mask) for one, mask in zip(p, masks, strict=True)]
    reached = [st.dice(t, mask) for t, mask in zip(truth, masks, strict=True)]
    return name, f"{np.mean(expected):.4f}", f"{np.mean(reached):.4f}"


def tables() -> list[Table]:
    """Give all tables."""
    rows = []
    for name in ("id", "ood-bright"):
        p, truth, _ = inputs.maps(name)
        rows.append(row(f"{name}, p ≥ 0.5", p, truth, p >= 0.5))
        rows += [row(f"{name}, rankseg `{s}`", p, truth, decoded(p, s)) for s in ("RMA", "BA")]
    return [Table("decoding", ("maps, masks", "mean expected Dice", "mean Dice"), tuple(rows))]
