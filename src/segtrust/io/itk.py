"""MetaImage (``.mha``, ``.mhd``) and NRRD (``.nrrd``, ``.nhdr``), read by SimpleITK."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, ReadError, WrongContentError
from segtrust.io.checks import check_grid
from segtrust.io.grids import Grid
from segtrust.io.itk_headers import is_nrrd, read_itk_header
from segtrust.io.volumes import Volume

__all__ = ["data_files_of", "open_itk", "recognises_itk"]

_META_IMAGE, _NRRD = "MetaImageIO", "NrrdImageIO"
_STDERR = 2
_META = re.compile(rb"^\s*(ObjectType|NDims|Comment)\s*=", re.MULTILINE)
_PIXEL = re.compile(r"(?:vector of )?(\d+)-bit (unsigned integer|signed integer|float)")
_LETTERS = {"unsigned integer": "u", "signed integer": "i", "float": "f"}
_REPORTS = (
    re.compile(r"^\[nrrd\] \w+: +(.+)$", re.MULTILINE),
    re.compile(r"^(?:\w+: ){0,2}(.+)$", re.MULTILINE),
)


def recognises_itk(path: Path, head: bytes) -> bool:
    """Tell by the first bytes; by the name where a header begins in no usual way."""
    if head.startswith(b"NRRD0") or (_META.match(head) and b"NDims" in head):
        return True
    return path.suffix.lower() in (".mha", ".mhd", ".nrrd", ".nhdr")


def open_itk(path: Path, key: str | None = None) -> Volume:
    """Open an image; the components of its pixels, or the steps of its fourth axis, are channels."""
    looked_at = read_itk_header(path)
    looked_at.check_files()
    with _told(path):
        header = _reader(path)
        header.ReadImageInformation()
    components, lengths = header.GetNumberOfComponents(), header.GetSize()[::-1]
    if not 2 <= len(lengths) <= 4 or (components > 1 and len(lengths) > 3):
        raise WrongContentError(
            f"{path}: expected 2 or 3 axes, and one of channels, got lengths {lengths} with {components} "
            "numbers a pixel. Save a file for each time."
        )
    if components * math.prod(lengths) > looked_at.numbers:
        raise DamagedFileError(
            f"{path}: expected {looked_at.numbers} numbers by its own header, got {components} × {lengths}."
        )
    grid = check_grid(path, _grid(header))
    shape, dtype = (components, *lengths) if components > 1 else lengths, _dtype(path, header)

    def load(channel: int | None) -> Any:
        check_size(path, math.prod(shape) * dtype.itemsize)  # of which a channel is a part
        looked_at.check_complete(dtype.itemsize)
        with _told(path):
            image = _reader(path).Execute()
            values = require("SimpleITK", extra="io").GetArrayViewFromImage(image)
            values = np.moveaxis(values, -1, 0) if components > 1 else values
            return np.array(values if channel is None else values[channel], order="C")

    return Volume(path, shape, dtype, load, len(shape) > len(grid.shape), grid)


def data_files_of(path: Path) -> list[Path]:
    """Give the files in which a header says that its pixels are; none for pixels in the file itself."""
    if path.suffix.lower() not in (".mhd", ".nhdr") or not path.is_file():
        return []
    with suppress(ReadError):  # which is told when it is read
        return read_itk_header(path).files
    return []


def _reader(path: Path) -> Any:
    reader = require("SimpleITK", extra="io").ImageFileReader()
    reader.SetImageIO(_NRRD if is_nrrd(path) else _META_IMAGE)
    reader.SetFileName(str(path))
    return reader


def _dtype(path: Path, header: Any) -> Any:
    name = require("SimpleITK", extra="io").GetPixelIDValueAsString(header.GetPixelID())
    found = _PIXEL.fullmatch(name)
    if found is None:
        raise WrongContentError(f"{path}: expected real numbers, got {name}. Save one file for each part.")
    return np.dtype(f"{_LETTERS[found[2]]}{int(found[1]) // 8}")


def _grid(header: Any) -> Grid:
    """Take the axes x, y and z; those that an image lacks are made up."""
    known = header.GetDimension()
    used = min(known, 3)
    spacing, origin, direction = np.ones(3), np.zeros(3), np.eye(3)
    spacing[:used] = header.GetSpacing()[:used]
    origin[:used] = header.GetOrigin()[:used]
    direction[:used, :used] = np.reshape(header.GetDirection(), (known, known))[:used, :used]
    return Grid.of_itk(
        header.GetSize()[:used][::-1],
        spacing=spacing,
        origin=origin,
        direction=direction,
        is_oriented=used == 3 and _tells_space(header),
    )


def _tells_space(header: Any) -> bool:
    """Tell whether directions are those of a body; a NRRD file may have axes of nothing in particular."""
    if header.GetImageIO() != _NRRD:
        return True
    return header.HasMetaDataKey("NRRD_space") and "superior" in header.GetMetaData("NRRD_space")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what ITK raises into one short sentence, and what it writes on the terminal into its reason."""
    with TemporaryFile() as written:
        try:
            with _stderr_into(written.fileno()):
                yield
        except RuntimeError as error:
            written.seek(0)
            reason = _reason(str(error), written.read(4096).decode("utf-8", "replace"))
            raise DamagedFileError(
                f"{path}: expected an image in MetaImage or NRRD format, got one that ITK cannot read "
                f"({reason}). It may be truncated, or its data file missing: copy it again."
            ) from None


@contextmanager
def _stderr_into(file: int) -> Iterator[None]:
    """Send to a file what a library in C++ writes on the terminal; where there is none, nothing is done."""
    kept = None
    with suppress(OSError):
        kept = os.dup(_STDERR)
    try:
        if kept is not None:
            os.dup2(file, _STDERR)
        yield
    finally:
        if kept is not None:
            os.dup2(kept, _STDERR)
            os.close(kept)


def _reason(raised: str, written: str) -> str:
    """Find the sentence that says what is wrong: Teem's last, or the first that was written."""
    reports = _REPORTS[0].findall(raised) or _REPORTS[1].findall(written)[:1] or ["no reason given"]
    return str(reports[-1]).strip().rstrip(".")
