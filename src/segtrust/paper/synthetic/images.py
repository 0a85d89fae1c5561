"""Images of section 6 of the paper: posteriors without the empty mask, and what a model makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from segtrust.paper.synthetic.draws import standard_normals

__all__ = ["NOISE_SEED", "Images", "Models", "draw_images", "draw_noise", "perturb"]

NOISE_SEED = 33
"""The noise of image x is drawn from the seed x + 33."""


@dataclass(frozen=True, eq=False)
class Images:
    """What is true of some images: pixels are independent, given that the truth is not empty.

    Attributes
    ----------
    q
        Probabilities before that condition, of shape (images, pixels).
    may_be_empty
        Whether the condition is dropped; the marginals are then ``q``.
    """

    q: Any
    may_be_empty: bool = False

    @cached_property
    def chance(self) -> Any:
        """Chance of the condition: 1 - Π(1 - q), right also where it is tiny, or 1 without it."""
        if self.may_be_empty:
            return np.ones(self.q.shape[0])
        with np.errstate(divide="ignore"):  # a pixel that is certain: the logarithm is minus infinity
            return -np.expm1(np.log1p(-self.q).sum(1))

    @cached_property
    def p(self) -> Any:
        """Marginals given the condition; equal to 1 at most, whatever the rounding."""
        if self.may_be_empty:
            return self.q
        return np.minimum(self.q / self.chance[:, None], 1.0)

    @property
    def alpha(self) -> float:
        """Expected share of foreground."""
        return float(self.p.mean())


@dataclass(frozen=True, eq=False)
class Models:
    """What a model gives for some images: its marginals, and its masks ``p_hat >= 0.5``."""

    p_hat: Any

    @cached_property
    def masks(self) -> Any:
        """Masks of the images."""
        return self.p_hat >= 0.5

    @cached_property
    def k(self) -> Any:
        """Pixels in each mask."""
        return self.masks.sum(1)

    @cached_property
    def s(self) -> Any:
        """Probability in each mask."""
        return np.where(self.masks, self.p_hat, 0.0).sum(1)

    @cached_property
    def lam(self) -> Any:
        """Probability outside each mask."""
        return np.where(self.masks, 0.0, self.p_hat).sum(1)


def draw_images(seeds: range, *, n: int, mu_z: float, rho_z: float) -> Images:
    """Draw each image from its own seed, the logits of its ``n`` pixels from N(mu_z, rho_z²).

    Examples
    --------
    >>> draw_images(range(0, 5000), n=10, mu_z=-3.698, rho_z=5.0).alpha.__round__(7)
    0.2495975
    """
    return Images(expit(mu_z + rho_z * standard_normals(seeds.start, len(seeds), n)))


def draw_noise(seeds: range, *, n: int) -> Any:
    """Draw standard normal noise for each image from a seed of its own; the same for every strength."""
    return standard_normals(seeds.start + NOISE_SEED, len(seeds), n)


def perturb(images: Images, noise: Any, rho_eta: float) -> Models:
    """Give the model whose logits are off by ``rho_eta`` times the noise; the ideal one where that is 0."""
    if rho_eta == 0.0:
        return Models(images.p)
    with np.errstate(divide="ignore"):  # a pixel that is certain stays so
        return Models(expit(logit(images.p) + rho_eta * noise))
