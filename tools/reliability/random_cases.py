"""Maps and tables of cases drawn by number: any of them can be made again alone.

Maps have 0 to 3 dimensions, all types and layouts, and values that are hard to sum or to rank: exact zeros
and ones, ties, denormals, the threshold itself. Tables of cases have ties, constants, losses of 0 and 1, and
weights, some of them 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["DTYPES", "PATHS", "DrawnMap", "DrawnTable", "InChunks", "draw_map", "draw_table", "rng_of"]

Rng = np.random.Generator

DTYPES = ("float64", "float32", "float16", "uint8", "uint16", "bool")
PATHS = ("memory", "chunks", "arrays")
_DRAWN_DTYPES = (*DTYPES, "float64", "float64", "float32", "float32")
_DRAWN_PATHS = (*("memory",) * 8, "chunks", "arrays")
_USUAL, _LARGE = 128, 4000
"""Most pixels of most maps, and of the others: a slow reference takes time with the square of them."""
_SHARE_OF_LARGE = 0.005
_SMALLEST = 5e-324
_FEW_DIGITS = 1e-290
"""Entropies below it may be denormal sums, and are no thresholds."""


def rng_of(seed: int, number: int) -> Rng:
    """Give the generator of one case."""
    return np.random.default_rng([seed, number])


@dataclass(frozen=True)
class InChunks:
    """An array that is read piece by piece, as Dask and Zarr arrays are.

    Attributes
    ----------
    values
        All of it.
    chunks
        Length of the pieces along each axis: one for all (Zarr), or that of each (Dask).
    """

    values: Any
    chunks: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> Any:
        """Of the whole."""
        return self.values.dtype

    def __getitem__(self, tile: Any) -> Any:
        """Read a piece."""
        return self.values[tile]


@dataclass(frozen=True)
class DrawnMap:
    """A map, its mask, and what is asked of it.

    Attributes
    ----------
    p, mask, threshold
        As for `segtrust.score`.
    truth
        Another mask, for losses.
    path
        How the map is summed, one of `PATHS`.
    family, layout, dtype
        What it is like.
    tau, sides, weight
        Settings of TLA, of PLA and of PLA*, and of SDC*.
    """

    p: Any
    mask: Any
    threshold: float
    truth: Any
    path: str
    family: str
    layout: str
    dtype: str
    tau: float
    sides: tuple[int, int]
    weight: float


def _one(rng: Rng, choices: Any) -> Any:
    """Draw one of a few; `Generator.choice` would make an array of them first."""
    return choices[int(rng.random() * len(choices))]


def _some(rng: Rng, low: float, high: float, shape: Any = None) -> Any:
    """Draw powers of ten whose exponents are uniform."""
    return 10.0 ** rng.uniform(low, high, shape)


def _hot(rng: Rng, n: int) -> Any:
    p = np.full(n, _one(rng, [0.0, 1e-300, 1e-9, 0.01]))
    p[rng.integers(n)] = _one(rng, [1.0, 0.5, 0.9999, 1e-3])
    return p


def _few_levels(rng: Rng, n: int) -> Any:
    levels = rng.choice([0.0, 1.0, 0.5, 0.25, 0.75, 0.1, 0.9, 0.3, 0.7, 1 / 3, 1 / 256], rng.integers(2, 6))
    return rng.choice(levels, n)


def _saturated(rng: Rng, n: int) -> Any:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-rng.normal(0.0, _one(rng, [10.0, 40.0, 300.0]), n)))


def _logit_normal(rng: Rng, n: int) -> Any:
    return 1.0 / (1.0 + np.exp(-rng.normal(rng.uniform(-6.0, 2.0), rng.uniform(0.1, 5.0), n)))


def _around_half(rng: Rng, n: int) -> Any:
    return np.clip(0.5 + rng.integers(-3, 4, n) * _one(rng, [2.0**-53, 2.0**-24, 2.0**-11, 1e-6]), 0.0, 1.0)


def _mixed(rng: Rng, n: int) -> Any:
    kinds = np.stack([rng.random(n), _some(rng, -320, 0, n), 1.0 - _some(rng, -16, 0, n), np.zeros(n)])
    return kinds[rng.integers(0, 4, n), np.arange(n)]


FAMILIES: dict[str, Callable[[Rng, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "logit-normal": _logit_normal,
    "saturated": _saturated,
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "few levels": _few_levels,
    "tiny": lambda rng, n: _some(rng, -320, -1, n),
    "small": lambda rng, n: rng.random(n) * _some(rng, -9, -1),
    "denormal": lambda rng, n: rng.integers(0, 5, n) * _SMALLEST,
    "close to 1": lambda rng, n: 1.0 - _some(rng, -16, -1, n),
    "around 1/2": _around_half,
    "mixed": _mixed,
    "one hot": _hot,
    "constant": lambda rng, n: np.full(n, _one(rng, [0.5, 0.25, 0.999, 1e-9, rng.random()])),
    "all 0": lambda rng, n: np.zeros(n),
    "all 1": lambda rng, n: np.ones(n),
}
_FREQUENT = ("uniform", "logit-normal", "saturated", "few levels", "mixed", "zeros and ones", "tiny")
_DRAWN_FAMILIES = (*FAMILIES, *_FREQUENT)


def _shape(rng: Rng) -> tuple[int, ...]:
    low, high = (_USUAL, _LARGE) if rng.random() < _SHARE_OF_LARGE else (1, _USUAL)
    n = round(math.exp(rng.uniform(math.log(low), math.log(high))))
    ndim = 0 if rng.random() < 0.02 else _one(rng, (1, 2, 2, 3))
    if ndim < 2:
        return (n,) * ndim
    shares = rng.dirichlet(np.full(ndim, 2.0))
    sides = [max(1, round(n**share)) for share in shares[:-1]]
    return (*sides, max(1, n // math.prod(sides)))


def _in_type(p: Any, dtype: str) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "u":
        return np.rint(p * np.iinfo(kind).max).astype(kind)
    return p >= 0.5 if kind.kind == "b" else p.astype(kind)


def _gapped(p: Any) -> Any:
    held = np.repeat(p, 2, axis=-1)
    held[..., 1::2] = 1 - held[..., 1::2] if p.dtype.kind == "f" else 0
    return held[..., ::2]


def _swapped(p: Any) -> Any:
    return p.astype(p.dtype.newbyteorder(">"))


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda p: p,
    "Fortran": np.asfortranarray,
    "gaps": _gapped,
    "reversed": lambda p: np.ascontiguousarray(p[::-1])[::-1],
    "all axes reversed": lambda p: np.ascontiguousarray(np.flip(p))[(slice(None, None, -1),) * p.ndim],
    "channel last": lambda p: np.stack([p, p], axis=-1)[..., 0],
    "byte order": _swapped,
}
_DRAWN_LAYOUTS = ("C", "C", "C", *LAYOUTS)


def _mask(rng: Rng, p: Any) -> Any:
    """Draw a mask that is given, of any type, mostly another than the map would be cut to."""
    share = _one(rng, [0.0, 1.0, 0.5, 0.1, 0.9])
    mask = rng.random(p.shape) < share
    if share == 0.5 and rng.random() < 0.5:
        mask = np.asarray(p, np.float64) > np.asarray(p, np.float64).mean()
    return np.asarray(mask).astype(_one(rng, ["bool", "uint8", "int64", "float32"]))


def _threshold(rng: Rng, p: Any) -> float:
    kind = rng.random()
    if kind < 0.6:
        return 0.5
    if kind < 0.8:
        return _one(rng, (0.0, 1.0, 0.1, 0.3, 0.9, 1e-300, rng.random()))
    own = float(_one(rng, p.reshape(-1)))  # exactly at the threshold
    return own / float(np.iinfo(p.dtype).max) if p.dtype.kind == "u" else own


def _tau(rng: Rng, p: Any) -> float:
    """Draw a threshold of the entropy, in one of three cases that of a pixel."""
    if p.dtype.kind != "f" or rng.random() < 0.67:
        return float(_one(rng, [0.0, 1.0, 0.3, 0.5, 0.9999, rng.random()]))
    from segtrust.kernels import binary_entropy

    own = float(_one(rng, p.reshape(-1)))
    found = binary_entropy(min(own, 1.0 - own))
    return min(found, 1.0) if found > _FEW_DIGITS else 0.0


def _chunks(rng: Rng, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Draw lengths of pieces: one for all along an axis, or of each its own."""
    if rng.random() < 0.5:
        return tuple(int(rng.integers(1, length + 2)) for length in shape)
    cuts = (np.sort(rng.integers(0, length + 1, rng.integers(0, 4))) for length in shape)
    return tuple(tuple(np.diff([0, *own, length]).tolist()) for own, length in zip(cuts, shape, strict=True))


