"""MetaImage (``.mha``, ``.mhd``) and NRRD (``.nrrd``, ``.nhdr``), read by SimpleITK."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.checks import check_grid
from segtrust.io.grids import Grid
from segtrust.io.volumes import Volume
from segtrust.optional import require

__all__ = ["data_files_of", "open_itk", "recognises_itk"]

_LONGEST_HEADER = 1 << 20
_STDERR = 2
_META = re.compile(rb"^\s*(ObjectType|NDims|Comment)\s*=", re.MULTILINE)
_PIXEL = re.compile(r"(?:vector of )?(\d+)-bit (unsigned integer|signed integer|float)")
_LETTERS = {"unsigned integer": "u", "signed integer": "i", "float": "f"}
_REPORTS = (
    re.compile(r"^\[nrrd\] \w+: +(.+)$", re.MULTILINE),
    re.compile(r"^(?:\w+: ){0,2}(.+)$", re.MULTILINE),
)


@dataclass(frozen=True)
class _Format:
    """How a format names its data files.

    Attributes
    ----------
    reader
        ITK's.
    data_file
        Finds the field.
    end
        After it no field is read.
    """

    reader: str
    data_file: re.Pattern[bytes]
    end: re.Pattern[bytes]


_META_IMAGE = _Format(
    "MetaImageIO",
    re.compile(rb"ElementDataFile\s*[=:][ \t]*([^\r\n]*)", re.IGNORECASE),
    re.compile(rb"ElementDataFile\s*[=:][^\n]*\n", re.IGNORECASE),
)
_NRRD = _Format(
    "NrrdImageIO",
    re.compile(rb"[\r\n][ \t]*data ?file[ \t]*:(?!=)[ \t]*([^\r\n]*)", re.IGNORECASE),
    re.compile(rb"\r?\n\r?\n"),
)


def recognises_itk(path: Path, head: bytes) -> bool:
    """Tell by the first bytes; by the name where a header begins in no usual way."""
    if head.startswith(b"NRRD0") or (_META.match(head) and b"NDims" in head):
        return True
    return path.suffix.lower() in (".mha", ".mhd", ".nrrd", ".nhdr")


def open_itk(path: Path, key: str | None = None) -> Volume:
    """Open an image; the components of its pixels, or the steps of its fourth axis, are channels."""
    found = _format(path)
    _check_data_files(path, found)
    with _told(path):
        header = _reader(path, found)
        header.ReadImageInformation()
    components, lengths = header.GetNumberOfComponents(), header.GetSize()[::-1]
    if not 2 <= len(lengths) <= 4 or (components > 1 and len(lengths) > 3):
        raise WrongContentError(
            f"{path}: expected 2 or 3 axes, and one of channels, got lengths {lengths} with {components} "
            "numbers a pixel. Save a file for each time."
        )
    grid = check_grid(path, _grid(header))

    def load(channel: int | None) -> Any:
        with _told(path):
            image = _reader(path, found).Execute()
            values = require("SimpleITK", extra="io").GetArrayViewFromImage(image)
            values = np.moveaxis(values, -1, 0) if components > 1 else values
            return np.array(values if channel is None else values[channel], order="C")

    shape = (components, *lengths) if components > 1 else lengths
    return Volume(path, shape, _dtype(path, header), load, len(shape) > len(grid.shape), grid)


def _format(path: Path) -> _Format:
    with path.open("rb") as file:
        is_nrrd = file.read(4) == b"NRRD" or path.suffix.lower() in (".nrrd", ".nhdr")
    return _NRRD if is_nrrd else _META_IMAGE


def data_files_of(path: Path) -> list[Path]:
    """Give the files in which a header says that its pixels are; none for pixels in the file itself."""
    if path.suffix.lower() not in (".mhd", ".nhdr") or not path.is_file():
        return []
    names = [name.decode("utf-8", "replace").strip() for name in _data_names(path, _format(path))]
    return [path.parent / name for name in names if name and (path.parent / name).is_file()]


def _check_data_files(path: Path, found: _Format) -> None:
    """Refuse a header that leads to files outside of its folder, before any of them is opened."""
    for name in _data_names(path, found):
        _check_inside(path, name.decode("utf-8", "replace"))


def _data_names(path: Path, found: _Format) -> list[bytes]:
    """Give what a header says of its data files, line by line where they are listed."""
    with path.open("rb") as file:
        text = file.read(_LONGEST_HEADER)
    fields = [(match[1].strip(), match.end()) for match in found.data_file.finditer(text)]
    lists = [end for name, end in fields if name.upper().startswith(b"LIST")]
    if len(text) == _LONGEST_HEADER and (lists or not found.end.search(text)):
        raise DamagedFileError(f"{path}: expected a header of less than {len(text)} bytes, got a longer one.")
    listed = [line for end in lists for line in text[end:].splitlines()]
    return [*(name for name, _ in fields), *listed]


def _check_inside(path: Path, name: str) -> None:
    plain = name.strip().replace("\\", "/")
    if plain.startswith(("/", "~")) or plain[1:2] == ":" or ".." in plain.split("/"):
        raise UnsafeFileError(
            f"{path}: expected pixels in its own folder, got {plain!r}, which leads out of it. Move them "
            "beside the header, and name them there."
        )


def _reader(path: Path, found: _Format) -> Any:
    reader = require("SimpleITK", extra="io").ImageFileReader()
    reader.SetImageIO(found.reader)
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
    return Grid.of_itk(header.GetSize()[:used][::-1], spacing=spacing, origin=origin, direction=direction)


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
