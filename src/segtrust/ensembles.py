"""Ensembles: several maps of one image, fused into one, and how far their masks agree.

Maps are added one at a time and not kept. Memory holds sums, 8 bytes per pixel, and one bit per pixel and
member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from segtrust._arguments import check_threshold, describe
from segtrust.calibration import check_probabilities, largest_logit, logits_of
from segtrust.errors import GeometryError, ParameterError
from segtrust.kernels import (
    PackedMasks,
    check_array,
    check_map_type,
    check_shapes,
    code_probabilities,
    on_host,
    threshold_map,
    tiles_of,
)
from segtrust.maps import EmptyPolicy

__all__ = ["FusedChunks", "Fuser", "Fusion", "fuse", "pairwise_dice"]

ROUNDING = 1e-6
"""How far beyond 0 and 1 a value in a file may be because single floats were rounded."""


class Fusion(StrEnum):
    """How the maps of several members are fused into one.

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
        known = ", ".join(repr(fusion.value) for fusion in cls)
        raise ParameterError(f"fuse: expected one of {known}, got {value!r}.")


class Fuser:
    """Accumulator that fuses maps added one after the other; see `fuse`.

    Parameters
    ----------
    fusion
        Mean of probabilities, or of logits.
    rounding
        How far a float may be beyond 0 and 1 and still be taken for 0 or 1; further away it is rejected.
    """

    def __init__(self, fusion: Fusion | str = Fusion.PROBABILITY, *, rounding: float = 0.0) -> None:
        self._fusion = Fusion(fusion)
        self._rounding = rounding
        self._sums: Any = None
        self._count = 0
        self._limits = 0.0
        self._is_double = False

    def add(self, p: Any, source: str = "p") -> None:
        """Add a map in memory, of the same shape as the others."""
        p = _as_numpy(p, source)
        if self._sums is None:
            self._sums = np.zeros(p.shape)
        if p.shape != self._sums.shape:
            raise GeometryError(
                f"{source}: expected the shape of the first member, {self._sums.shape}, got {p.shape}. Check "
                "whether they belong to the same image."
            )
        # A bool is as certain as a probability of 8 bits can be.
        limit = largest_logit(np.dtype(np.uint8) if p.dtype.kind == "b" else p.dtype, "clip")
        codes = code_probabilities(p.dtype)
        terms = None if codes is None else self._terms(codes, limit)
        for tile in tiles_of(p):
            if terms is not None:
                self._sums[tile] += terms[p[tile].view(np.uint8) if p.dtype.kind == "b" else p[tile]]
                continue
            values = p[tile].astype(np.float64)
            if self._rounding:
                is_near = (values >= -self._rounding) & (values <= 1.0 + self._rounding)
                values = np.where(is_near, np.clip(values, 0.0, 1.0), values)
            origin = tuple(part.start for part in tile)
            self._sums[tile] += self._terms(check_probabilities(values, values, source, origin), limit)
        self._count += 1
        self._limits += limit
        self._is_double |= p.dtype.kind == "f" and p.dtype.itemsize >= 8

    def _terms(self, p: Any, limit: float) -> Any:
        return p if self._fusion is Fusion.PROBABILITY else logits_of(p, limit)

    def result(self) -> Any:
        """Return the fused map: float64 if a member is, else float32."""
        if not self._count:
            raise ParameterError("maps: expected at least one map to fuse, got none.")
        fused = self._sums / self._count
        if self._fusion is Fusion.LOGIT:
            fused = np.exp(np.minimum(fused, 0.0)) / (1.0 + np.exp(-np.abs(fused)))  # the sigmoid
            fused[self._sums <= -self._limits] = 0.0  # every member is at its limit
            fused[self._sums >= self._limits] = 1.0
        return fused if self._is_double else fused.astype(np.float32)


