"""Several maps of one image: fused into one, and how far their masks agree.

A map is added at a time, and none is kept: what is held are sums, 8 bytes a pixel, and of each member a bit a
pixel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from segtrust.calibration.logits import limit_of, logits_of
from segtrust.calibration.pixels import check_block
from segtrust.errors import GeometryError, ParameterError
from segtrust.kernels.agreement import PackedMasks
from segtrust.kernels.device import on_host
from segtrust.kernels.inputs import check_array, check_fraction, described
from segtrust.kernels.masks import thresholded
from segtrust.kernels.refusals import check_type, refuse_empty
from segtrust.kernels.tiles import tiles_of
from segtrust.maps import EmptyPolicy

__all__ = ["FusedChunks", "Fuser", "Fusion", "fuse", "pairwise_dice"]

ROUNDING = 1e-6
"""How far beyond 0 and 1 rounding of single floats may lead in files."""
_FEWEST = 2


class Fusion(StrEnum):
    """How the maps of several members become one.

    Attributes
    ----------
    PROBABILITY
        The mean of their probabilities.
    LOGIT
        The sigmoid of the mean of their logits: the geometric mean of their odds.
    """

    PROBABILITY = "mean-probability"
    LOGIT = "mean-logit"

    @classmethod
    def _missing_(cls, value: object) -> Fusion:
        known = ", ".join(repr(each.value) for each in cls)
        raise ParameterError(f"fuse: expected one of {known}, got {value!r}.")


class Fuser:
    """Adds maps one after the other; see `fuse`.

    Parameters
    ----------
    how
        Mean of probabilities, or of logits.
    rounding
        How far beyond 0 and 1 a float may be, and is taken for 0 or 1; elsewhere it is refused.
    """

    def __init__(self, how: Fusion | str = Fusion.PROBABILITY, *, rounding: float = 0.0) -> None:
        self._how = Fusion(how)
        self._rounding = rounding
        self._sums: Any = None
        self._count = 0
        self._limits = 0.0
        self._is_double = False

    def add(self, p: Any, source: str = "p") -> None:
        """Add a map in memory, of the shape of the others."""
        p = _host(p, source)
        if self._sums is None:
            self._sums = np.zeros(p.shape)
        if p.shape != self._sums.shape:
            raise GeometryError(
                f"{source}: expected the shape of the first member, {self._sums.shape}, got {p.shape}. Look "
                "whether they belong together."
            )
        limit = _limit(p.dtype)
        for tile in tiles_of(p):
            self._sums[tile] += self._terms(p[tile], limit, p, source)
        self._count += 1
        self._limits += limit
        self._is_double |= p.dtype.kind == "f" and p.dtype.itemsize >= 8

    def _terms(self, block: Any, limit: float, p: Any, source: str) -> Any:
        """Give the probabilities of a block, or their logits, as doubles."""
        if p.dtype.kind != "f":
            codes = _codes(p.dtype)
            return self._of(codes, limit)[block.view(np.uint8) if p.dtype.kind == "b" else block]
        values = block.astype(np.float64)
        if self._rounding:
            within = (values >= -self._rounding) & (values <= 1.0 + self._rounding)
            values = np.where(within, np.clip(values, 0.0, 1.0), values)
        return self._of(check_block(values, p, source), limit)

    def _of(self, values: Any, limit: float) -> Any:
        return values if self._how is Fusion.PROBABILITY else logits_of(values, limit)

    def result(self) -> Any:
        """Give the fused map: float64 where a member was, else float32."""
        if not self._count:
            raise ParameterError("maps: expected at least one map to fuse, got none.")
        fused = self._sums / self._count if self._how is Fusion.PROBABILITY else self._from_logits()
        return fused if self._is_double else fused.astype(np.float32)

    def _from_logits(self) -> Any:
        """Give the sigmoid of the mean; 0 and 1 where every member is at its limit."""
        mean = self._sums / self._count
        fused = np.exp(np.minimum(mean, 0.0)) / (1.0 + np.exp(-np.abs(mean)))
        fused[self._sums <= -self._limits] = 0.0
        fused[self._sums >= self._limits] = 1.0
        return fused


def _host(p: Any, source: str) -> Any:
    """Give a map of any kind as a NumPy array; refuse what is none."""
    check_array(p, source)
    check_type(p.dtype, source)
    if 0 in tuple(p.shape):
        refuse_empty(tuple(p.shape), source)
    found = np.asarray(on_host(p))
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def _codes(dtype: Any) -> Any:
    levels = 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)
    return np.arange(levels + 1) / levels


def _limit(dtype: Any) -> float:
    """Give the largest logit that counts; a truth value is as sure as a probability of 8 bits can be."""
    return limit_of(np.dtype(np.uint8) if dtype.kind == "b" else dtype, "clip")


def fuse(maps: Iterable[Any], how: Fusion | str = Fusion.PROBABILITY) -> Any:
    """Fuse the maps of several members of an ensemble into one.

    Parameters
    ----------
    maps
        Probabilities of one image, of one shape; any iterable, gone through once, so that a generator may
        read one after the other. Float, uint8 (/ 255), uint16 (/ 65535) or bool.
    how
        ``"mean-probability"`` or ``"mean-logit"``, the sigmoid of the mean of the logits.

    Returns
    -------
    numpy.ndarray
        float64 where a member is, else float32. Sums are of doubles.

    Notes
    -----
    The logit of a probability of exactly 0 or 1 is infinite, and one such pixel of one member would outvote
    all others. So logits are cut off at the largest that the member's type can tell from infinity: 6.9 for
    uint8, 12.5 for uint16, 18.0 for float32, 38.1 for float64, as calibration with ``ends="clip"`` does.
    Where all members are beyond that, the fused probability is exactly 0 or 1; where one is at 0 and another
    at 1 of the same type, it is one half.

    Examples
    --------
    >>> import numpy as np
    >>> maps = [np.array([0.9, 0.2, 0.0]), np.array([0.6, 0.1, 0.0])]
    >>> fuse(maps).round(3).tolist(), fuse(maps, "mean-logit").round(3).tolist()
    ([0.75, 0.15, 0.0], [0.786, 0.143, 0.0])
    """
    fuser = Fuser(how)
    for number, p in enumerate(_several(maps)):
        fuser.add(p, f"maps[{number}]")
    return fuser.result()


def pairwise_dice(
    maps: Iterable[Any], *, threshold: float = 0.5, empty: EmptyPolicy | str = EmptyPolicy.PAPER
) -> float:
    """Mean Dice between each two members of an ensemble, a confidence that needs no probabilities.

    Parameters
    ----------
    maps
        Masks (bool) or probability maps of one image, at least two, of one shape; gone through once.
    threshold
        At which maps are cut, ``p >= threshold``.
    empty
        Two empty masks agree to 0 under ``"paper"`` and to 1 under ``"agree"``.

    References
    ----------
    Zenk et al., *Comparative benchmarking of failure detection methods in medical image segmentation*,
    Medical Image Analysis 101 (2025).

    Examples
    --------
    >>> import numpy as np
    >>> maps = [np.array([0.9, 0.6, 0.1]), np.array([0.8, 0.3, 0.1]), np.array([0.7, 0.9, 0.2])]
    >>> round(pairwise_dice(maps), 4)
    0.7778
    """
    check_fraction(threshold, "threshold")
    policy, masks, shape, count = EmptyPolicy(empty), PackedMasks(), None, 0
    for number, p in enumerate(_several(maps)):
        values = _host(p, f"maps[{number}]")
        _refuse_binary_codes(values, f"maps[{number}]")
        shape = shape or values.shape
        if values.shape != shape:
            raise GeometryError(
                f"maps[{number}]: expected the shape of the first, {shape}, got {values.shape}."
            )
        masks.add(thresholded(check_range(values, f"maps[{number}]"), threshold=threshold))
        count += 1
    if count < _FEWEST:
        raise ParameterError(f"maps: expected at least two members to compare, got {count}.")
    return masks.agreement().pairwise_dice(of_empty=of_empty(policy))


def of_empty(policy: EmptyPolicy) -> float:
    """Dice of two empty masks."""
    return 1.0 if policy is EmptyPolicy.AGREE else 0.0


def check_range(p: Any, source: str) -> Any:
    """Give a map in memory, or name its first value that is no probability."""
    return check_block(p, p, source) if p.dtype.kind == "f" else p


def _several(maps: Any) -> Iterable[Any]:
    if isinstance(maps, str | bytes) or not isinstance(maps, Iterable):
        raise ParameterError(f"maps: expected several maps of one image, got {described(maps)}.")
    return maps


def _refuse_binary_codes(values: Any, source: str) -> None:
    """Refuse a mask of 0 and 1 in whole numbers, which by its type would be a map of next to nothing."""
    if values.dtype.kind == "u" and values.max() == 1:
        raise ParameterError(
            f"{source}: expected a map in {values.dtype} up to {np.iinfo(values.dtype).max}, or a mask of "
            "bool; got 0 and 1. If it is a mask: mask.astype(bool)."
        )


@dataclass(frozen=True, eq=False)
class FusedChunks:
    """The fused map of members that are read piece by piece, which is read so too.

    Attributes
    ----------
    members
        Arrays of one shape, with chunks.
    how
        As for `fuse`.
    sources
        How errors name them.
    """

    members: Sequence[Any]
    how: Fusion
    sources: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of each member."""
        return tuple(self.members[0].shape)

    @property
    def chunks(self) -> Any:
        """Of the first member."""
        return self.members[0].chunks

    @property
    def dtype(self) -> Any:
        """float64 where a member is, else float32."""
        is_double = any(np.dtype(each.dtype).itemsize >= 8 for each in self.members)
        return np.dtype(np.float64 if is_double else np.float32)

    def __getitem__(self, index: Any) -> Any:
        """Fuse a piece."""
        fuser = Fuser(self.how, rounding=ROUNDING)
        for p, source in zip(self.members, self.sources, strict=True):
            fuser.add(np.asarray(p[index]), source)
        return fuser.result()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Fuse all of it."""
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype)
