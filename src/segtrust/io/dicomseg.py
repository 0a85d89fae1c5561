"""Segmentations of DICOM: probabilities or masks of segments, frame by frame.

Segments become channels, which need not add up to 1: there is no background among them. Frames are put where
they lie; those that a segment does not have are empty. The volume reaches from the first to the last slice of
which there is a frame.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size, max_bytes
from segtrust._optional import require
from segtrust.errors import DamagedFileError, GeometryError, WrongContentError
from segtrust.io.capped import CappedFile
from segtrust.io.grids import Grid
from segtrust.io.planes import Planes, stacked
from segtrust.io.stores import reading
from segtrust.io.volumes import Volume

__all__ = ["open_dicomseg", "recognises_dicomseg"]

_PREAMBLE = 128
_DEFLATED = "1.2.840.10008.1.2.1.99"
_CLASSES = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")
"""Segmentations of pixels, and maps of labels; surfaces have a class of their own."""
_PIECE = 1 << 20
_SAME = 1e-4


@dataclass(frozen=True)
class _Segmentation:
    """What the header says.

    Attributes
    ----------
    path
        The file.
    names
        Of the channels; a map of labels is one channel.
    channels, slices
        Channel and slice of each frame.
    grid
        Of the volume.
    dtype
        Of the array that is given.
    scale
        Value of the pixels that is a probability of 1.
    """

    path: Path
    names: tuple[str, ...]
    channels: Any
    slices: Any
    grid: Grid
    dtype: Any
    scale: int

    def load(self, channel: int | None) -> Any:
        """Put the frames of all channels, or of one, where they lie."""
        first, count = (0, len(self.names)) if channel is None else (channel, 1)
        wanted = np.flatnonzero((self.channels >= first) & (self.channels < first + count))
        out = np.zeros((count, *self.grid.shape), self.dtype)
        with reading(self.path, "a DICOM segmentation"):
            for number, pixels in _decoded(_read(self.path), wanted):
                out[self.channels[number] - first, self.slices[number]] = pixels
        if self.scale != 1:
            out /= self.scale
        return out if channel is None else out[0]


def recognises_dicomseg(path: Path, head: bytes) -> bool:
    """Tell any DICOM file, by its mark after the preamble; what it holds is looked at when it is opened."""
    return head[_PREAMBLE : _PREAMBLE + 4] == b"DICM"


def open_dicomseg(path: Path, key: str | None = None) -> Volume:
    """Open a segmentation: (segments, z, y, x), or (z, y, x) of a map of labels.

    Fractions are given as float32 in [0, 1], masks as bool, labels as the integers they are.
    """
    with reading(path, "a DICOM segmentation"):
        dataset = _read(path, stop_before_pixels=True)
        _check_kind(path, dataset)
        found = _segmentation(path, dataset)
    if dataset.SegmentationType == "LABELMAP":
        volume = Volume(path, found.grid.shape, found.dtype, lambda _: found.load(0), False, found.grid)
        return replace(volume, is_cropped=True)
    shape = (len(found.names), *found.grid.shape)
    return Volume(path, shape, found.dtype, found.load, True, found.grid, found.names, is_cropped=True)


def _read(path: Path, **options: Any) -> Any:
    """Read a file into memory, or its header only, where it is not too large."""
    pydicom = require("pydicom", extra="io")
    check_size(path, path.stat().st_size)
    with CappedFile(path) as file:
        file.seek(_PREAMBLE + 4)
        meta = pydicom.filereader.read_dataset(file, False, True, stop_when=lambda tag, *_: tag.group != 2)
        if meta.get("TransferSyntaxUID") == _DEFLATED:
            _check_inflated(path, _PREAMBLE + 16 + meta.FileMetaInformationGroupLength)
        file.seek(0)
        return pydicom.dcmread(file, **options)


def _check_inflated(path: Path, begin: int) -> None:
    """Refuse a compressed file that would fill the memory, which the library would let it."""
    unpacker, count = zlib.decompressobj(-zlib.MAX_WBITS), 0
    with path.open("rb") as file:
        file.seek(begin)
        while count <= max_bytes() and (piece := unpacker.unconsumed_tail or file.read(_PIECE)):
            count += len(unpacker.decompress(piece, _PIECE))
    check_size(path, count, is_whole=False)


def _check_kind(path: Path, dataset: Any) -> None:
    """Refuse what is no segmentation, or none that says how likely a pixel is."""
    came = f"the modality {dataset.Modality!r}" if dataset.Modality != "SEG" else None
    if came is None and dataset.SOPClassUID not in _CLASSES:
        came = dataset.SOPClassUID.name
    if came is None and dataset.SegmentationType not in ("FRACTIONAL", "BINARY", "LABELMAP"):
        came = f"the type {dataset.SegmentationType!r}"
    if came:
        raise WrongContentError(
            f"{path}: expected a DICOM segmentation (SEG) of pixels, got {came}. Give the file that the "
            "model wrote, not the image."
        )
    if dataset.SegmentationType == "FRACTIONAL" and dataset.SegmentationFractionalType != "PROBABILITY":
        raise WrongContentError(
            f"{path}: expected fractions that are a PROBABILITY, got {dataset.SegmentationFractionalType}. "
            "How much of a pixel is occupied is no probability: save the model's own."
        )


def _segmentation(path: Path, dataset: Any) -> _Segmentation:
    """Read the header."""
    frames = dataset.PerFrameFunctionalGroupsSequence
    if len(frames) != int(dataset.NumberOfFrames):
        raise DamagedFileError(
            f"{path}: expected {dataset.NumberOfFrames} frames, as it says, got places of {len(frames)}."
        )
    shared = (dataset.get("SharedFunctionalGroupsSequence") or [{}])[0]
    names, channels = _channels(path, dataset, [(frame, shared) for frame in frames])
    planes = _planes(path, [(frame, shared) for frame in frames])
    slices, grid = stacked(path, planes, (int(dataset.Rows), int(dataset.Columns)))
    if len(set(zip(channels, slices, strict=True))) < len(frames):
        raise WrongContentError(
            f"{path}: expected one frame for each segment and slice, got several, as of several times. Save "
            "each as a segmentation of its own."
        )
    scale = _scale(path, dataset) if dataset.SegmentationType == "FRACTIONAL" else 1
    return _Segmentation(path, names, channels, slices, grid, _dtype(dataset), scale)


def _dtype(dataset: Any) -> Any:
    given = {"FRACTIONAL": np.dtype(np.float32), "BINARY": np.dtype(bool)}
    return given.get(dataset.SegmentationType) or np.dtype(f"u{dataset.BitsAllocated // 8}")


def _scale(path: Path, dataset: Any) -> int:
    scale = int(dataset.MaximumFractionalValue)
    if scale < 1:
        raise DamagedFileError(f"{path}: expected a MaximumFractionalValue of at least 1, got {scale}.")
    return scale


def _group(name: str, groups: Sequence[Any]) -> Any:
    """Give what is said of a frame by itself, else of all frames; ``None`` where neither is."""
    return next((found[0] for each in groups if (found := each.get(name))), None)


def _channels(path: Path, dataset: Any, frames: Sequence[Any]) -> tuple[tuple[str, ...], Any]:
    """Give the names of the segments, and the place among them of the segment of each frame."""
    if dataset.SegmentationType == "LABELMAP":
        return ("labels",), np.zeros(len(frames), np.int64)
    segments = {int(each.SegmentNumber): str(each.SegmentLabel) for each in dataset.SegmentSequence}
    places = {number: place for place, number in enumerate(segments)}
    named = [int(_group("SegmentIdentificationSequence", each).ReferencedSegmentNumber) for each in frames]
    if unknown := set(named) - set(segments):
        raise DamagedFileError(
            f"{path}: expected frames of the segments {sorted(segments)}, got some of {sorted(unknown)}."
        )
    return tuple(segments.values()), np.array([places[number] for number in named])


def _planes(path: Path, frames: Sequence[Any]) -> Planes:
    """Gather where the frames lie."""
    positions = [_group("PlanePositionSequence", each) for each in frames]
    orientations = [_group("PlaneOrientationSequence", each) for each in frames]
    measures = [_group("PixelMeasuresSequence", each) for each in frames]
    if None in positions or None in orientations or None in measures:
        raise WrongContentError(
            f"{path}: expected frames with a place in the patient, got some without, as of slides or "
            "photographs. Save the probabilities as an image."
        )
    directions = np.array([each.ImageOrientationPatient for each in orientations], np.float64)
    spacings = np.array([each.PixelSpacing for each in measures], np.float64)
    _check_equal(path, "direction", directions)
    _check_equal(path, "spacing", spacings)
    return Planes(
        positions=np.array([each.ImagePositionPatient for each in positions], np.float64),
        orientation=directions[0],
        spacing=spacings[0],
        step=_length(measures[0], "SpacingBetweenSlices"),
        thickness=_length(measures[0], "SliceThickness"),
    )


def _length(measures: Any, name: str) -> float | None:
    """Give a length above 0, or nothing."""
    length = float(measures.get(name) or 0.0)
    return length if length > 0.0 else None


def _check_equal(path: Path, name: str, rows: Any) -> None:
    apart = np.abs(rows - rows[0]).max(axis=1)
    if apart.max() > _SAME:
        other = rows[np.argmax(apart)]
        raise GeometryError(
            f"{path}: expected frames of one {name}, got {rows[0].tolist()} and {other.tolist()}. Save those "
            "of each as a segmentation of their own."
        )


def _decoded(dataset: Any, wanted: Any) -> Iterator[tuple[int, Any]]:
    """Give the numbers of frames and their pixels."""
    if dataset.BitsAllocated == 1 and not dataset.file_meta.TransferSyntaxUID.is_compressed:
        return ((number, _bits(dataset, int(number))) for number in wanted)
    pixels = require("pydicom.pixels", extra="io").iter_pixels(
        dataset, indices=list(map(int, wanted)), raw=True
    )
    return zip(wanted, pixels, strict=True) if len(wanted) else iter(())


def _bits(dataset: Any, number: int) -> Any:
    """Unpack a frame of bits, which need not begin at a whole byte; the library's own loses some of these."""
    count = dataset.Rows * dataset.Columns
    begin, end = number * count, (number + 1) * count
    packed = np.frombuffer(dataset.PixelData, np.uint8)[begin // 8 : -(-end // 8)]
    bits = np.unpackbits(packed, bitorder="little")[begin % 8 :][:count]
    return bits.reshape(dataset.Rows, dataset.Columns)
