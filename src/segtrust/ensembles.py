"""Ensembles: several maps of one image, fused into one, and how far their masks agree.

Maps are added one at a time and not kept. Memory holds sums, 8 bytes per pixel, and one bit per pixel and
member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device as device_of, to_device

from segtrust._arguments import check_threshold, describe
from segtrust._types import AnyArray, DeviceArrayT, EmptyName, FusionName, MapOnHost
from segtrust.calibration import (
    check_probabilities,
    largest_logit,
    logits_of,
    probabilities_on_device,
    sigmoid_of,
)
from segtrust.errors import GeometryError, ParameterError
from segtrust.kernels import (
    PackedMasks,
    as_array,
    as_float,
    as_tensor,
    check_array,
    check_levels,
    check_map_type,
    check_normalised,
    check_shapes,
    code_probabilities,
    dtype_name,
    in_host_memory,
    is_device_array,
    on_host,
    parts_of,
    select_pixels,
    threshold_map,
    tiles_of,
    wide_type,
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
        raise ParameterError(f"how, or --fuse: expected one of {known}, got {value!r}.")


class Fuser:
    """Accumulator that fuses maps added one after the other; see `fuse`.

    Parameters
    ----------
    fusion
        Mean of probabilities, or of logits.
    rounding
        How far a float may be beyond 0 and 1 and still be taken for 0 or 1; further away it is rejected. Only
        for maps on the host.
    class_axis
        Axis of the classes of a softmax; ``None`` if the map has no classes.
    """

    def __init__(
        self,
        fusion: Fusion | str = Fusion.PROBABILITY,
        *,
        rounding: float = 0.0,
        class_axis: int | None = None,
    ) -> None:
        self._fusion = Fusion(fusion)
        self._rounding = rounding
        self._class_axis = class_axis
        self._sums: Any = None
        self._weights = 0.0
        self._limits: Any = 0.0
        """Sum that all members together reach where each of them is at its limit."""
        self._is_double = False
        self._to_caller: Callable[[Any], Any] = as_float

    def add(self, p: Any, source: str = "p", weight: float = 1.0) -> None:
        """Add a map of the same shape as the others; the first decides where they are summed."""
        if self._sums is None:
            p, self._to_caller = in_host_memory(p)
        elif self._to_caller is as_tensor:  # sums of tensors, in NumPy as long as every member allows it
            p, _ = in_host_memory(p)
            if is_device_array(p):
                self._sums, self._limits = as_tensor(self._sums), as_tensor(self._limits)
                self._to_caller = as_float
        is_on_device = is_device_array(p if self._sums is None else self._sums)
        if is_on_device:
            check_array(p, source)
            if self._sums is not None:
                xp, device = array_namespace(self._sums), device_of(self._sums)
                is_same = is_device_array(p) and array_namespace(p) is xp
                p = to_device(p, device) if is_same else xp.asarray(p, device=device)
        else:
            p = _as_numpy(p, source)
        if self._sums is not None and tuple(p.shape) != tuple(self._sums.shape):
            raise GeometryError(
                f"{source}: expected the shape of the first member, {tuple(self._sums.shape)}, got "
                f"{tuple(p.shape)}. Check whether they belong to the same image."
            )
        if self._class_axis is not None:
            self._check_classes(p, source)
        # A bool is as certain as a probability of 8 bits can be.
        limit = largest_logit(np.dtype(np.uint8) if dtype_name(p.dtype) == "bool" else p.dtype, "clip")
        if is_on_device:
            terms = weight * self._terms(probabilities_on_device(p, source), limit)
            self._sums = terms if self._sums is None else self._sums + terms
        else:
            if self._sums is None:
                self._sums = np.zeros(p.shape)
            self._add_tiles(p, source, limit, weight)
        xp = array_namespace(self._sums)
        at_limit = weight * (limit if self._class_axis is None else -_lowest_logarithm(limit))
        self._limits = self._limits + xp.asarray(
            at_limit, dtype=self._sums.dtype, device=device_of(self._sums)
        )
        self._weights += weight
        self._is_double |= dtype_name(p.dtype) in ("float64", "float128", "longdouble")

    def _check_classes(self, p: Any, source: str) -> None:
        axis = self._class_axis
        if not isinstance(axis, int) or isinstance(axis, bool) or not -len(p.shape) <= axis < len(p.shape):
            raise ParameterError(
                f"class_axis: expected an axis of {source}, of shape {tuple(p.shape)}, got {axis!r}."
            )
        remedy = "Pass the axis of the classes, or class_axis=None for maps without classes."
        check_normalised(p, axis=axis % len(p.shape), source=source, remedy=remedy)

    def _add_tiles(self, p: Any, source: str, limit: float, weight: float) -> None:
        """Add a NumPy array tile by tile; each code of an integer type is converted once."""
        codes = code_probabilities(p.dtype)
        terms = None if codes is None else weight * self._terms(codes, limit)
        for tile in tiles_of(p):
            if terms is not None:
                self._sums[tile] += terms[p[tile].view(np.uint8) if p.dtype.kind == "b" else p[tile]]
                continue
            values = p[tile].astype(np.float64)
            if self._rounding:
                is_near = (values >= -self._rounding) & (values <= 1.0 + self._rounding)
                values = np.where(is_near, np.clip(values, 0.0, 1.0), values)
            origin = tuple(part.start for part in tile)
            self._sums[tile] += weight * self._terms(
                check_probabilities(values, values, source, origin), limit
            )

    def _terms(self, p: Any, limit: float) -> Any:
        if self._fusion is Fusion.PROBABILITY:
            return p
        if self._class_axis is None:
            return logits_of(p, limit)
        xp, lowest = array_namespace(p), _lowest_logarithm(limit)
        is_inside = p > math.exp(lowest)
        logarithms = xp.log(xp.where(is_inside, p, 1.0))  # a derivative of infinity times 0 is NaN
        return xp.clip(xp.where(is_inside, logarithms, lowest), lowest, math.log1p(-math.exp(lowest)))

    def result(self) -> Any:
        """Return the fused map: float64 if a member is, else float32."""
        if self._sums is None:
            raise ParameterError("maps: expected at least one map to fuse, got none.")
        xp, fused = array_namespace(self._sums), self._sums / self._weights
        if self._fusion is Fusion.LOGIT and self._class_axis is None:
            is_0, is_1 = (
                self._sums <= -self._limits,
                self._sums >= self._limits,
            )  # every member is at its limit
            fused = xp.where(is_0, 0.0, xp.where(is_1, 1.0, sigmoid_of(fused)))
        elif self._fusion is Fusion.LOGIT:
            axis = self._class_axis
            is_0 = self._sums <= -self._limits
            is_0 = is_0 & ~xp.all(is_0, axis=axis, keepdims=True)
            odds = xp.exp(fused - xp.max(fused, axis=axis, keepdims=True))
            odds = xp.where(is_0, 0.0, odds)
            fused = odds / xp.sum(odds, axis=axis, keepdims=True)
        return self._to_caller(xp.astype(fused, xp.float64 if self._is_double else xp.float32, copy=False))


def _lowest_logarithm(limit: float) -> float:
    """Return the logarithm of the smallest probability whose logit is not below -``limit``."""
    return -math.log1p(math.exp(limit))


def _as_numpy(p: Any, source: str) -> Any:
    """Check a map of any library and return it as a NumPy array."""
    check_array(p, source)
    check_map_type(p.dtype, source)
    check_shapes(tuple(p.shape), None, source)
    values = np.asarray(on_host(p))
    return values.astype(values.dtype.newbyteorder("="), copy=False)


@overload
def fuse(
    maps: Iterable[MapOnHost],
    how: Fusion | FusionName = Fusion.PROBABILITY,
    *,
    weights: Sequence[float] | None = None,
    class_axis: int | None = None,
) -> npt.NDArray[np.floating[Any]]: ...


@overload
def fuse(
    maps: Iterable[DeviceArrayT],
    how: Fusion | FusionName = Fusion.PROBABILITY,
    *,
    weights: Sequence[float] | None = None,
    class_axis: int | None = None,
) -> DeviceArrayT: ...


def fuse(
    maps: Iterable[Any],
    how: Fusion | str = Fusion.PROBABILITY,
    *,
    weights: Sequence[float] | None = None,
    class_axis: int | None = None,
) -> Any:
    """Fuse the maps of several members of an ensemble into one.

    Parameters
    ----------
    maps
        Probability maps of one image, of one shape: float, uint8 (/ 255), uint16 (/ 65535) or bool. Any
        iterable; it is read once, so a generator can load one map after the other.
    how
        ``"mean-probability"``, or ``"mean-logit"`` for the sigmoid of the mean of the logits.
    weights
        One weight per map, at least 0; they are divided by their sum. ``None`` weights all maps equally.
    class_axis
        Axis of the classes of a softmax, such as 0 for (C, H, W). ``"mean-logit"`` is then the softmax of the
        mean of the log-probabilities: their geometric mean, normalised over the classes. ``None`` fuses each
        value by itself, as for one structure or independent classes.

    Returns
    -------
    array
        The same library and device as the first map, NumPy for arrays on the host; float64 if a member is,
        else float32. Sums are computed in float64. In torch the result can be differentiated with respect to
        the maps.

    Notes
    -----
    The logit of a probability of exactly 0 or 1 is infinite, and one such pixel of one member would outvote
    all others. So logits are clipped to the largest that the member's type can distinguish from infinity: 6.9
    for uint8, 12.5 for uint16, 18.0 for float32, 38.1 for float64, as calibration with ``ends="clip"`` does.
    Where all members are beyond that, the fused probability is exactly 0 or 1; where one member is at 0 and
    another of the same type at 1, it is one half. Log-probabilities of classes are clipped by the same rule:
    two classes give the mean logit of one structure.

    Examples
    --------
    >>> import numpy as np
    >>> maps = [np.array([0.9, 0.2, 0.0]), np.array([0.6, 0.1, 0.0])]
    >>> fuse(maps).round(3).tolist(), fuse(maps, "mean-logit").round(3).tolist()
    ([0.75, 0.15, 0.0], [0.786, 0.143, 0.0])
    >>> fuse(maps, weights=[2, 1]).round(3).tolist()
    [0.8, 0.167, 0.0]
    >>> classes = [np.array([[0.7], [0.2], [0.1]]), np.array([[0.3], [0.6], [0.1]])]  # (C, pixels)
    >>> fuse(classes, "mean-logit", class_axis=0).round(3).ravel().tolist()
    [0.507, 0.383, 0.111]
    """
    shares = None if weights is None else _check_weights(weights)
    fuser, count = Fuser(how, class_axis=class_axis), 0
    for number, member in enumerate(_check_iterable(maps)):
        count += 1
        if shares is not None and count > len(shares):
            continue
        source = f"maps[{number}]"
        p = as_array(member, source)
        fuser.add(p, source, 1.0 if shares is None else shares[number])
        check_levels(parts_of(p), p.dtype, source=source)
    if shares is not None and count != len(shares):
        raise ParameterError(f"weights: expected one per map, got {len(shares)} for {count} maps.")
    return fuser.result()


def _check_weights(weights: Any) -> list[float]:
    """Return weights that add up to 1."""
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        values = np.zeros(0)
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values >= 0.0)).all():
        raise ParameterError(f"weights: expected one number of at least 0 per map, got {describe(weights)}.")
    if not values.any():
        raise ParameterError("weights: expected at least one above 0, got only 0.")
    return [float(value) for value in values / values.sum()]


@overload
def pairwise_dice(
    maps: Iterable[MapOnHost],
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> float: ...


@overload
def pairwise_dice(
    maps: Iterable[DeviceArrayT],
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | EmptyName = EmptyPolicy.PAPER,
    where: AnyArray | None = None,
) -> DeviceArrayT: ...


def pairwise_dice(
    maps: Iterable[Any],
    *,
    threshold: float = 0.5,
    empty: EmptyPolicy | str = EmptyPolicy.PAPER,
    where: Any = None,
) -> Any:
    """Compute the mean Dice over all pairs of members of an ensemble, a confidence without probabilities.

    Parameters
    ----------
    maps
        Masks (bool) or probability maps of one image, at least two, of one shape; read once.
    threshold
        Threshold that turns maps into masks, ``p >= threshold``.
    empty
        Two empty masks have a Dice of 0 under ``"paper"`` and of 1 under ``"agree"``.
    where
        Boolean array of the shape of one map that selects the pixels that count; all by default. Other pixels
        may hold anything, such as NaN.

    Returns
    -------
    float
        In [0, 1]. If the first map is a torch, CuPy or JAX array, a scalar array on its device. The masks are
        compared on the host, and gradients do not pass through them.

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
    to_caller: Callable[[float], Any] = as_float
    for number, member in enumerate(_check_iterable(maps)):
        source = f"maps[{number}]"
        p = as_array(member, source)
        values = _as_numpy(p, source)
        if number == 0 and is_device_array(p):
            to_caller = partial(array_namespace(p).asarray, dtype=wide_type(p), device=device_of(p))
        shape = shape or values.shape
        if values.shape != shape:
            raise GeometryError(f"{source}: expected the shape of the first, {shape}, got {values.shape}.")
        if where is not None:
            values = select_pixels(values, where)
        if values.dtype.kind == "u" and values.max() == 1:  # by its type a map of next to nothing
            raise ParameterError(
                f"{source}: expected a map in {values.dtype} up to {np.iinfo(values.dtype).max}, or a mask "
                "of bool; got 0 and 1. If it is a mask: mask.astype(bool)."
            )
        if values.dtype.kind == "f":
            check_probabilities(values, values, source)
        masks.add(threshold_map(values, threshold=threshold))
        count += 1
    if count < 2:
        raise ParameterError(f"maps: expected at least two members to compare, got {count}.")
    return to_caller(masks.agreement().pairwise_dice(of_empty=policy.dice_of_empty_masks))


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
