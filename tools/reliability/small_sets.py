"""Data sets that are small, so that a run over them takes seconds, and real: files as models write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["write_breast_images", "write_maps"]


def _disc(rng: np.random.Generator, side: int) -> Any:
    """Distance of each pixel from a disc's edge, in pixels; negative inside."""
    rows, columns = np.indices((side, side)) - rng.uniform(0.35, 0.65, 2)[:, None, None] * side
    return np.hypot(rows, columns) - rng.uniform(0.1, 0.3) * side


def write_maps(folder: Path, *, cases: int, side: int, seed: int = 0) -> None:
    """Write probability maps below ``predictions`` and their truths below ``masks``, some of them wrong."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for name in ("predictions", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(cases):
        distance = _disc(rng, side)
        wrong = rng.uniform(-0.08, 0.08) * side
        noise = rng.normal(0.0, 1.0, (side, side))
        p = 1.0 / (1.0 + np.exp((distance + wrong + noise) / rng.uniform(1.0, 0.05 * side)))
        np.save(folder / "predictions" / f"case_{number:03d}.npy", p.astype(np.float32))
        Image.fromarray(np.uint8(255) * (distance < 0)).save(folder / "masks" / f"case_{number:03d}.png")


def write_breast_images(folder: Path, *, benign: int, malignant: int, side: int, seed: int = 0) -> None:
    """Write pictures with bright discs in the layout of BUSI, which ``breast-cancer`` is trained on."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    for name, count in (("benign", benign), ("malignant", malignant)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(1, count + 1):
            inside = _disc(rng, side) < 0
            grey = np.where(inside, 160.0, 40.0)[..., None] + rng.normal(0.0, 12.0, (side, side, 3))
            stem = folder / name / f"{name} ({number})"
            Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(f"{stem}.png")
            Image.fromarray(np.uint8(255) * inside).save(f"{stem}_mask.png")
