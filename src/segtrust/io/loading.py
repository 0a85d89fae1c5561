"""From the files of a case to a prediction, its mask and its truth, on one grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.ensembles import Fusion
from segtrust.errors import GeometryError, ParameterError, WrongContentError
from segtrust.io.cases import CaseFiles
from segtrust.io.grids import Grid, check_same_grid
from segtrust.io.label_tables import label_table
from segtrust.io.labels import mask_of_values
from segtrust.io.members import fused_maps
from segtrust.io.nnunet import check_channels, read_scheme, scheme_beside
from segtrust.io.places import Place
from segtrust.io.readers import open_labels, open_volume
from segtrust.io.stores import MASKS, TRUTHS
from segtrust.io.structures import LabelScheme, Structure
from segtrust.io.totalsegmentator import PARTS, names_task
from segtrust.io.volumes import Volume
from segtrust.kernels import Agreement, check_normalised, is_normalised
from segtrust.maps import EmptyPolicy, Prediction

__all__ = [
    "Decoding",
    "LoadedCase",
    "MaskKind",
    "OpenedCase",
    "ReadOptions",
    "load_case",
    "load_opened",
    "opened_labels",
]


_MOST_AXES = 3
_MOST_LABELS = 15
_MOST_CLASSES = 256
_MOST_NUMBERED = 4096
"""Channels that are numbered where nothing names them."""
_MOST_CHANNELS = 1 << 16
"""Of any file: as many as a label of 16 bits can tell apart."""
_SOME_PIXELS = 10_000
_NO_NAMES = (
    "No dataset.json tells what its channels are: if they are regions, give one (--names), or choose a "
    "channel (--channel)."
)


class MaskKind(StrEnum):
    """Which mask is scored."""

    DELIVERED = "delivered"
    THRESHOLD = "threshold"


class Decoding(StrEnum):
    """How a mask is made of a map where none was delivered."""

    THRESHOLD = "threshold"
    DICE_OPTIMAL = "dice-optimal"


@dataclass(frozen=True)
class ReadOptions:
    """What is read of each case.

    Attributes
    ----------
    regions
        Names of the structures that are scored, ``("each",)`` for all; the usual one where none are given.
    channel
        Number of the channel that is scored instead.
    labels
        Values of masks and truths that are foreground, where they hold labels and no ``dataset.json`` tells.
    mask
        The mask that was delivered where there is one, or always the map cut at the threshold.
    threshold
        At which a map is cut.
    key
        Name of the array in files that hold several.
    resample
        Whether masks and truths on another grid are brought to that of the map.
    scheme
        What names the structures, or its ``dataset.json``; one is looked for beside the maps where none is
        given.
    decode
        How a mask is made where none was delivered: cut at the threshold, or `segtrust.dice_optimal_mask`.
    decode_empty
        What an empty mask is worth where the best mask is sought; ``None`` is as the paper has it.
    fuse
        How the maps of several members become one; ``None`` for the mean of probabilities.
    """

    regions: tuple[str, ...] = ()
    channel: int | None = None
    labels: tuple[int, ...] | None = None
    mask: MaskKind = MaskKind.DELIVERED
    threshold: float = 0.5
    key: str | None = None
    resample: bool = False
    scheme: Path | LabelScheme | None = None
    decode: Decoding = Decoding.THRESHOLD
    decode_empty: EmptyPolicy | None = None
    fuse: Fusion | None = None

    def __post_init__(self) -> None:
        """Refuse a mask of an unknown kind, and a choice that is made twice."""
        if self.mask not in list(MaskKind):
            raise ParameterError(f"mask: expected {' or '.join(MaskKind)}, got {self.mask!r}.")
        object.__setattr__(self, "mask", MaskKind(self.mask))
        if self.decode not in list(Decoding):
            raise ParameterError(f"decode: expected {' or '.join(Decoding)}, got {self.decode!r}.")
        object.__setattr__(self, "decode", Decoding(self.decode))
        if self.decode_empty is not None:
            object.__setattr__(self, "decode_empty", EmptyPolicy(self.decode_empty))
        how = Fusion(self.fuse or Fusion.PROBABILITY)
        object.__setattr__(self, "fuse", None if how is Fusion.PROBABILITY else how)  # said or not, the same
        if not 0.0 <= self.threshold <= 1.0:
            raise ParameterError(f"threshold: expected a probability in [0, 1], got {self.threshold}.")
        if self.regions and self.channel is not None:
            raise ParameterError("channel: expected --channel or --region, got both.")


@dataclass(frozen=True, eq=False)
class LoadedCase:
    """One structure of a case.

    Attributes
    ----------
    structure
        Its name.
    prediction
        The map, and the mask to be scored.
    delivered
        The mask that was delivered, whether it is scored or not; ``None`` where there is none.
    truth
        ``None`` where there is none.
    grid
        Where the map lies in space; ``None`` where nothing tells. Of a picture it may be that of a volume
        of one slice.
    """

    structure: str
    prediction: Prediction
    delivered: Any
    truth: Any
    grid: Grid | None = None


@dataclass(frozen=True, eq=False)
class OpenedCase:
    """A case whose arrays have been opened, whether they are in files or in memory.

    Attributes
    ----------
    id
        Its name in tables.
    path
        Of the map, or where it would be: ``dataset.json`` is looked for from there on.
    volume
        The probabilities.
    mask, truth
        That was delivered, and what is known; ``None`` where there is none.
    members
        Probabilities of the other members of an ensemble.
    """

    id: str
    path: Path
    volume: Volume
    mask: Volume | None = None
    truth: Volume | None = None
    members: tuple[Volume, ...] = ()


def load_case(files: CaseFiles, options: ReadOptions) -> Iterator[LoadedCase]:
    """Give the structures of a case one after the other, so that one map is in memory at a time."""
    volume, *members = (open_volume(replace(each, key=each.key or options.key)) for each in files.maps)
    mask, truth = (opened_labels(*each) for each in ((files.mask, MASKS), (files.truth, TRUTHS)))
    case = OpenedCase(files.id, files.probabilities.path, volume, mask, truth, tuple(members))
    yield from load_opened(case, options)


def load_opened(case: OpenedCase, options: ReadOptions) -> Iterator[LoadedCase]:
    """Give the structures of a case that has been opened, as `load_case` does."""
    volume, *members = (_as_map(each, options) for each in (case.volume, *case.members))
    structures = _structures(volume, case, options)
    labels = [_labels(each, volume, options) for each in (case.mask, case.truth)]
    for structure, p, agreement in _maps([volume, *members], structures, options):
        masks = [None if each is None else each.mask_of(structure, tuple(p.shape)) for each in labels]
        scored = masks[0] if options.mask is MaskKind.DELIVERED else None
        spacing = _spacing(volume, len(p.shape))
        prediction = Prediction(p, scored, options.threshold, case.id, spacing, agreement)
        yield LoadedCase(structure.name, prediction, masks[0], masks[1], _grid(volume, prediction.shape))


def _as_map(volume: Volume, options: ReadOptions) -> Volume:
    """Give a volume without a batch of one; refuse what cannot hold a map."""
    volume = _without_batch(volume, options.channel)
    if len(volume.shape) < 2:
        raise WrongContentError(
            f"{volume.path}: expected a map of at least 2 dimensions, got the shape {volume.shape}."
        )
    return volume


def _maps(
    volumes: Sequence[Volume], structures: Sequence[Structure], options: ReadOptions
) -> Iterator[tuple[Structure, Any, Agreement | None]]:
    """Give the map of each structure: that of the only file, or that of all members fused."""
    if len(volumes) == 1:
        ready = volumes[0].ready_for(len(structures))
        yield from ((structure, _map_of(ready, structure), None) for structure in structures)
        return
    how = options.fuse or Fusion.PROBABILITY
    for fused in fused_maps(volumes, structures, _map_of, how, options.threshold):
        yield fused.structure, fused.p, fused.agreement


def _map_of(volume: Volume, structure: Structure) -> Any:
    """Read the map of a structure; refuse what is none."""
    p = _without_unit_axes(structure.probabilities(volume))
    _refuse_labels(p, volume)
    _refuse_classes(p, volume, structure)
    return p


def opened_labels(place: Place | None, usual: Sequence[str] = TRUTHS) -> Volume | None:
    """Open a mask or a truth, called in errors as its place is; ``None`` where there is none."""
    return None if place is None else replace(open_labels(place, usual), path=str(place))


def _refuse_labels(p: Any, volume: Volume) -> None:
    """Refuse a mask that was given as a map: small whole numbers of an image in space are labels."""
    is_integer = str(p.dtype) in ("uint8", "uint16") and isinstance(p, np.ndarray)
    if is_integer and volume.grid is not None and p.size and 1 <= p.max() <= _MOST_LABELS:
        raise WrongContentError(
            f"{volume.path}: expected probabilities, times 255 where they are 8-bit numbers, got whole "
            f"numbers up to {p.max()}, which are labels. Give the map, and the mask by --mask-dir; or save "
            "probabilities as floats."
        )


def _refuse_classes(p: Any, volume: Volume, structure: Structure) -> None:
    """Refuse the classes of a softmax that would be taken for the slices of a volume.

    A plain array says nothing of its axes; but slices do not add up to 1 everywhere.
    """
    axes = len(p.shape)
    if volume.has_channels is not None or (axes < _MOST_AXES and structure.channel is None):
        return
    if structure.channel is None and _are_classes(p, 0):
        remedy = "Say which one: --channel, or --names with --region."
    elif _are_classes(p, axes - 1):
        remedy = "Save them as the first axis, and say which one: --channel."
    else:
        return
    raise WrongContentError(
        f"{volume.path}: expected one map, got {tuple(p.shape)} with an axis that adds up to 1: the "
        f"classes of a softmax. {remedy}"
    )


def _are_classes(p: Any, axis: int) -> bool:
    """Tell whether an axis, the first or the last, adds up to 1 in a part of the pixels."""
    if not 1 < p.shape[axis] <= _MOST_CLASSES or 0 in p.shape:
        return False
    if axis == 0:
        return is_normalised(p)
    if not isinstance(p, np.ndarray):
        return False
    some = p[tuple(slice(None, None, max(1, length // 32)) for length in p.shape[:-1])]
    return is_normalised(np.moveaxis(some, -1, 0))


def _without_batch(volume: Volume, channel: int | None) -> Volume:
    """Take (1, C, …) for a batch of one where a channel is asked for, and it has no other or is a softmax."""
    is_batch = volume.has_channels is None and len(volume.shape) > _MOST_AXES and volume.shape[0] == 1
    if not is_batch or channel is None:
        return volume
    whole = volume.read()[0]
    if channel == 0 and not _are_classes(whole, 0):
        return volume
    return replace(volume, shape=volume.shape[1:], load=lambda each: whole if each is None else whole[each])


def _grid(volume: Volume, shape: tuple[int, ...]) -> Grid | None:
    """Give where the axes that are left lie."""
    is_all = volume.grid is not None and volume.grid.lengths == (*shape[::-1], 1, 1)[:3]
    return volume.grid if is_all and len(shape) in (2, 3) else None


def _spacing(volume: Volume, ndim: int) -> tuple[float, ...] | None:
    """Give the spacing of the axes that are left."""
    if volume.grid is None or len(volume.grid.shape) < ndim:
        return None
    return volume.grid.spacing_mm[-ndim:]


def _structures(volume: Volume, case: OpenedCase, options: ReadOptions) -> Sequence[Structure]:
    """Find out what is scored: what was asked for, or what the file and its neighbours say."""
    _check_count(volume)
    scheme = _scheme(volume, case, options)
    if scheme is not None:
        check_channels(volume, scheme, _remedy(options))
        return [_labelled(each, options) for each in _chosen(volume, scheme, options)]
    _refuse_unnamed(volume, case.path, options)
    if options.channel is not None:
        return [Structure(f"channel {options.channel}", options.channel, values=options.labels)]
    return [Structure(values=options.labels)]


def _check_count(volume: Volume) -> None:
    """Refuse more channels than there are labels: a header may say anything, and each is a row."""
    if volume.has_channels and volume.shape[0] > _MOST_CHANNELS:
        raise WrongContentError(
            f"{volume.path}: expected at most {_MOST_CHANNELS} channels, got {volume.shape[0]} by its own "
            "header. It may be damaged."
        )


def _chosen(volume: Volume, scheme: LabelScheme, options: ReadOptions) -> Sequence[Structure]:
    """Give the structures of a scheme that are asked for, by name or by channel."""
    if options.channel is None:
        return scheme.chosen(options.regions)
    volume.check_channel(options.channel)
    named = {each.channel: each for each in scheme.structures}
    background = Structure("background", 0, values=(0,), known=scheme.known)
    return [named.get(options.channel, background)]


def _refuse_unnamed(volume: Volume, path: Path, options: ReadOptions) -> None:
    """Refuse, where nothing names the channels, regions, and arrays of which an axis may be channels."""
    asked = ", ".join(options.regions)
    if asked and volume.has_channels is False:
        raise WrongContentError(
            f"{path}: expected channels, for the regions {asked}, got one map of shape {volume.shape}."
        )
    if asked:
        raise WrongContentError(
            f"{path}: expected a dataset.json that names the regions {asked}, got none beside the file or "
            "above it. Give one (--names), or choose by number (--channel)."
        )
    long_axes = [length for length in volume.shape if length > 1]
    if options.channel is None and volume.has_channels is None and len(long_axes) > _MOST_AXES:
        raise WrongContentError(
            f"{path}: expected a map of at most {_MOST_AXES} dimensions, got {volume.shape}. If the "
            "first axis are channels, say which: --channel."
        )


def _remedy(options: ReadOptions) -> str:
    is_task = isinstance(options.scheme, Path) and names_task(options.scheme)
    return PARTS if is_task else ""


def _scheme(volume: Volume, case: OpenedCase, options: ReadOptions) -> LabelScheme | None:
    if volume.has_channels is False or len(volume.shape) < 3:
        return None
    if isinstance(options.scheme, LabelScheme):
        return options.scheme
    if options.scheme is not None:
        return read_scheme(options.scheme)
    if not volume.has_channels:
        return None
    if volume.channel_names:
        names = tuple((name, (i + 1,)) for i, name in enumerate(volume.channel_names))
        return LabelScheme(names, is_regions=True)
    return scheme_beside(case.path) or _of_mask(volume, case.mask) or _numbered(volume, case.path, options)


def _of_mask(volume: Volume, mask: Volume | None) -> LabelScheme | None:
    """Give the names that the header of a mask tells, as that of TotalSegmentator does, if they fit."""
    names = {} if mask is None else label_table(Place.of(mask.path).path)
    if sorted(names) != list(range(1, volume.shape[0])):
        return None
    return LabelScheme(tuple((names[i], (i,)) for i in sorted(names)), is_regions=False)


def _numbered(volume: Volume, path: Path, options: ReadOptions) -> LabelScheme | None:
    """Give numbers to the classes of nnU-Net where no names are to be had, as with TotalSegmentator.

    Only a softmax has a background: what is none is refused, or its first region would be taken for that.
    """
    if path.suffix.lower() != ".npz" or volume.shape[0] < 2 or options.channel is not None:
        return None
    if volume.shape[0] > _MOST_NUMBERED:
        raise WrongContentError(
            f"{path}: expected at most {_MOST_NUMBERED} classes, the first axis, got {volume.shape}. "
            "Name them, if it has so many: --names."
        )
    some = np.stack([_some(volume.read(i)) for i in range(volume.shape[0])])
    check_normalised(some, source=str(path), remedy=_NO_NAMES)
    names = tuple((f"class {i}", (i,)) for i in range(1, volume.shape[0]))
    return LabelScheme(names, is_regions=False)


def _some(values: Any) -> Any:
    """Give some pixels of a channel, the same of each; all channels at once may not fit into memory."""
    flat = np.asarray(values).reshape(-1)
    return flat[:: max(1, flat.size // _SOME_PIXELS)].copy()


def _labelled(structure: Structure, options: ReadOptions) -> Structure:
    if options.labels is None:
        return structure
    return Structure(structure.name, structure.channel, structure.is_complement, options.labels)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Labels of a whole case, of which each structure takes its own."""

    values: Any
    source: str
    names: tuple[str, ...] = ()

    def mask_of(self, structure: Structure, shape: tuple[int, ...]) -> Any:
        mask = _without_unit_axes(self._whole_mask(structure), ndim=len(shape))
        if tuple(mask.shape) != shape:
            raise GeometryError(
                f"{self.source}: expected the shape of the map, {shape}, got {tuple(mask.shape)}. Look "
                "whether they belong together, or let it be resampled (--resample)."
            )
        return mask

    def _whole_mask(self, structure: Structure) -> Any:
        """Give the mask of a structure, from labels, or from the segment of its name.

        Never from that of its number: the second segment of a mask need not be the second of a map.
        """
        if not self.names:
            return structure.mask(self.values, self.source)
        names = [name.casefold() for name in self.names]
        if names.count(structure.name.casefold()) != 1:
            raise WrongContentError(
                f"{self.source}: expected a segment called {structure.name!r}, got {', '.join(self.names)}. "
                "Name the structures alike: --names, --region."
            )
        at = names.index(structure.name.casefold())
        return mask_of_values(self.values[at], None, self.source)