def draw_map(rng: Rng) -> DrawnMap:
    """Draw a map."""
    shape = _shape(rng)
    family, dtype = _one(rng, _DRAWN_FAMILIES), _one(rng, _DRAWN_DTYPES)
    path = _one(rng, _DRAWN_PATHS) if shape else "memory"
    layout = _one(rng, _DRAWN_LAYOUTS) if shape else "C"
    plain = _in_type(FAMILIES[family](rng, math.prod(shape)), dtype).reshape(shape)
    p, mask = LAYOUTS[layout](plain), _mask(rng, plain) if rng.random() < 0.5 else None
    threshold, tau = _threshold(rng, plain), _tau(rng, plain)
    if path == "chunks":
        p = InChunks(p, _chunks(rng, shape))
    sides = (int(_one(rng, [1, 2, 3, 4, 5, 7, 10, 50])), int(_one(rng, [1, 2, 3, 10, 20])))
    truth = rng.random(shape) < _one(rng, [0.0, 0.1, 0.5, 1.0])
    weight = float(_one(rng, [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0]))
    return DrawnMap(p, mask, threshold, truth, path, family, layout, dtype, tau, sides, weight)


@dataclass(frozen=True)
class DrawnTable:
    """Confidences and losses of cases, and what is asked of their curve.

    Attributes
    ----------
    confidence, loss, weights
        As for `segtrust.risk_coverage_curve`.
    family
        Of the confidences.
    asked
        A coverage, and a share of the mean loss, at which the curve is read.
    cutoff
        Dice below which a case is a failure.
    """

    confidence: Any
    loss: Any
    weights: Any
    family: str
    asked: tuple[float, float]
    cutoff: float


