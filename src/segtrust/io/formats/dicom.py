"""DICOM segmentations: probabilities or masks of segments, frame by frame.

Segments become channels, which need not add up to 1: there is no background among them. Frames are put where
they lie; frames that a segment does not have are empty. The volume reaches from the first to the last slice
that has a frame.

The frames are read with pydicom. highdicom also rejects files that lack attributes which pixels do not need
(as anonymised files do), and takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, GeometryError, WrongContentError
from segtrust.io.formats._common import Volume, check_complete, reading
from segtrust.io.grid import Grid, Planes, stack_planes

__all__ = ["open_dicom", "recognises_dicom"]

_CLASSES = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")
"""Segmentations of pixels, and label maps; surfaces have a class of their own."""
_SAME = 1e-4
"""Largest difference between directions or spacings that are the same."""


@dataclass(frozen=True)
class _Segmentation:
    """What the header says.

    Attributes
    ----------
    path
        The file.
    names
        Names of the channels; a label map is one channel.
    channels, slices
        Channel and slice of each frame.
    grid
        Grid of the volume.
    dtype
        Type of the array.
    scale
        Pixel value that stands for a probability of 1.
    """

    path: Path
    names: tuple[str, ...]
    channels: Any
    slices: Any
    grid: Grid
    dtype: Any
    scale: int

    def load(self, channel: int | None) -> Any:
        """Read the frames of all channels, or of one, and put them where they lie."""
        first, count = (0, len(self.names)) if channel is None else (channel, 1)
        wanted = np.flatnonzero((self.channels >= first) & (self.channels < first + count))
        out = np.zeros((count, *self.grid.shape), self.dtype)
        with reading(self.path, "a DICOM segmentation"):
            for number, pixels in _frames(self.path, wanted):
                out[self.channels[number] - first, self.slices[number]] = pixels
        if self.scale != 1:
            out /= self.scale
        return out if channel is None else out[0]


def recognises_dicom(path: Path, head: bytes) -> bool:
    """Recognise any DICOM file by its mark; what it holds is checked when it is opened."""
    return head[128:132] == b"DICM"


def open_dicom(path: Path, key: str | None = None) -> Volume:
    """Open a segmentation: (segments, z, y, x), or (z, y, x) for a label map.

    Fractions become float32 in [0, 1], masks bool, and labels stay the integers they are.
    """
    check_size(path, path.stat().st_size)
    with reading(path, "a DICOM segmentation"):
        dataset = require("pydicom", extra="io").dcmread(path, stop_before_pixels=True)
        _check_kind(path, dataset)
        segmentation = _read_header(path, dataset)
        is_labels = dataset.SegmentationType == "LABELMAP"
    grid, names, dtype = segmentation.grid, segmentation.names, segmentation.dtype
    if is_labels:
        return Volume(path, grid.shape, dtype, lambda _: segmentation.load(0), False, grid, is_cropped=True)
    shape = (len(names), *grid.shape)
    return Volume(path, shape, dtype, segmentation.load, True, grid, names, is_cropped=True)


def _check_kind(path: Path, dataset: Any) -> None:
    """Check that the file is a segmentation that says how likely a pixel is."""
    received = f"the modality {dataset.Modality!r}" if dataset.Modality != "SEG" else None
    if received is None and dataset.SOPClassUID not in _CLASSES:
        received = dataset.SOPClassUID.name
    if received is None and dataset.SegmentationType not in ("FRACTIONAL", "BINARY", "LABELMAP"):
        received = f"the type {dataset.SegmentationType!r}"
    if received:
        raise WrongContentError(
            f"{path}: expected a DICOM segmentation (SEG) of pixels, got {received}. Pass the file that the "
            "model wrote, not the image."
        )
    if dataset.SegmentationType == "FRACTIONAL" and dataset.SegmentationFractionalType != "PROBABILITY":
        raise WrongContentError(
            f"{path}: expected fractions that are a PROBABILITY, got {dataset.SegmentationFractionalType}. "
            "How much of a pixel is occupied is no probability: save the model's own."
        )


def _read_header(path: Path, dataset: Any) -> _Segmentation:
    """Return what the header says about segments, frames and their places."""
    frames = dataset.PerFrameFunctionalGroupsSequence
    if len(frames) != int(dataset.NumberOfFrames):
        raise DamagedFileError(
            f"{path}: expected {dataset.NumberOfFrames} frames, as it says, got places of {len(frames)}."
        )
    shared = (dataset.get("SharedFunctionalGroupsSequence") or [{}])[0]

    def groups(name: str) -> list[Any]:
        """Return a functional group for each frame: its own, the shared one, or ``None``."""
        return [
            next((group[0] for of in (frame, shared) if (group := of.get(name))), None) for frame in frames
        ]

    is_labels = dataset.SegmentationType == "LABELMAP"
    names: tuple[str, ...] = ("labels",)
    channels = np.zeros(len(frames), np.int64)
    if not is_labels:
        segments = {int(item.SegmentNumber): str(item.SegmentLabel) for item in dataset.SegmentSequence}
        numbers = [int(item.ReferencedSegmentNumber) for item in groups("SegmentIdentificationSequence")]
        if unknown := set(numbers) - set(segments):
            raise DamagedFileError(
                f"{path}: expected frames of the segments {sorted(segments)}, got some of {sorted(unknown)}."
            )
        names, order = tuple(segments.values()), list(segments)
        channels = np.array([order.index(number) for number in numbers])
    planes = _read_planes(
        path,
        groups("PlanePositionSequence"),
        groups("PlaneOrientationSequence"),
        groups("PixelMeasuresSequence"),
    )
    slices, grid = stack_planes(path, planes, (int(dataset.Rows), int(dataset.Columns)))
    if len(set(zip(channels, slices, strict=True))) < len(frames):
        raise WrongContentError(
            f"{path}: expected one frame for each segment and slice, got several, as of several times. Save "
            "each as a segmentation of its own."
        )
    scale = int(dataset.MaximumFractionalValue) if dataset.SegmentationType == "FRACTIONAL" else 1
    if scale < 1:
        raise DamagedFileError(f"{path}: expected a MaximumFractionalValue of at least 1, got {scale}.")
    types = {"FRACTIONAL": "f4", "BINARY": "?", "LABELMAP": f"u{dataset.BitsAllocated // 8}"}
    dtype = np.dtype(types[dataset.SegmentationType])
    return _Segmentation(path, names, channels, slices, grid, dtype, scale)


def _read_planes(path: Path, positions: list[Any], orientations: list[Any], measures: list[Any]) -> Planes:
    """Return where the frames lie, which must have one direction and one spacing."""
    if None in positions or None in orientations or None in measures:
        raise WrongContentError(
            f"{path}: expected frames with a place in the patient, got some without, as of slides or "
            "photographs. Save the probabilities as an image."
        )
    directions = np.array([item.ImageOrientationPatient for item in orientations], np.float64)
    spacings = np.array([item.PixelSpacing for item in measures], np.float64)
    for name, rows in (("direction", directions), ("spacing", spacings)):
        difference = np.abs(rows - rows[0]).max(axis=1)
        if difference.max() > _SAME:
            other = rows[np.argmax(difference)]
            raise GeometryError(
                f"{path}: expected frames of one {name}, got {rows[0].tolist()} and {other.tolist()}. Save "
                "those of each as a segmentation of their own."
            )
    step, thickness = (
        max(float(measures[0].get(name) or 0.0), 0.0) or None
        for name in ("SpacingBetweenSlices", "SliceThickness")
    )
    return Planes(
        positions=np.array([item.ImagePositionPatient for item in positions], np.float64),
        orientation=directions[0],
        spacing=spacings[0],
        step=step,
        thickness=thickness,
    )


def _frames(path: Path, wanted: Any) -> Iterator[tuple[int, Any]]:
    """Yield the numbers of frames with their pixels."""
    dataset = require("pydicom", extra="io").dcmread(path)
    size = int(dataset.Rows) * int(dataset.Columns)
    if not dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        count = -(-int(dataset.NumberOfFrames) * size * int(dataset.BitsAllocated) // 8)
        received = len(dataset.PixelData)
        is_padded = count % 2 == 1 and received == count + 1
        check_complete(path, count, received - is_padded, exactly=True)
        if dataset.BitsAllocated == 1:  # frames need not begin at a whole byte; pydicom loses some of these
            packed = np.frombuffer(dataset.PixelData, np.uint8)
            for number in map(int, wanted):
                begin, end = number * size, (number + 1) * size
                bits = np.unpackbits(packed[begin // 8 : -(-end // 8)], bitorder="little")
                yield number, bits[begin % 8 :][:size].reshape(dataset.Rows, dataset.Columns)
            return
    if len(wanted):
        pixels = require("pydicom.pixels", extra="io").iter_pixels(
            dataset, indices=list(map(int, wanted)), raw=True
        )
        yield from zip(wanted, pixels, strict=True)