def _as_numpy(p: Any, source: str) -> Any:
    """Check a map of any library and return it as a NumPy array."""
    check_array(p, source)
    check_map_type(p.dtype, source)
    check_shapes(tuple(p.shape), None, source)
    values = np.asarray(on_host(p))
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def fuse(maps: Iterable[Any], how: Fusion | str = Fusion.PROBABILITY) -> Any:
    """Fuse the maps of several members of an ensemble into one.

    Parameters
    ----------
    maps
        Probability maps of one image, of one shape: float, uint8 (/ 255), uint16 (/ 65535) or bool. Any
        iterable; it is read once, so that a generator may load one map after the other.
    how
        ``"mean-probability"``, or ``"mean-logit"`` for the sigmoid of the mean of the logits.

    Returns
    -------
    numpy.ndarray
        float64 if a member is, else float32. Sums are computed in doubles.

    Notes
    -----
    The logit of a probability of exactly 0 or 1 is infinite, and one such pixel of one member would outvote
    all others. So logits are clipped to the largest that the member's type can distinguish from infinity: 6.9
    for uint8, 12.5 for uint16, 18.0 for float32, 38.1 for float64, as calibration with ``ends="clip"`` does.
    Where all members are beyond that, the fused probability is exactly 0 or 1; where one member is at 0 and
    another of the same type at 1, it is one half.

    Examples
    --------
    >>> import numpy as np
    >>> maps = [np.array([0.9, 0.2, 0.0]), np.array([0.6, 0.1, 0.0])]
    >>> fuse(maps).round(3).tolist(), fuse(maps, "mean-logit").round(3).tolist()
    ([0.75, 0.15, 0.0], [0.786, 0.143, 0.0])
    """
    fuser = Fuser(how)
    for number, p in enumerate(_check_iterable(maps)):
        fuser.add(p, f"maps[{number}]")
    return fuser.result()


def pairwise_dice(
    maps: Iterable[Any], *, threshold: float = 0.5, empty: EmptyPolicy | str = EmptyPolicy.PAPER
) -> float:
    """Compute the mean Dice over all pairs of members of an ensemble, a confidence without probabilities.

    Parameters
    ----------
    maps
        Masks (bool) or probability maps of one image, at least two, of one shape; read once.
    threshold
        Threshold that turns maps into masks, ``p >= threshold``.
    empty
        Two empty masks have a Dice of 0 under ``"paper"`` and of 1 under ``"agree"``.

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
    threshold = check_threshold(threshold, "threshold")
    policy, masks, shape, count = EmptyPolicy(empty), PackedMasks(), None, 0
    for number, p in enumerate(_check_iterable(maps)):
        source = f"maps[{number}]"
        values = _as_numpy(p, source)
        if values.dtype.kind == "u" and values.max() == 1:  # by its type a map of next to nothing
            raise ParameterError(
                f"{source}: expected a map in {values.dtype} up to {np.iinfo(values.dtype).max}, or a mask "
                "of bool; got 0 and 1. If it is a mask: mask.astype(bool)."
            )
        shape = shape or values.shape
        if values.shape != shape:
            raise GeometryError(f"{source}: expected the shape of the first, {shape}, got {values.shape}.")
        if values.dtype.kind == "f":
            check_probabilities(values, values, source)
        masks.add(threshold_map(values, threshold=threshold))
        count += 1
    if count < 2:
        raise ParameterError(f"maps: expected at least two members to compare, got {count}.")
    return masks.agreement().pairwise_dice(of_empty=policy.dice_of_empty_masks)


def _check_iterable(maps: Any) -> Iterable[Any]:
    if isinstance(maps, str | bytes) or not isinstance(maps, Iterable):
        raise ParameterError(f"maps: expected several maps of one image, got {describe(maps)}.")
    return maps


@dataclass(frozen=True, eq=False)
class FusedChunks:
    """Fused map of members that are read chunk by chunk; it is read the same way.

    Attributes
    ----------
    members
        Arrays of one shape, with chunks.
    how
        Mean of probabilities, or of logits.
    sources
        Names of the members in errors.
    """

    members: Sequence[Any]
    how: Fusion
    sources: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of each member."""
        return tuple(self.members[0].shape)

    @property
    def chunks(self) -> Any:
        """Chunks of the first member."""
        return self.members[0].chunks

    @property
    def dtype(self) -> Any:
        """float64 if a member is, else float32."""
        is_double = any(np.dtype(member.dtype).itemsize >= 8 for member in self.members)
        return np.dtype(np.float64 if is_double else np.float32)

    def __getitem__(self, index: Any) -> Any:
        """Return a fused part of the map."""
        fuser = Fuser(self.how, rounding=ROUNDING)
        for p, source in zip(self.members, self.sources, strict=True):
            fuser.add(np.asarray(p[index]), source)
        return fuser.result()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the whole fused map."""
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype)
