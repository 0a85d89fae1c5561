"""Parameters of the simulated experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from segtrust.errors import ParameterError

__all__ = ["Beyond", "Synthetic"]

_LARGEST_SEED = 2**32 - 1


def check_count(value: Any, name: str, *, least: int, most: int = 10**9) -> int:
    """Give a whole number from ``least`` to ``most`` as Python's own, and refuse all else."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        raise ParameterError(f"{name}: expected a whole number from {least} to {most}, got {value!r}.")
    return int(value)


def check_real(value: Any, name: str, *, least: float, most: float) -> float:
    """Give a number from ``least`` to ``most`` as Python's own, and refuse all else."""
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= float(value) <= most:
        raise ParameterError(f"{name}: expected a number from {least:g} to {most:g}, got {value!r}.")
    return float(value)


def check_grid(value: Any, name: str, check: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Give the checked values of a tuple, list, range or one-dimensional array; refuse all else, and none."""
    if not isinstance(value, _GRIDS) or np.ndim(value) != 1:
        raise ParameterError(f"{name}: expected a tuple, a list or an array of numbers, got {value!r}.")
    if len(value) == 0:
        raise ParameterError(f"{name}: expected at least one value, got none.")
    return tuple(check(each) for each in value)


_GRIDS = (tuple, list, range, np.ndarray)


def check_different(values: tuple[Any, ...], name: str) -> None:
    """Refuse values that come twice."""
    if len(set(values)) < len(values):
        raise ParameterError(f"{name}: expected values that differ, got {values}. Give each once.")


@dataclass(frozen=True)
class Synthetic:
    """What the experiments of section 6 depend on; the defaults are the paper's.

    Attributes
    ----------
    n
        Pixels of an image, at most 256.
    images, repeats
        Images of a repeat, at least 2, and repeats. Repeat b has the images, hence the seeds,
        ``images * b`` to ``images * (b + 1) - 1``.
    mu_z, rho_z
        Mean and standard deviation of a pixel's logit.
    rho_eta
        Standard deviation of the noise on the logits of the perturbed model.
    mu_z_grid, rho_eta_grid
        Values along which the foreground ratio and the perturbation are varied.

    Examples
    --------
    >>> Synthetic(images=100).seeds(2)
    range(200, 300)
    """

    n: int = 10
    images: int = 5000
    repeats: int = 10
    mu_z: float = -3.698
    rho_z: float = 5.0
    rho_eta: float = 2.0
    mu_z_grid: tuple[float, ...] = tuple(-step / 2 for step in range(16))
    rho_eta_grid: tuple[float, ...] = tuple(step / 2 for step in range(10))

    def __post_init__(self) -> None:
        """Refuse parameters that make no images; numbers become Python's own, grids tuples of them."""
        for name, least, most in (("n", 1, 256), ("images", 2, 10**9), ("repeats", 1, 10**9)):
            _set(self, name, check_count(getattr(self, name), name, least=least, most=most))
        if self.images * self.repeats + 100 > _LARGEST_SEED:
            raise ParameterError(
                f"images, repeats: expected fewer than 2³² images in all, because each has its own seed, "
                f"got {self.images} × {self.repeats}."
            )
        for name in ("mu_z", "rho_z", "rho_eta"):
            _set(self, name, _real_check(name)(getattr(self, name)))
        for name in ("mu_z_grid", "rho_eta_grid"):
            _set(self, name, check_grid(getattr(self, name), name, _real_check(name)))

    def seeds(self, repeat: int) -> range:
        """Seeds of the images of a repeat."""
        return range(self.images * repeat, self.images * (repeat + 1))

    def parameters(self) -> dict[str, Any]:
        """All of them by name, as JSON can hold them."""
        return asdict(self)


_LIMITS = {
    "mu_z": (-100.0, 100.0),
    "mu_z_grid": (-100.0, 100.0),
    **dict.fromkeys(("rho_z", "rho_eta", "rho_eta_grid", "spread"), (0.0, 50.0)),
    "sharpness": (0.01, 1.0),
    "correlations": (0.0, 0.5),
    **dict.fromkeys(("lengths", "map_length"), (0.0, 1.0)),
}


def _real_check(name: str) -> Callable[[Any], float]:
    least, most = _LIMITS[name]
    return partial(check_real, name=name, least=least, most=most)


def _set(settings: Any, name: str, value: Any) -> None:
    """Replace a field while the frozen settings are made."""
    object.__setattr__(settings, name, value)


@dataclass(frozen=True)
class Beyond:
    """What the studies depend on.

    Attributes
    ----------
    sizes, images, draws
        Numbers of pixels; for each of them the images of a repeat, and the truths drawn for each image with
        smooth errors.
    repeats
        Repeats; repeat b has the images ``images * b`` to ``images * (b + 1) - 1``.
    mu_z, rho_z, rho_eta
        As in `segtrust.paper.synthetic.settings.Synthetic`.
    spread
        Standard deviation of the shift of an image's mean logit.
    sharpness
        Factors on all logits of the images with correlated errors: the same masks, by a model that is less
        sure of them.
    correlations
        Of two pixels in the copula, from 0 to 0.5.
    lengths, map_length
        Over which errors and maps are smooth, as parts of the side of the image.

    Examples
    --------
    >>> Beyond().seeds(10_000, repeat=2)
    range(200, 300)
    """

    sizes: tuple[int, ...] = (10, 100, 10_000, 1_000_000)
    images: tuple[int, ...] = (1000, 1000, 100, 8)
    draws: tuple[int, ...] = (400, 400, 200, 100)
    repeats: int = 5
    mu_z: float = -3.698
    rho_z: float = 5.0
    rho_eta: float = 2.0
    spread: float = 2.0
    sharpness: tuple[float, ...] = (1.0, 0.25)
    correlations: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5)
    lengths: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1)
    map_length: float = 0.1

    def __post_init__(self) -> None:
        """Refuse parameters that make no images; numbers become Python's own, grids tuples of them."""
        for name, least in (("sizes", 1), ("images", 2), ("draws", 2)):
            check = partial(check_count, name=name, least=least, most=10**8)
            _set(self, name, check_grid(getattr(self, name), name, check))
        _set(self, "repeats", check_count(self.repeats, "repeats", least=1, most=10**8))
        for name in ("images", "draws"):
            if len(getattr(self, name)) != len(self.sizes):
                raise ParameterError(
                    f"{name}: expected one number for each of the sizes {self.sizes}, "
                    f"got {getattr(self, name)}."
                )
        for name in ("sharpness", "correlations", "lengths"):
            _set(self, name, check_grid(getattr(self, name), name, _real_check(name)))
        for name in ("mu_z", "rho_z", "rho_eta", "spread", "map_length"):
            _set(self, name, _real_check(name)(getattr(self, name)))
        for name in ("sizes", "sharpness", "correlations", "lengths"):
            check_different(getattr(self, name), name)

    def seeds(self, n: int, repeat: int) -> range:
        """Seeds of the images of a repeat."""
        count = self.images[self.sizes.index(n)]
        return range(count * repeat, count * (repeat + 1))

    def truths(self, n: int) -> int:
        """Truths drawn for each image of ``n`` pixels."""
        return self.draws[self.sizes.index(n)]

    def parameters(self) -> dict[str, Any]:
        """All of them by name, as JSON can hold them."""
        return asdict(self)
