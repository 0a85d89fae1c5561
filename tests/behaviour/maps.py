"""Small probability maps for behaviour tests, from divisions and sums alone: the same on every machine.

No two axes have the same length and no map is symmetric: a transposed, flipped or shifted map has other
scores or another shape.
"""

import numpy as np

FLAT = (11, 17)
VOLUME = (5, 9, 13)


def blob(shape, *, at=0.45, width=0.3, rise=0.0):
    """Return a float64 map that falls off around a point, with a ripple that no symmetry maps onto itself."""
    axes = np.meshgrid(*((np.arange(length) + 0.5) / length for length in shape), indexing="ij")
    squared = sum((axis - at - 0.07 * number) ** 2 / (1 + 0.3 * number) for number, axis in enumerate(axes))
    p = 1 / (1 + (squared / width**2) ** 2)
    ripple = (np.arange(p.size).reshape(shape) * 7919 % 101) / 101 - 0.5
    return np.clip(p + 0.12 * ripple + rise, 0.0, 1.0)


def truth_of(shape, *, at=0.5, radius=0.33):
    """Return a mask (uint8) that overlaps with `blob` in part."""
    axes = np.meshgrid(*((np.arange(length) + 0.5) / length for length in shape), indexing="ij")
    return np.uint8(sum((axis - at) ** 2 for axis in axes) < radius**2)


def quantised(p, dtype):
    """Return a map as a file of whole numbers holds it: 0 to 255, or 0 to 65535."""
    return np.round(p * np.iinfo(dtype).max).astype(dtype)


CONTENTS = {
    "flat f8": blob(FLAT),
    "flat f4": blob(FLAT).astype(np.float32),
    "flat f2": blob(FLAT).astype(np.float16),
    "flat u2": quantised(blob(FLAT), np.uint16),
    "flat u1": quantised(blob(FLAT), np.uint8),
    "volume f8": blob(VOLUME),
    "volume f4": blob(VOLUME).astype(np.float32),
    "volume u2": quantised(blob(VOLUME), np.uint16),
    "volume u1": quantised(blob(VOLUME), np.uint8),
}
"""Maps by shape and type."""


def softmax_like(shape, classes=3):
    """Return maps (classes, ...) in float32 that sum to 1 up to rounding."""
    raw = np.stack([blob(shape, at=0.25 + 0.2 * number, width=0.25) + 0.05 for number in range(classes)])
    return (raw / raw.sum(axis=0)).astype(np.float32)


def write_cases(folder, count, *, shape=FLAT, truths=None, first=0):
    """Write so many different maps as .npy, and their truth masks into another folder if wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    if truths is not None:
        truths.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        shift = (number * 37 % 40) / 100
        p = blob(shape, at=0.3 + shift, width=0.2 + (number * 13 % 20) / 100)
        np.save(folder / f"case_{number:03d}.npy", p.astype(np.float32))
        if truths is not None:
            truth = truth_of(shape, at=0.35 + shift, radius=0.25 + (number % 5) / 30)
            np.save(truths / f"case_{number:03d}.npy", truth)
