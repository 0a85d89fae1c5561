"""Lesions made by rule: an ellipse as truth, and the map of a model that sees it more or less well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.maps import Case, Prediction

__all__ = ["LESIONS", "Lesion", "lesion_cases", "lesion_map", "mostly_empty_volume"]


@dataclass(frozen=True)
class Lesion:
    """One example.

    Attributes
    ----------
    id
        Says what the model gets wrong.
    radius
        Of the true lesion, in pixels.
    blur
        Width of the model's boundary, in pixels.
    shift
        How far the model's lesion is from the true one, in pixels.
    noise
        Standard deviation of the model's logits.
    """

    id: str
    radius: float
    blur: float
    shift: float
    noise: float


LESIONS = (
    Lesion("clear, large", radius=30.0, blur=1.0, shift=1.0, noise=0.3),
    Lesion("clear, small", radius=6.0, blur=1.0, shift=0.5, noise=0.3),
    Lesion("blurred boundary", radius=24.0, blur=8.0, shift=4.0, noise=0.5),
    Lesion("hesitant, small", radius=7.0, blur=4.0, shift=5.0, noise=1.0),
    Lesion("shifted and unsure", radius=14.0, blur=10.0, shift=12.0, noise=0.8),
    Lesion("a few pixels", radius=2.5, blur=2.0, shift=1.5, noise=1.0),
    Lesion("hardly anything", radius=3.0, blur=14.0, shift=9.0, noise=0.8),
)


def _distance(shape: tuple[int, ...], centre: tuple[float, ...], stretch: float = 1.0) -> Any:
    axes = np.ogrid[tuple(slice(length) for length in shape)]
    squares = [
        ((axis - middle) * (stretch if i else 1.0)) ** 2
        for i, (axis, middle) in enumerate(zip(axes, centre, strict=True))
    ]
    return np.sqrt(sum(squares))


def lesion_map(lesion: Lesion, *, size: int = 128, seed: int = 0) -> Case:
    """Make one example: truth, and a probability map as a model would give it.

    Examples
    --------
    >>> case = lesion_map(LESIONS[0])
    >>> case.id, case.prediction.shape
    ('clear, large', (128, 128))
    """
    rng = np.random.default_rng(seed)
    shape, middle = (size, size), size / 2.0
    truth = _distance(shape, (middle, middle), stretch=0.8) <= lesion.radius
    seen = lesion.radius - _distance(shape, (middle + lesion.shift, middle), stretch=0.8)
    logits = seen / lesion.blur + lesion.noise * rng.standard_normal(shape)
    p = 1.0 / (1.0 + np.exp(-logits))
    return Case(Prediction(p.astype(np.float32), id=lesion.id), truth)


def lesion_cases(*, seed: int = 0) -> list[Case]:
    """Make all examples, from easy to hopeless.

    Examples
    --------
    >>> len(lesion_cases())
    7
    """
    return [lesion_map(lesion, seed=seed + i) for i, lesion in enumerate(LESIONS)]


def mostly_empty_volume(shape: tuple[int, int, int] = (155, 240, 240), *, seed: int = 0) -> Any:
    """Make a float32 volume like a lesion model's: two blobs, and next to nothing elsewhere.

    About 2 % of the voxels are foreground; the background falls off to exactly 0 far from the blobs, as the
    float32 sigmoid of a confident network does.

    Examples
    --------
    >>> round(float((mostly_empty_volume((31, 48, 48)) >= 0.5).mean()), 2)
    0.02
    """
    rng = np.random.default_rng(seed)
    logits = np.full(shape, -np.inf, np.float32)
    for centre, share in (((0.45, 0.5, 0.4), 0.14), ((0.6, 0.35, 0.65), 0.08)):
        at = tuple(part * length for part, length in zip(centre, shape, strict=True))
        edge = share * shape[1] - _distance(shape, at)
        np.maximum(logits, (1.2 * edge).astype(np.float32), out=logits)
    logits += 0.3 * rng.standard_normal(shape, dtype=np.float32)
    return _float32_sigmoid(logits)


def _float32_sigmoid(logits: Any) -> Any:
    """Sigmoid in place; below exp(-104) a float32 is 0."""
    np.clip(logits, -110.0, 30.0, out=logits)
    np.exp(logits, out=logits)
    logits /= 1.0 + logits
    return logits
