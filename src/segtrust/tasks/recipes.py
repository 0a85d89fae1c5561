"""How the networks of the paper are trained: as its appendix says, and as published code does."""

from __future__ import annotations

from dataclasses import replace

from segtrust.tasks.augmenting import flipped_and_turned
from segtrust.tasks.task import Recipe

__all__ = ["UNEXT_CODE", "UNEXT_PAPER"]

UNEXT_PAPER = Recipe(
    optimiser="adam",
    learning_rate=1e-4,
    weight_decay=1e-4,
    schedule="cosine",
    final_rate=1e-5,
    epochs=400,
    batch=8,
    augment=flipped_and_turned,
)
UNEXT_CODE = replace(UNEXT_PAPER, learning_rate=1e-3, epochs=100, batch=16)