def _labels(opened: Volume | None, volume: Volume, options: ReadOptions) -> _Labels | None:
    """Read a mask or a truth, on the grid of the map."""
    if opened is None:
        return None
    source = str(opened.path)
    names = opened.channel_names if opened.has_channels and opened.shape[0] > 1 else ()
    found = opened if names else _one_image(opened)
    if found.grid is not None and volume.grid is not None and _may_be_moved(found, volume, options):
        from segtrust.io.resampling import resampled_labels

        parts = [_channel(found, i) for i in range(len(names))] or [found]
        moved = [resampled_labels(each, volume.grid) for each in parts]
        return _Labels(np.stack(moved) if names else moved[0], source, names)
    check_same_grid(volume.grid, found.grid, (str(volume.path), source))
    return _Labels(found.read(), source, names)


def _may_be_moved(labels: Volume, volume: Volume, options: ReadOptions) -> bool:
    """Whether labels are brought to the grid of the map: if asked, or if only empty slices are absent."""
    if options.resample or labels.grid is None or volume.grid is None:
        return options.resample
    return (labels.is_cropped or volume.is_cropped) and volume.grid.shares_pixels_with(labels.grid)


def _one_image(volume: Volume) -> Volume:
    """Refuse labels in channels, one for each structure: which of them overlap could not be told."""
    if not volume.has_channels:
        return volume
    if volume.shape[0] != 1:
        raise WrongContentError(
            f"{volume.path}: expected one image of labels, got {volume.shape[0]} channels. Save labels as "
            "whole numbers."
        )
    return _channel(volume, 0)


def _channel(volume: Volume, number: int) -> Volume:
    return replace(volume, shape=volume.shape[1:], load=lambda _: volume.read(number), has_channels=False)


def _without_unit_axes(values: Any, ndim: int = 0) -> Any:
    """Drop leading axes of length 1, such as the only slice of an image or the only channel of a stack."""
    while len(values.shape) > max(2, ndim) and values.shape[0] == 1:
        values = values[0]
    return values
