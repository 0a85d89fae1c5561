"""The members of an ensemble, fused with one in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.ensembles import ROUNDING, FusedChunks, Fuser, Fusion
from segtrust.errors import GeometryError
from segtrust.io.grids import check_same_grid
from segtrust.io.manifest import MEMBER_SEPARATOR as SEPARATOR
from segtrust.io.structures import Structure
from segtrust.io.volumes import Volume
from segtrust.kernels import Agreement, PackedMasks, agreement_of_chunks, is_chunked, threshold_map

__all__ = ["SEPARATOR", "FusedMap", "fused_maps"]

MapOf = Callable[[Volume, Structure], Any]


@dataclass(frozen=True, eq=False)
class FusedMap:
    """A structure of a case, its fused map, and how far the members agree."""

    structure: Structure
    p: Any
    agreement: Agreement


def fused_maps(
    volumes: Sequence[Volume],
    structures: Sequence[Structure],
    map_of: MapOf,
    how: Fusion,
    threshold: float,
) -> Iterator[FusedMap]:
    """Give the fused map of each structure.

    Parameters
    ----------
    volumes
        Files of the members. One is in memory at a time, or none, where all are read piece by piece.
    structures, map_of
        What is scored, and how it is read of a file.
    how, threshold
        How maps are fused, and where masks of members are cut.
    """
    for volume in volumes[1:]:
        _check_alike(volume, volumes[0])
    if all(each.lazy for each in volumes):
        yield from (_fused_chunks(volumes, structure, map_of, how, threshold) for structure in structures)
        return
    fusers = [_Member(Fuser(how, rounding=ROUNDING), PackedMasks()) for _ in structures]
    for volume in volumes:
        ready = volume.ready_for(len(structures))
        for structure, fuser in zip(structures, fusers, strict=True):
            fuser.add(map_of(ready, structure), str(volume.path), threshold)
    for structure, fuser in zip(structures, fusers, strict=True):
        yield FusedMap(structure, fuser.sums.result(), fuser.masks.agreement())


@dataclass(frozen=True, eq=False)
class _Member:
    """What is kept of the members of one structure: sums, and masks as bits."""

    sums: Fuser
    masks: PackedMasks

    def add(self, p: Any, source: str, threshold: float) -> None:
        values = np.asarray(p)
        self.sums.add(values, source)  # refuses what is no probability
        self.masks.add(threshold_map(values, threshold=threshold, source=source))


def _check_alike(volume: Volume, first: Volume) -> None:
    """Refuse a member on another grid than the first: nobody resamples probabilities."""
    check_same_grid(first.grid, volume.grid, (str(first.path), str(volume.path)))
    if tuple(volume.shape) != tuple(first.shape):
        raise GeometryError(
            f"{volume.path}: expected the shape of the first member, {tuple(first.shape)}, got "
            f"{tuple(volume.shape)}. Look whether they belong together."
        )


def _fused_chunks(
    volumes: Sequence[Volume], structure: Structure, map_of: MapOf, how: Fusion, threshold: float
) -> FusedMap:
    sources = [str(volume.path) for volume in volumes]
    maps = [map_of(volume, structure) for volume in volumes]
    agreement = agreement_of_chunks(maps, threshold, sources)
    fused = FusedChunks(maps, how, sources)
    is_lazy = all(is_chunked(p) for p in maps)  # else a complement was computed
    return FusedMap(structure, fused if is_lazy else np.asarray(fused), agreement)
