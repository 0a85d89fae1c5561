"""Smooth random fields, and truths whose errors are smooth: what is true next to a pixel is true of it too.

A truth is where a standard normal field, smooth over some length, lies below Φ⁻¹(q): each pixel keeps its
probability, and boundaries shift as a whole. No formula gives the expected Dice then; it is the mean over
drawn truths, with a standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from scipy.special import ndtri

__all__ = ["SmoothField", "sampled_dices"]

_NEGLIGIBLE = 1e-7
"""Amplitudes below this part of the largest are left out."""


@dataclass(frozen=True)
class SmoothField:
    """Gaussian fields on a square without borders, with mean 0 and variance 1 at each pixel.

    Attributes
    ----------
    side
        Pixels along each axis.
    length
        Distance, as a part of the side, at which the correlation has fallen to exp(-1/2); 0 for pixels
        that are independent.

    Examples
    --------
    >>> field = SmoothField(side=32, length=0.1).draw(np.random.default_rng(0), 2)
    >>> field.shape
    (2, 32, 32)
    """

    side: int
    length: float

    def _amplitudes(self) -> tuple[Any, Any]:
        """Frequencies along one axis that matter, and their amplitudes; the squares add up to 1."""
        frequencies = scipy.fft.fftfreq(self.side, 1.0 / self.side)
        amplitudes = np.exp(-((math.pi * self.length * frequencies) ** 2))
        kept = np.flatnonzero(amplitudes > _NEGLIGIBLE)
        return kept, amplitudes[kept] / np.linalg.norm(amplitudes[kept])

    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw ``count`` fields, in single precision, of shape (count, side, side)."""
        if self.length == 0.0:
            return rng.standard_normal((count, self.side, self.side), np.float32)
        kept, amplitudes = self._amplitudes()
        pairs = (count + 1) // 2
        shape = (pairs, kept.size, kept.size)
        noise = rng.standard_normal((2, *shape), np.float32)
        waves = (noise[0] + 1j * noise[1]) * np.outer(amplitudes, amplitudes).astype(np.float32)
        columns = np.zeros((pairs, self.side, kept.size), np.complex64)
        columns[:, kept] = waves
        fields: Any = np.zeros((pairs, self.side, self.side), np.complex64)
        transformed: Any = scipy.fft.ifft(columns, axis=1, norm="forward", overwrite_x=True)
        fields[..., kept] = transformed
        fields = scipy.fft.ifft(fields, axis=2, norm="forward", overwrite_x=True)
        return np.concatenate((fields.real, fields.imag))[:count]  # two that are independent


def sampled_dices(q: Any, mask: Any, errors: SmoothField, rng: np.random.Generator, draws: int) -> Any:
    """Give the Dice of a mask against ``draws`` truths whose errors are smooth; 0 against an empty one.

    Parameters
    ----------
    q, mask
        Probabilities and mask, of shape (side, side).
    errors
        The field that decides which pixels are true.
    rng, draws
        Generator, and number of truths.
    """
    levels = ndtri(q).astype(np.float32)
    at_once = max(2, min(draws, 2**18 // q.size))
    found = [
        _dices(errors.draw(rng, min(at_once, draws - first)) < levels, mask)
        for first in range(0, draws, at_once)
    ]
    return np.concatenate(found)


def _dices(truths: Any, mask: Any) -> Any:
    hits = np.count_nonzero(truths & mask, axis=(1, 2))
    total = np.count_nonzero(truths, axis=(1, 2)) + np.count_nonzero(mask)
    return 2.0 * hits / np.maximum(total, 1)
