"""What is scored of a case: which probability, and which labels of its mask belong together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from segtrust.errors import UnknownNameError, WrongContentError
from segtrust.io.labels import LazyMask, mask_of_values
from segtrust.io.volumes import Volume
from segtrust.kernels import is_chunked

__all__ = ["FOREGROUND", "LabelScheme", "Structure"]

_ROUNDING = 1e-3

FOREGROUND = "foreground"
"""The structure of a file that tells of no other: all that is not background."""


@dataclass(frozen=True)
class Structure:
    """An organ, a lesion, a region: one binary question to a case.

    Attributes
    ----------
    name
        In tables.
    channel
        Of the probabilities; ``None`` where there is one map only.
    is_complement
        Whether the probability is one minus the channel's, as of all that is not background.
    values
        Labels of masks and truths that belong to it; ``None`` where these are binary.
    known
        All labels that may occur; empty where that is not known.
    """

    name: str = FOREGROUND
    channel: int | None = None
    is_complement: bool = False
    values: tuple[int, ...] | None = None
    known: tuple[int, ...] = ()

    def probabilities(self, volume: Volume) -> Any:
        """Read its map; an array in chunks stays one."""
        if self.channel is None:
            return _one_map(volume)
        values = volume.read(self.channel)
        return _complement(np.asarray(values)) if self.is_complement else values

    def mask(self, labels: Any, source: str) -> Any:
        """Give where labels are those of the structure; of an array in chunks piece by piece."""
        if is_chunked(labels):
            return LazyMask(labels, self.values, source, self.known)
        return mask_of_values(labels, self.values, source, known=self.known)


def _one_map(volume: Volume) -> Any:
    if not volume.has_channels:
        return volume.read()
    if volume.shape[0] == 1:
        return volume.read(0)
    raise WrongContentError(
        f"{volume.path}: expected one map, got {volume.shape[0]} channels. Say which: --channel or --region."
    )


def _complement(values: Any) -> Any:
    """Give one minus probabilities; sums of a softmax may miss 1 in the last digit."""
    if values.dtype == bool:
        return ~values
    if values.dtype.kind != "f":
        return np.iinfo(values.dtype).max - values
    wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
    found = wide.dtype.type(1) - wide
    return np.maximum(found, 0, out=found) if -_ROUNDING < found.min(initial=0) < 0 else found


@dataclass(frozen=True)
class LabelScheme:
    """The structures of a model, as nnU-Net's ``dataset.json`` names them.

    Attributes
    ----------
    labels
        Names with the labels that belong to each, in the order of the channels; the background left out.
    is_regions
        Whether each has a channel of its own (sigmoids) and no channel is that of the background.
    others
        Labels that masks may hold beside these, of structures that have no channel here.
    undelivered
        Names among those above that no mask shows; they are scored only where they are asked for by name.

    Examples
    --------
    >>> scheme = LabelScheme((("organ", (1,)), ("lesion", (2,))), is_regions=False)
    >>> [(each.name, each.channel, each.values) for each in scheme.structures]
    [('organ', 1, (1,)), ('lesion', 2, (2,))]
    >>> scheme.usual.name, scheme.usual.channel, scheme.usual.is_complement, scheme.usual.values
    ('foreground', 0, True, (1, 2))
    """

    labels: tuple[tuple[str, tuple[int, ...]], ...]
    is_regions: bool
    others: tuple[int, ...] = field(default=(), repr=False)
    undelivered: tuple[str, ...] = field(default=(), repr=False)

    @property
    def known(self) -> tuple[int, ...]:
        """All labels, the background's too."""
        return tuple(sorted({0, *self._own, *self.others}))

    @property
    def _own(self) -> tuple[int, ...]:
        return tuple(sorted({value for _, values in self.labels for value in values} - {0}))

    @property
    def structures(self) -> tuple[Structure, ...]:
        """One for each name."""
        first = 0 if self.is_regions else 1
        return tuple(
            Structure(name, first + i, values=values, known=self.known)
            for i, (name, values) in enumerate(self.labels)
        )

    @property
    def usual(self) -> Structure:
        """What is scored unless something is said: the first region, or all that is not background."""
        if self.is_regions or len(self.labels) == 1:
            return self.structures[0]
        return Structure(FOREGROUND, 0, is_complement=True, values=self._own, known=self.known)

    @property
    def channels(self) -> int:
        """Channels that probabilities of this scheme have."""
        return len(self.labels) + (not self.is_regions)

    def chosen(self, names: Sequence[str]) -> tuple[Structure, ...]:
        """Give the structures of these names; the usual one for none, and each one for ``"each"``."""
        if not names:
            return (self.usual,)
        if tuple(names) == ("each",):
            return tuple(each for each in self.structures if each.name not in self.undelivered)
        return tuple(self._named(name) for name in names)

    def _named(self, name: str) -> Structure:
        there = {each.name: each for each in (*self.structures, self.usual)}
        if name not in there:
            raise UnknownNameError(f"Unknown region {name!r}; available: {_listed(there)}, each.")
        return there[name]


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
