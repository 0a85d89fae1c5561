"""Outlines of masks as paths of SVG: sharp at any size, and drawn over a picture that stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["outline"]


def outline(mask: Any) -> str:
    """Give the edges between inside and outside of a mask, in units of pixels.

    Edges of the picture count: what touches it is closed there. An empty mask has an empty outline.

    Examples
    --------
    >>> outline(np.array([[True, True]]))
    'M0 0h2M0 1h2M0 0v1M2 0v1'
    """
    padded = np.pad(np.asarray(mask, bool), 1)
    flat = padded[1:, 1:-1] != padded[:-1, 1:-1]  # (H + 1, W): edges above each line of pixels
    upright = (padded[1:-1, 1:] != padded[1:-1, :-1]).T
    across = "".join(f"M{start} {line}h{length}" for line, start, length in _stretches(flat))
    down = "".join(f"M{line} {start}v{length}" for line, start, length in _stretches(upright))
    return across + down


def _stretches(edges: Any) -> list[tuple[int, int, int]]:
    """Give (line, start, length) of each unbroken row of edges."""
    steps = np.diff(np.pad(edges.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    lines, starts = np.nonzero(steps == 1)
    _, ends = np.nonzero(steps == -1)
    return [
        (int(line), int(start), int(end - start))
        for line, start, end in zip(lines, starts, ends, strict=True)
    ]
