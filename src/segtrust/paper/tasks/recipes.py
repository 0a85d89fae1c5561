"""How the networks of the paper are trained: as its appendix says, and as published code does."""

from __future__ import annotations

from dataclasses import replace

from segtrust.paper.tasks.augmenting import flipped_and_turned, fundus_changed, none, patch_changed
from segtrust.paper.tasks.task import Recipe

__all__ = [
    "POLYP_PVT_CODE",
    "SEGTRAN_CODE",
    "SEGTRAN_PAPER",
    "SHIFTS_CODE",
    "SHIFTS_PAPER",
    "UNEXT_CODE",
    "UNEXT_PAPER",
]

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

SHIFTS_PAPER = Recipe(
    optimiser="adam",
    learning_rate=1e-3,
    schedule="polynomial",
    iterations=15_000,
    batch=2,
    patches=32,
    augment=patch_changed,
    loss="cross-entropy-dice",
)
SHIFTS_CODE = replace(
    SHIFTS_PAPER, learning_rate=1e-5, schedule="constant", epochs=300, iterations=0, loss=""
)

SEGTRAN_PAPER = Recipe(
    optimiser="adamw",
    learning_rate=2e-4,
    weight_decay=1e-4,
    backbone_decay=1e-5,
    schedule="warmup-linear",
    iterations=10_000,
    batch=4,
    augment=fundus_changed,
    clip_norm=0.1,
    clip_tensor_norm=0.05,
)
SEGTRAN_CODE = replace(SEGTRAN_PAPER, optimiser="bert-adam", batch=6)

POLYP_PVT_CODE = Recipe(
    optimiser="adamw",
    learning_rate=1e-4,
    weight_decay=1e-4,
    schedule="constant",
    epochs=99,
    batch=16,
    augment=none,
    scales=(0.75, 1.0, 1.25),
    clip_value=0.5,
)