CONFIDENCES: dict[str, Callable[[Rng, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.standard_normal(n),
    "few levels": lambda rng, n: rng.integers(0, rng.integers(1, 8), n) / 4.0,
    "constant": lambda rng, n: np.full(n, _one(rng, [0.0, -0.0, 0.5, -3.0])),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "one apart": lambda rng, n: 1.0 - (np.arange(n) == rng.integers(n)) * 2.0**-53,
    "tiny": lambda rng, n: _some(rng, -320, -1, n) * rng.choice([-1.0, 1.0], n),
    "huge": lambda rng, n: _some(rng, 0, 308, n) * rng.choice([-1.0, 1.0], n),
    "sorted": lambda rng, n: np.sort(rng.random(n))[:: _one(rng, [-1, 1])],
    "mostly 0": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
}
LOSSES: dict[str, Callable[[Rng, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "0 and 1": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "constant": lambda rng, n: np.full(n, _one(rng, [0.0, 1.0, 0.25, 0.1])),
    "few levels": lambda rng, n: rng.integers(0, 5, n) / 4.0,
    "mixed": lambda rng, n: np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n)),
    "tiny": lambda rng, n: _some(rng, -300, 0, n),
}


def draw_table(rng: Rng) -> DrawnTable:
    """Draw a table of at least two cases."""
    n = round(math.exp(rng.uniform(math.log(2), math.log(_USUAL))))
    family = _one(rng, tuple(CONFIDENCES))
    loss = LOSSES[_one(rng, tuple(LOSSES))](rng, n)
    weights = None
    if rng.random() < 0.3:
        weights = np.where(rng.random(n) < 0.2, 0.0, _one(rng, [rng.random(n), rng.integers(0, 3, n)]))
        weights[rng.integers(n)] = 1.0
    asked = float(_one(rng, [0.0, 1.0, rng.random(), rng.integers(1, n + 1) / n])), float(2.0 * rng.random())
    return DrawnTable(
        CONFIDENCES[family](rng, n), loss, weights, family, asked, float(_one(rng, [0.5, 0.75, 0.9]))
    )
