"""Parameters of the simulated experiments."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from segtrust.errors import ParameterError

__all__ = ["Beyond", "Synthetic"]

_LARGEST_SEED = 2**32 - 1


def check_count(value: Any, name: str, *, least: int, most: int = 10**9) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        raise ParameterError(f"{name}: expected a whole number from {least} to {most}, got {value!r}.")


def check_real(value: Any, name: str, *, least: float, most: float) -> None:
    """Refuse what is not a number from ``least`` to ``most``."""
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= float(value) <= most:
        raise ParameterError(f"{name}: expected a number from {least:g} to {most:g}, got {value!r}.")


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
        """Refuse parameters that make no images."""
        check_count(self.n, "n", least=1, most=256)
        check_count(self.images, "images", least=2)
        check_count(self.repeats, "repeats", least=1)
        if self.images * self.repeats + 100 > _LARGEST_SEED:
            raise ParameterError(
                f"images, repeats: expected fewer than 2³² images in all, because each has its own seed, "
                f"got {self.images} × {self.repeats}."
            )
        check_real(self.rho_z, "rho_z", least=0.0, most=50.0)
        for name in ("mu_z", "mu_z_grid", "rho_eta", "rho_eta_grid"):
            self._check_values(name)

    def _check_values(self, name: str) -> None:
        least, most = (-100.0, 100.0) if name.startswith("mu") else (0.0, 50.0)
        value = getattr(self, name)
        if value == ():
            raise ParameterError(f"{name}: expected at least one value, got none.")
        for each in _values(value):
            check_real(each, name, least=least, most=most)

    def seeds(self, repeat: int) -> range:
        """Seeds of the images of a repeat."""
        return range(self.images * repeat, self.images * (repeat + 1))

    def parameters(self) -> dict[str, Any]:
        """All of them by name, as JSON can hold them."""
        return asdict(self)


def _values(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


_LIMITS = {
    "mu_z": (-100.0, 100.0),
    **dict.fromkeys(("rho_z", "rho_eta", "spread"), (0.0, 50.0)),
    "sharpness": (0.01, 1.0),
    "correlations": (0.0, 0.5),
    **dict.fromkeys(("lengths", "map_length"), (0.0, 1.0)),
}


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
        As in `segtrust.experiments.synthetic.settings.Synthetic`.
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
        """Refuse parameters that make no images."""
        for name in ("images", "draws"):
            if not self.sizes or len(getattr(self, name)) != len(self.sizes):
                raise ParameterError(
                    f"{name}: expected one number for each of the sizes {self.sizes}, "
                    f"got {getattr(self, name)}."
                )
        for name, least in (("sizes", 1), ("images", 2), ("draws", 2), ("repeats", 1)):
            for each in _values(getattr(self, name)):
                check_count(each, name, least=least, most=10**8)
        for name, (least_real, most) in _LIMITS.items():
            for each in _values(getattr(self, name)):
                check_real(each, name, least=least_real, most=most)

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
