"""From the files of a case to its map, its mask and its ground truth as arrays on one grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust.ensembles import ROUNDING, FusedChunks, Fuser, Fusion
from segtrust.errors import GeometryError, NotBinaryError, ParameterError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.checksums import ChecksumKind, checksum_of_all
from segtrust.io.formats._common import MASKS, TRUTHS
from segtrust.io.grid import (
    Grid,
    Resample,
    check_same_grid,
    is_same_grid,
    resample_in_space,
    resize_linear,
    resize_nearest,
)
from segtrust.io.pictures import is_jpeg, read_grey_jpeg
from segtrust.io.structures import (
    PARTS_REMEDY,
    LabelScheme,
    Structure,
    check_channels,
    find_scheme,
    is_task,
    mask_from_labels,
    mask_from_truth,
    read_label_names,
    read_scheme,
)
from segtrust.io.volume import Volume, open_labels, open_volume
from segtrust.kernels import (
    Agreement,
    PackedMasks,
    agreement_of_chunks,
    check_normalised,
    is_chunked,
    is_normalised,
    threshold_map,
)
from segtrust.maps import EmptyPolicy, Prediction

__all__ = [
    "Decoding",
    "LoadedCase",
    "MaskKind",
    "OpenedCase",
    "ReadOptions",
    "load_case",
    "load_opened",
    "open_mask",
    "open_truth",
]

_MAX_AXES = 3
_MAX_LABEL = 15
"""Largest whole number in an image in space that is taken for a label, not for a probability times 255."""
_MAX_CLASSES = 256
_MAX_NUMBERED = 4096
"""Number of channels up to which classes without names are numbered."""
_MAX_CHANNELS = 1 << 16
"""Number of channels of any file: the number of 16-bit labels."""
_SAMPLE = 10_000
_MORE_IN_REVERSE = 0.1
"""Dice with reversed axes, above the one without, from which on their order is questioned."""
_MOST_LISTED = 8
_MAX_COMPARED = 1 << 27
"""Voxels of a volume up to which its order of axes is checked against the overlap."""


class MaskKind(StrEnum):
    """Which mask is scored."""

    DELIVERED = "delivered"
    THRESHOLD = "threshold"


class Decoding(StrEnum):
    """How a mask is computed from a map if none was delivered."""

    THRESHOLD = "threshold"
    DICE_OPTIMAL = "dice-optimal"


@dataclass(frozen=True)
class ReadOptions:
    """What is read from the files of each case.

    Attributes
    ----------
    regions
        Names of the structures that are scored, ``("each",)`` for all; the usual one if empty.
    channel
        Number of the channel that is scored instead.
    labels
        Values of masks and ground truth that are foreground, if they contain labels and no ``dataset.json``
        names them.
    mask
        Whether the delivered mask is scored, if there is one, or always the thresholded map.
    threshold
        Threshold of the map.
    key
        Name of the array in files that contain several.
    resample
        What is done if map and ground truth have different sizes or grids: ``"truth"`` brings masks and
        ground truth to the map (nearest neighbour), ``"map"`` brings the map to the ground truth (linear).
        ``None`` rejects the case. ``True`` and ``False``, as in tables of version 0.1, mean ``"truth"`` and
        ``None``.
    scheme
        Names of the structures, or the path of their ``dataset.json``; by default one is looked for beside
        the maps.
    decode
        How a mask is computed if none was delivered: by the threshold, or `segtrust.dice_optimal_mask`.
    decode_empty
        Score of an empty mask if the Dice-optimal mask is computed; ``None`` for that of the paper.
    fuse
        How the maps of several members are fused; ``None`` for the mean of probabilities.
    truth_threshold
        Grey level from which on a pixel of binary ground truth is foreground; below 1 a share of white (255,
        65535, or 1 for floats). ``None`` thresholds soft edges at half of the maximum and rejects other grey
        images. Masks of two values and labels are never thresholded.
    fill_missing
        Whether chunks of Zarr and HDF5 and strips of TIFF that were never written stand for their fill value,
        usually 0. By default they are an error, because a copy that stopped looks the same.
    """

    regions: tuple[str, ...] = ()
    channel: int | None = None
    labels: tuple[int, ...] | None = None
    mask: MaskKind = MaskKind.DELIVERED
    threshold: float = 0.5
    key: str | None = None
    resample: Resample | None = None
    scheme: Path | LabelScheme | None = None
    decode: Decoding = Decoding.THRESHOLD
    decode_empty: EmptyPolicy | None = None
    fuse: Fusion | None = None
    truth_threshold: float | None = None
    fill_missing: bool = False

    def __post_init__(self) -> None:
        """Check the values, and reject a choice that is made twice."""
        for name, kind in (("mask", MaskKind), ("decode", Decoding), ("resample", Resample)):
            value = getattr(self, name)
            if name == "resample" and (value is None or isinstance(value, bool)):
                object.__setattr__(self, name, Resample.TRUTH if value else None)
                continue
            if value not in list(kind):
                choices = [choice for choice in kind if choice is not Resample.TRUTH_OPENCV]
                raise ParameterError(f"{name}: expected {' or '.join(choices)}, got {value!r}.")
            object.__setattr__(self, name, kind(value))
        if self.decode_empty is not None:
            object.__setattr__(self, "decode_empty", EmptyPolicy(self.decode_empty))
        fusion = Fusion(self.fuse or Fusion.PROBABILITY)
        object.__setattr__(self, "fuse", None if fusion is Fusion.PROBABILITY else fusion)
        if not 0.0 <= self.threshold <= 1.0:
            raise ParameterError(f"threshold: expected a probability in [0, 1], got {self.threshold}.")
        if self.regions and self.channel is not None:
            raise ParameterError("channel: expected --channel or --region, got both.")
        if self.truth_threshold is not None:
            if not 0.0 < self.truth_threshold < math.inf:
                raise ParameterError(
                    "truth_threshold: expected a grey level, or a share of white between 0 and 1, got "
                    f"{self.truth_threshold}."
                )
            if self.labels is not None:
                raise ParameterError("truth_threshold: expected --truth-threshold or --label, got both.")


@dataclass(frozen=True, eq=False)
class LoadedCase:
    """One structure of a case.

    Attributes
    ----------
    structure
        Name of the structure.
    prediction
        The map, and the mask that is scored.
    delivered
        The delivered mask, whether it is scored or not; ``None`` if there is none.
    truth
        Ground truth; ``None`` if there is none.
    grid
        Where the map lies in space; ``None`` if unknown. The grid of a picture may be that of a volume of
        one slice.
    notes
        What a reader of the results should know about how the files were read, such as ground truth that was
        thresholded.
    checksum
        Checksum of the files of the map; empty if it is in memory.
    """

    structure: str
    prediction: Prediction
    delivered: Any
    truth: Any
    grid: Grid | None = None
    notes: tuple[str, ...] = ()
    checksum: str = ""


@dataclass(frozen=True, eq=False)
class OpenedCase:
    """The arrays of a case, in files or in memory, opened but not yet read.

    Attributes
    ----------
    id
        Name in tables.
    path
        Path of the map, or where it would be: ``dataset.json`` is looked for from there on.
    volume
        Probabilities.
    mask, truth
        Delivered mask and ground truth; ``None`` if there is none.
    members
        Probabilities of the other members of an ensemble.
    checksum
        Checksum of the files of the maps; empty if they are in memory.
    array
        Key and index of the map in its file, as text; empty if the file contains one map.
    """

    id: str
    path: Path
    volume: Volume
    mask: Volume | None = None
    truth: Volume | None = None
    members: tuple[Volume, ...] = ()
    checksum: str = ""
    array: str = ""


class LossyVolume(Volume):
    """A volume in a format that changes pixels, such as JPEG."""


def load_case(
    files: CaseFiles, options: ReadOptions, *, digest: ChecksumKind | None = "quick"
) -> Iterator[LoadedCase]:
    """Yield the structures of a case one after the other, so that one map is in memory at a time.

    Parameters
    ----------
    files
        Files of the case.
    options
        What is read from them.
    digest
        Kind of the checksum of the maps, by which a copy under another name is recognised; ``None`` for
        none, if the case is only displayed.
    """
    volume, *members = (
        open_volume(replace(ref, key=ref.key or options.key), fill_missing=options.fill_missing)
        for ref in files.maps
    )
    case = OpenedCase(
        files.id,
        files.probabilities.path,
        volume,
        open_mask(files.mask, fill_missing=options.fill_missing),
        open_truth(files.truth, fill_missing=options.fill_missing),
        tuple(members),
        "" if digest is None else checksum_of_all([ref.path for ref in files.maps], digest),
        str(files.probabilities)[len(str(files.probabilities.path)) :],
    )
    yield from load_opened(case, options)


def open_mask(ref: ArrayRef | None, *, fill_missing: bool = False) -> Volume | None:
    """Open a delivered mask, if there is one; errors name it as ``ref`` does."""
    return None if ref is None else replace(open_labels(ref, MASKS, fill_missing=fill_missing), path=str(ref))


def open_truth(ref: ArrayRef | None, *, fill_missing: bool = False) -> Volume | None:
    """Open ground truth, also in JPEG, if there is any; errors name it as ``ref`` does."""
    if ref is None:
        return None
    if ref.key is None and ref.index is None and not ref.is_trusted and is_jpeg(ref.path):
        values = read_grey_jpeg(ref.path)
        return LossyVolume(str(ref), values.shape, values.dtype, lambda _: values, has_channels=False)
    return replace(open_labels(ref, TRUTHS, fill_missing=fill_missing), path=str(ref))


def load_opened(case: OpenedCase, options: ReadOptions) -> Iterator[LoadedCase]:
    """Yield the structures of a case that has been opened, like `load_case`."""
    volume, *members = (_check_map(opened, options) for opened in (case.volume, *case.members))
    structures = _structures(volume, case, options)
    frame = volume
    moves_map = options.resample is Resample.MAP and case.truth is not None
    if moves_map and case.truth is not None and case.truth.grid is not None and volume.grid is not None:
        frame = case.truth
    mask = None if case.mask is None else _Labels.read(case.mask, "mask", volume, frame, options)
    truth = None if case.truth is None else _Labels.read(case.truth, "truth", volume, frame, options)
    for structure, stored, agreement in _maps([volume, *members], structures, options):
        p, grid = stored, volume.grid
        if moves_map and truth is not None:
            p, grid = _bring_to(stored, volume, truth)
        delivered = known = None
        notes: dict[str, None] = {}
        if mask is not None:
            delivered, found = mask.mask_of(structure, p)
            notes |= dict.fromkeys(found)
        if truth is not None:
            known, found = truth.mask_of(structure, p)
            notes |= dict.fromkeys(found)
        scored = delivered if options.mask is MaskKind.DELIVERED else None
        shape = tuple(p.shape)
        spacing = None if grid is None or len(grid.shape) < len(shape) else grid.spacing_mm[-len(shape) :]
        is_placed = grid is not None and grid.lengths == (*shape[::-1], 1, 1)[:3] and len(shape) in (2, 3)
        checksum = case.checksum + case.array if case.checksum and not _is_empty(p, scored, options) else ""
        yield LoadedCase(
            structure.name,
            Prediction(p, scored, options.threshold, case.id, spacing, agreement, checksum=checksum),
            delivered,
            known,
            grid if is_placed else None,
            tuple(notes),
            case.checksum,
        )


def _is_empty(p: Any, mask: Any, options: ReadOptions) -> bool:
    """Return whether the mask is empty: many images share an empty map, which recognises none of them."""
    if isinstance(mask, np.ndarray):
        return not mask.any()
    if not isinstance(p, np.ndarray) or p.dtype.kind not in "biuf" or not p.size:
        return False  # reading all tiles for this would take too long
    return bool(p.max() < options.threshold * _white(p))


def _white(p: Any) -> float:
    """Return the value of a map that means a probability of 1."""
    return float(np.iinfo(p.dtype).max) if p.dtype.kind in "iu" else 1.0


# The map


def _check_map(volume: Volume, options: ReadOptions) -> Volume:
    """Return a volume without a batch axis of length 1; reject one that cannot contain a map."""
    is_batch = volume.has_channels is None and len(volume.shape) > _MAX_AXES and volume.shape[0] == 1
    if is_batch and options.channel is not None:
        whole = volume.read()[0]
        if options.channel != 0 or _are_classes(whole, 0):  # else (1, z, y, x): one channel
            volume = replace(
                volume,
                shape=volume.shape[1:],
                load=lambda channel: whole if channel is None else whole[channel],
            )
    if len(volume.shape) < 2:
        raise WrongContentError(
            f"{volume.path}: expected a map of at least 2 dimensions, got the shape {volume.shape}."
        )
    if volume.has_channels and volume.shape[0] > _MAX_CHANNELS:
        raise WrongContentError(
            f"{volume.path}: expected at most {_MAX_CHANNELS} channels, got {volume.shape[0]} by its own "
            "header. It may be corrupt."
        )
    return volume


def _maps(
    volumes: Sequence[Volume], structures: Sequence[Structure], options: ReadOptions
) -> Iterator[tuple[Structure, Any, Agreement | None]]:
    """Yield the map of each structure: that of the only file, or that of all members fused.

    One member is in memory at a time, or none if all are chunked arrays.
    """
    first, *others = volumes
    if not others:
        ready = first.ready_for(len(structures))
        yield from ((structure, _read_map(ready, structure), None) for structure in structures)
        return
    for volume in others:
        check_same_grid(first.grid, volume.grid, (str(first.path), str(volume.path)))
        if tuple(volume.shape) != tuple(first.shape):
            raise GeometryError(
                f"{volume.path}: expected the shape of the first member, {tuple(first.shape)}, got "
                f"{tuple(volume.shape)}. Check that they belong together: members are never resampled."
            )
    fusion = options.fuse or Fusion.PROBABILITY
    if all(volume.lazy for volume in volumes):
        sources = [str(volume.path) for volume in volumes]
        for structure in structures:
            maps = [_read_map(volume, structure) for volume in volumes]
            agreement = agreement_of_chunks(maps, options.threshold, sources)
            fused = FusedChunks(maps, fusion, sources)
            is_lazy = all(is_chunked(p) for p in maps)  # else a complement was computed
            yield structure, fused if is_lazy else np.asarray(fused), agreement
        return
    sums = [Fuser(fusion, rounding=ROUNDING) for _ in structures]
    masks = [PackedMasks() for _ in structures]
    for volume in volumes:
        ready, source = volume.ready_for(len(structures)), str(volume.path)
        for structure, fuser, packed in zip(structures, sums, masks, strict=True):
            values = np.asarray(_read_map(ready, structure))
            fuser.add(values, source)  # rejects values that are not probabilities
            packed.add(threshold_map(values, threshold=options.threshold, source=source))
    for structure, fuser, packed in zip(structures, sums, masks, strict=True):
        yield structure, fuser.result(), packed.agreement()


def _read_map(volume: Volume, structure: Structure) -> Any:
    """Read the map of a structure; reject labels, and the classes of a softmax that look like slices."""
    p = _without_unit_axes(structure.probabilities(volume))
    is_integer = str(p.dtype) in ("uint8", "uint16") and isinstance(p, np.ndarray)
    if is_integer and volume.grid is not None and p.size and 1 <= p.max() <= _MAX_LABEL:
        raise WrongContentError(
            f"{volume.path}: expected probabilities, times 255 if they are 8-bit numbers, got whole numbers "
            f"up to {p.max()}, which are labels. Pass the map, and the mask with --mask-dir; or save "
            "probabilities as floats."
        )
    axes = len(p.shape)
    if volume.has_channels is not None or (axes < _MAX_AXES and structure.channel is None):
        return p
    # A plain array says nothing about its axes; but slices do not add up to 1 everywhere.
    if structure.channel is None and _are_classes(p, 0):
        remedy = "Choose one: --channel, or --names with --region."
    elif _are_classes(p, axes - 1):
        remedy = "Save them as the first axis, and choose one: --channel."
    else:
        return p
    raise WrongContentError(
        f"{volume.path}: expected one map, got {tuple(p.shape)} with an axis that adds up to 1: the "
        f"classes of a softmax. {remedy}"
    )


def _are_classes(p: Any, axis: int) -> bool:
    """Return whether an axis, the first or the last, adds up to 1 in a sample of the pixels."""
    if not 1 < p.shape[axis] <= _MAX_CLASSES or 0 in p.shape:
        return False
    if axis == 0:
        return is_normalised(p)
    if not isinstance(p, np.ndarray):
        return False
    sample = p[tuple(slice(None, None, max(1, length // 32)) for length in p.shape[:-1])]
    return is_normalised(np.moveaxis(sample, -1, 0))


def _without_unit_axes(values: Any, ndim: int = 0) -> Any:
    """Return values without leading axes of length 1, such as the only slice or channel of an image."""
    while len(values.shape) > max(2, ndim) and values.shape[0] == 1:
        values = values[0]
    return values


def _as_float(p: Any) -> Any:
    """Return probabilities as floats of at least 32 bits, for interpolation."""
    values = np.asarray(p)
    if values.dtype.kind in "iu":
        return values / np.float32(_white(values))
    return values.astype(np.float32) if values.dtype.itemsize < 4 else values


def _bring_to(p: Any, volume: Volume, truth: _Labels) -> tuple[Any, Grid | None]:
    """Return the map in the size and on the grid of the ground truth, by linear interpolation."""
    goal = truth.volume.grid
    if volume.grid is not None and goal is not None:
        if is_same_grid(volume.grid, goal):
            return p, volume.grid
        return _without_unit_axes(resample_in_space(_as_float(p), volume.grid, goal, linear=True)), goal
    shape = truth.shape(len(p.shape))
    if shape == tuple(p.shape) or not truth.can_be_resized(shape, tuple(p.shape)):
        return p, volume.grid
    return resize_linear(_as_float(p), shape), goal


# The structures


def _structures(volume: Volume, case: OpenedCase, options: ReadOptions) -> Sequence[Structure]:
    """Return what is scored: what was requested, or what the file and its neighbours say."""
    scheme = _scheme(volume, case, options)
    if scheme is None:
        _check_unnamed(volume, case.path, options)
        if options.channel is not None:
            return [Structure(f"channel {options.channel}", options.channel, values=options.labels)]
        return [Structure(values=options.labels)]
    is_of_task = isinstance(options.scheme, Path) and is_task(options.scheme)
    check_channels(volume, scheme, PARTS_REMEDY if is_of_task else "")
    structures = scheme.chosen(options.regions)
    if options.channel is not None:
        volume.check_channel(options.channel)
        background = Structure("background", 0, values=(0,), known=scheme.known)
        by_channel = {structure.channel: structure for structure in scheme.structures}
        structures = (by_channel.get(options.channel, background),)
    if options.labels is None:
        return structures
    return [replace(structure, values=options.labels, known=()) for structure in structures]


def _check_unnamed(volume: Volume, path: Path, options: ReadOptions) -> None:
    """Reject, if nothing names the channels, regions and arrays with an axis that may be channels."""
    regions = ", ".join(options.regions)
    if regions and volume.has_channels is False:
        raise WrongContentError(
            f"{path}: expected channels, for the regions {regions}, got one map of shape {volume.shape}."
        )
    if regions:
        raise WrongContentError(
            f"{path}: expected a dataset.json that names the regions {regions}, got none beside the file or "
            "above it. Pass one (--names), or choose by number (--channel)."
        )
    long_axes = [length for length in volume.shape if length > 1]
    if options.channel is None and volume.has_channels is None and len(long_axes) > _MAX_AXES:
        raise WrongContentError(
            f"{path}: expected a map of at most {_MAX_AXES} dimensions, got {volume.shape}. If the "
            "first axis contains channels, choose one: --channel."
        )


def _scheme(volume: Volume, case: OpenedCase, options: ReadOptions) -> LabelScheme | None:
    """Return the names of the channels; ``None`` for a single map, or if the channels have no names."""
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
    scheme = find_scheme(case.path)
    if scheme is not None or volume.shape[0] == 1:
        return scheme  # a single channel is a sigmoid, that is the foreground: a softmax has two or more
    in_header = {} if case.mask is None else read_label_names(ArrayRef.parse(case.mask.path).path)
    if sorted(in_header) == list(range(1, volume.shape[0])):
        return LabelScheme(tuple((in_header[i], (i,)) for i in sorted(in_header)), is_regions=False)
    if case.path.suffix.lower() != ".npz" or options.channel is not None:
        return None
    return _numbered_classes(volume, case.path)


def _numbered_classes(volume: Volume, path: Path) -> LabelScheme:
    """Return numbers instead of names for the classes of nnU-Net, as TotalSegmentator saves them.

    Only a softmax has a background channel. Anything else is rejected, because its first region would be
    taken for the background.
    """
    if volume.shape[0] > _MAX_NUMBERED:
        raise WrongContentError(
            f"{path}: expected at most {_MAX_NUMBERED} classes, the first axis, got {volume.shape}. "
            "Name them, if it has so many: --names."
        )
    samples = []
    for channel in range(volume.shape[0]):  # all channels at once may not fit into memory
        flat = np.asarray(volume.read(channel)).reshape(-1)
        samples.append(flat[:: max(1, flat.size // _SAMPLE)].copy())
    check_normalised(
        np.stack(samples),
        source=str(path),
        remedy="No dataset.json says what its channels are: if they are regions, pass one (--names), or "
        "choose a channel (--channel).",
    )
    return LabelScheme(tuple((f"class {i}", (i,)) for i in range(1, volume.shape[0])), is_regions=False)


# Masks and ground truth


@dataclass(frozen=True, eq=False)
class _Labels:
    """The mask or the ground truth of a whole case, from which each structure takes its labels."""

    values: Any
    volume: Volume
    role: str
    map_volume: Volume
    options: ReadOptions
    names: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, opened: Volume, role: str, map_volume: Volume, frame: Volume, options: ReadOptions
    ) -> _Labels:
        """Read labels on the grid of a frame: the map, or the ground truth if the map is brought there."""
        source = str(opened.path)
        names = opened.channel_names if opened.has_channels and opened.shape[0] > 1 else ()
        if opened.has_channels and opened.shape[0] != 1 and not names:
            question = " Was the folder of images given by mistake?" if opened.shape[0] in (3, 4) else ""
            raise WrongContentError(
                f"{source}: expected one image of labels, got {opened.shape[0]} channels. Save labels as "
                f"whole numbers.{question}"
            )
        grid, goal = opened.grid, frame.grid
        is_elsewhere = grid is not None and goal is not None and not is_same_grid(goal, grid)
        if grid is None or goal is None or not is_elsewhere:
            values = opened.read(0) if opened.has_channels and not names else opened.read()
            return cls(values, opened, role, map_volume, options, names)
        # Without being asked only if nothing but empty slices is absent, as from DICOM segmentations.
        is_cropped = (opened.is_cropped or frame.is_cropped) and goal.shares_pixels_with(grid)
        if options.resample is None and not is_cropped:
            remedy = (
                "--resample truth brings it to the map, --resample map brings the map to the ground truth"
            )
            check_same_grid(goal, grid, (str(frame.path), source), remedy)
        check_size(opened.path, opened.bytes)
        channels = range(opened.shape[0]) if opened.has_channels else [None]
        moved = [
            resample_in_space(np.asarray(opened.read(channel)), grid, goal, source=source)
            for channel in channels
        ]
        return cls(np.stack(moved) if names else moved[0], opened, role, map_volume, options, names)

    def shape(self, ndim: int) -> tuple[int, ...]:
        """Return the shape of a mask that is compared with a map of so many axes."""
        shape = tuple(self.values.shape)[1 if self.names else 0 :]
        while len(shape) > max(2, ndim) and shape[0] == 1:
            shape = shape[1:]
        return shape

    def can_be_resized(self, shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Return whether sizes may be adapted without geometry: whole pictures, or no geometry at all.

        If only one of two volumes has a geometry, the order of axes of the other is not known.
        """
        has_geometry = self.volume.grid is not None or self.map_volume.grid is not None
        is_swapped = shape == other[::-1]  # of the same lengths in the opposite order
        return len(shape) == len(other) and not is_swapped and (len(shape) == 2 or not has_geometry)

    def mask_of(self, structure: Structure, p: Any) -> tuple[Any, list[str]]:
        """Return the mask of a structure in the shape of its map, and notes on how it was read."""
        shape = tuple(p.shape)
        whole, note = self._whole_mask(structure)
        mask = _without_unit_axes(whole, ndim=len(shape))
        notes = [each for each in (note, self._check_axis_order(mask, p)) if each]
        if tuple(mask.shape) == shape:
            return mask, notes
        can_be_resized = self.can_be_resized(tuple(mask.shape), shape)
        if can_be_resized and self.options.resample is not None:
            corner = self.options.resample is Resample.TRUTH_OPENCV
            return resize_nearest(np.asarray(mask), shape, corner=corner), notes
        remedy = "Check that they belong together."
        if can_be_resized:
            remedy = (
                "If both show the whole image, bring one to the size of the other: --resample truth (masks "
                "and ground truth to the map, nearest pixel) or --resample map (the map to the ground "
                "truth, linear)."
            )
        elif shape == mask.shape[::-1]:
            remedy = "Their axes are in the opposite order: transpose one of the two."
        elif len(shape) == len(mask.shape):
            remedy = (
                "Only one of the two files says where its voxels lie, so neither can be resampled: save the "
                "other as NIfTI, with the geometry of the image."
            )
        raise GeometryError(
            f"{self.volume.path}: expected the shape of the map {self.map_volume.path}, {shape}, got "
            f"{tuple(mask.shape)}. {remedy}"
        )

    def _whole_mask(self, structure: Structure) -> tuple[Any, str]:
        """Return the mask of a structure, from labels, or from the segment of its name.

        Never from the segment of its number: the second segment of a mask need not be the second of a map.
        """
        source, options = str(self.volume.path), self.options
        if self.names:
            names = [name.casefold() for name in self.names]
            if names.count(structure.name.casefold()) != 1:
                raise WrongContentError(
                    f"{source}: expected a segment called {structure.name!r}, got {', '.join(self.names)}. "
                    "Use the same names in both: --names, --region."
                )
            segment = self.values[names.index(structure.name.casefold())]
            return mask_from_labels(segment, None, source), ""
        is_lossy = isinstance(self.volume, LossyVolume)
        if structure.values is not None:
            if is_lossy:
                raise NotBinaryError(
                    f"{source}: expected labels, got JPEG, which changes them. Save the labels as PNG."
                )
            if self.role == "truth" and options.truth_threshold is not None:
                raise WrongContentError(
                    f"{source}: expected binary ground truth for --truth-threshold, got labels of "
                    f"{structure.name!r}, which dataset.json names. Leave the option out."
                )
            return structure.mask(self.values, source), self._absent_labels()
        if self.role == "truth" and (options.truth_threshold is not None or not is_chunked(self.values)):
            return mask_from_truth(self.values, source, threshold=options.truth_threshold, is_lossy=is_lossy)
        try:
            return structure.mask(self.values, source), ""
        except NotBinaryError as error:
            raise NotBinaryError(
                f"{error} Delivered masks are never thresholded: if this one has soft edges, save it as 0 "
                "and 255."
            ) from None

    def _absent_labels(self) -> str:
        """Return a note if the file has other labels than those that were asked for."""
        asked = self.options.labels
        if asked is None or is_chunked(self.values):
            return ""
        found = sorted(set(np.unique(self.values).astype(int).tolist()) - {0})
        if not found or not set(found).isdisjoint(asked):
            return ""
        listed = ", ".join(map(str, found[:_MOST_LISTED])) + (", …" if len(found) > _MOST_LISTED else "")
        return f"{self.volume.path}: does not have label {' or '.join(map(str, asked))}; it has {listed}."

    def _check_axis_order(self, mask: Any, p: Any) -> str:
        """Reject a volume without geometry whose axes are (x, y, z) while the other one is (z, y, x).

        The shapes fit only in reverse; or both fit, and the masks overlap far better in reverse: a Dice of at
        least 0.4, and at least 0.25 more. If they overlap better in reverse, but less clearly, a note asks.
        """
        grids = (self.volume.grid, self.map_volume.grid)
        shape, other = tuple(p.shape), tuple(mask.shape)
        if (grids[0] is None) == (grids[1] is None) or len(shape) != 3 or other != shape[::-1]:
            return ""
        plain = self.volume.path if grids[0] is None else self.map_volume.path
        if shape == other:
            if math.prod(shape) > _MAX_COMPARED:
                return ""
            step = max(1, max(shape) // 128)
            part = (slice(None, None, step),) * 3
            foreground = np.asarray(mask)[part] != 0
            values = np.asarray(p)[part]
            ours = values >= self.options.threshold * _white(values)
            total = max(1, int(np.count_nonzero(foreground) + np.count_nonzero(ours)))
            dice, reverse = (2 * np.count_nonzero(ours & each) / total for each in (foreground, foreground.T))
            if reverse < max(0.4, dice + 0.25):
                question = (
                    f"{self.volume.path}: it fits the map better with its axes reversed (Dice {reverse:.2f} "
                    f"instead of {dice:.2f}). Is {plain}, which has no geometry, (x, y, z)? Then save it as "
                    "(z, y, x), that is array.T, or as NIfTI."
                )
                return question if reverse > dice + _MORE_IN_REVERSE else ""
            reason = f"it fits far better with its axes reversed (Dice {reverse:.2f} instead of {dice:.2f})"
        else:
            reason = "they agree only with the axes reversed"
        raise GeometryError(
            f"{self.volume.path}: compared with the map {self.map_volume.path}, shapes {other} and {shape}, "
            f"{reason}. {plain} has no geometry and seems to be (x, y, z), the order of nibabel's arrays. "
            "Save it as (z, y, x), that is array.T, or as NIfTI. Check all cases that were saved like this, "
            "also those that were scored: if map and mask hardly overlap in either order, it is not noticed."
        )
