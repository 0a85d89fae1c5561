"""Parameters of the paper's simulated experiments."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from segtrust.errors import ParameterError

__all__ = ["Synthetic", "check_count", "check_real"]

_LARGEST_SEED = 2**32 - 1


def check_count(value: Any, name: str, *, least: int, most: int = 10**9) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value <= most:
        raise ParameterError(f"{name}: expected a whole number from {least} to {most}, got {value!r}.")


def check_real(value: Any, name: str, *, least: float, most: float) -> None:
    """Refuse what is not a number from ``least`` to ``most``."""
    if not isinstance(value, Real) or isinstance(value, bool) or not least <= value <= most:
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
        if name.endswith("grid") and not value:
            raise ParameterError(f"{name}: expected at least one value, got none.")
        for each in value if name.endswith("grid") else (value,):
            check_real(each, name, least=least, most=most)

    def seeds(self, repeat: int) -> range:
        """Seeds of the images of a repeat."""
        return range(self.images * repeat, self.images * (repeat + 1))

    def parameters(self) -> dict[str, Any]:
        """All of them by name, as JSON can hold them."""
        return asdict(self)
