"""MetaImage (``.mha``, ``.mhd``) and NRRD (``.nrrd``, ``.nhdr``), read by SimpleITK.

ITK returns whatever was in memory for pixels that it cannot decompress or whose file is missing, and reads
data files wherever a header says. So the names and the sizes of the data are checked here before ITK reads.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, ReadError, UnsafeFileError, WrongContentError
from segtrust.io.formats._common import Volume, check_complete, check_grid, is_beside
from segtrust.io.formats._deflate import GZIP, ZLIB, Stream, is_gzip
from segtrust.io.grid import Grid

__all__ = ["data_files_of", "open_itk", "recognises_itk"]

_META_IMAGE, _NRRD = "MetaImageIO", "NrrdImageIO"
_LONGEST_HEADER = 1 << 20
_MOST_FILES, _MOST_AXES = 100_000, 8
_LONGEST_LINE, _LONGEST_VALUE, _LONGEST_WORD = 700, 490, 70
"""Characters of a NRRD line, of a MetaImage value and of a pattern of names: ITK's buffers end soon after."""
_META = re.compile(rb"^\s*(ObjectType|NDims|Comment)\s*=", re.MULTILINE)
_FIELD = re.compile(r"[ \t]*([A-Za-z][\w ]*?)[ \t]*[=:](?!=)(.*)")
_NOTE = re.compile(r"#|content:|(?:(?!: ).)*:=")
"""Lines of NRRD that may say anything: remarks, and notes under any name."""
_COUNT = re.compile(r"[1-9]\d{0,17}")
_ONCE = ("datafile", "elementdatafile", "dimsize", "sizes", "ndims", "dimension", "encoding")
_OWN_FILE = ("LOCAL", "Local", "local")
_PER_AXIS = ("elementspacing", "elementsize", "offset", "position", "origin", "centerofrotation")
_MATRICES = ("transformmatrix", "rotation", "orientation")
_PATTERN = re.compile(r"([^%\s]*%0?\d?d[^%\s]*)((?: +\d{1,9}){3,4})")
"""Names of numbered data files: ``a%03d.raw 1 9 1``, with the first, the last and the step."""
_ENCODINGS = {
    **{"raw": "raw", "txt": "text", "text": "text", "ascii": "text", "hex": "hex"},
    **{"gz": "deflate", "gzip": "deflate"},
}
_PIXEL = re.compile(r"(?:vector of )?(\d+)-bit (unsigned integer|signed integer|float)")
_LETTERS = {"unsigned integer": "u", "signed integer": "i", "float": "f"}
_REPORTS = (
    re.compile(r"^\[nrrd\] \w+: +(.+)$", re.MULTILINE),
    re.compile(r"^(?:\w+: ){0,2}(.+)$", re.MULTILINE),
)


def recognises_itk(path: Path, head: bytes) -> bool:
    """Recognise a file by its first bytes, or by its name if a header begins in an unusual way."""
    if head.startswith(b"NRRD0") or (_META.match(head) and b"NDims" in head):
        return True
    return path.suffix.lower() in (".mha", ".mhd", ".nrrd", ".nhdr")


def open_itk(path: Path, key: str | None = None) -> Volume:
    """Open an image; the components of its pixels, or the steps of its fourth axis, are channels."""
    header = _read_header(path)
    with _named_errors(path):
        reader = _reader(path, header)
        reader.ReadImageInformation()
    components, lengths = reader.GetNumberOfComponents(), reader.GetSize()[::-1]
    if not 2 <= len(lengths) <= 4 or (components > 1 and len(lengths) > 3):
        raise WrongContentError(
            f"{path}: expected 2 or 3 axes, and one of channels, got lengths {lengths} with {components} "
            "numbers per pixel. Save one file per time."
        )
    if components * math.prod(lengths) != header.numbers:
        raise DamagedFileError(
            f"{path}: expected {header.numbers} numbers by its own header, got {components} × {lengths}."
        )
    name = require("SimpleITK", extra="io").GetPixelIDValueAsString(reader.GetPixelID())
    pixel = _PIXEL.fullmatch(name)
    if pixel is None:
        raise WrongContentError(f"{path}: expected real numbers, got {name}. Save one file for each part.")
    dtype = np.dtype(f"{_LETTERS[pixel[2]]}{int(pixel[1]) // 8}")
    grid = check_grid(path, _grid(reader))
    shape = (components, *lengths) if components > 1 else lengths

    def load(channel: int | None) -> Any:
        check_size(path, math.prod(shape) * dtype.itemsize)  # ITK reads all channels
        header.check_data(path, dtype.itemsize)
        with _named_errors(path):
            image = _reader(path, header).Execute()
            values = require("SimpleITK", extra="io").GetArrayViewFromImage(image)
            values = np.moveaxis(values, -1, 0) if components > 1 else values
            return np.array(values if channel is None else values[channel], order="C")

    return Volume(path, shape, dtype, load, len(shape) > len(grid.shape), grid)


def data_files_of(path: Path) -> list[Path]:
    """Return the files in which a header says that its pixels are; none for pixels in the file itself."""
    if path.suffix.lower() not in (".mhd", ".nhdr") or not path.is_file():
        return []
    with suppress(ReadError):  # which is reported when the image is read
        return [file for file in _read_header(path, check_files=False).files if file.is_file()]
    return []


# Where the pixels are


@dataclass(frozen=True)
class _Header:
    """What a header says about its data.

    Attributes
    ----------
    is_nrrd
        Whether the format is NRRD.
    numbers
        Number of values: all pixels, with all their components.
    files
        Data files; none if the pixels follow the header.
    begin
        Byte at which pixels that follow the header begin.
    packing
        ``"raw"``, ``"deflate"``, ``"text"`` or ``"hex"``.
    packed
        Length of the compressed stream, if the header says it.
    skips
        Whether lines or bytes before the pixels are to be skipped.
    """

    is_nrrd: bool
    numbers: int
    files: tuple[Path, ...]
    begin: int
    packing: str
    packed: int | None
    skips: bool

    def check_data(self, path: Path, itemsize: int) -> None:
        """Check that the files hold the pixels that the header announces, no fewer and no more."""
        files = self.files or (path,)
        begin = 0 if self.files else self.begin
        count = self.numbers * itemsize
        size = sum(file.stat().st_size for file in files) - begin
        if self.packing == "raw":
            check_complete(path, count, size, exactly=not self.skips)
        elif self.packing == "text":
            words = sum(len(file.read_bytes()[begin:].split()) for file in files)
            check_complete(path, self.numbers, words)
        elif self.packing == "deflate" and not self.skips:
            for file in files:
                _check_stream(file, begin, self.packed, count if len(files) == 1 else None)


def _check_stream(file: Path, begin: int, packed: int | None, count: int | None) -> None:
    """Check that a stream can be decompressed, by its own checksum, to this many bytes."""
    with file.open("rb") as opened:
        opened.seek(begin)
        is_zipped = is_gzip(opened.read(2))
        if packed is None and not is_zipped:  # NRRD's library would take it for pixels
            raise _rejected(file, f"pixels in {file.name} that are not gzip")
        opened.seek(begin)
        stream = Stream(opened, file, packed=packed, wbits=GZIP if is_zipped else ZLIB)
        while (count is None or stream.count <= count) and stream.read(1 << 20):
            pass
    if count is not None and stream.count != count:
        received = "more" if stream.count > count else str(stream.count)
        raise DamagedFileError(
            f"{file}: expected {count} bytes after decompression, got {received}. The file is corrupt: copy "
            "it again."
        )


def _rejected(path: Path, received: str) -> DamagedFileError:
    return DamagedFileError(
        f"{path}: expected an image in MetaImage or NRRD format, got {received}. It may be truncated: copy "
        "it again."
    )


def _read_header(path: Path, *, check_files: bool = True) -> _Header:
    """Read where a header says that its pixels are, how many, and how they are stored."""
    with path.open("rb") as file:
        text = file.read(_LONGEST_HEADER)
    is_nrrd = text.startswith(b"NRRD") or path.suffix.lower() in (".nrrd", ".nhdr")
    fields, begin = _read_fields(path, text, is_nrrd=is_nrrd)
    sizes = fields.get("sizes" if is_nrrd else "dimsize", "").split()
    axes = fields.get("dimension" if is_nrrd else "ndims", "")
    channels = "1" if is_nrrd else fields.get("elementnumberofchannels", "1")
    if not sizes or not all(_COUNT.fullmatch(number) for number in [*sizes, channels]):
        raise _rejected(path, f"the lengths {' '.join(sizes)[:40]!r} and {channels[:20]!r} channels")
    if axes != str(len(sizes)) or len(sizes) > _MOST_AXES:
        raise _rejected(path, f"{len(sizes)} lengths for {axes[:20]!r} axes")
    for name in (*_PER_AXIS, *_MATRICES):  # ITK would take missing numbers from the next line
        needed = len(sizes) ** (2 if name in _MATRICES else 1)
        if not is_nrrd and len(fields.get(name, "0 " * needed).split()) < needed:
            raise _rejected(path, f"{name} = {fields[name][:40]}, where {needed} numbers are needed")
    packing, packed = _packing(path, fields, is_nrrd=is_nrrd)
    data = fields.get("datafile" if is_nrrd else "elementdatafile", "")
    is_own = not data or (not is_nrrd and data in _OWN_FILE)
    listed = text[begin:].decode("latin-1").split("\n") if data.startswith("LIST") else None
    if listed and not is_nrrd:  # ITK ignores a last line that does not end
        listed.pop()
    files = () if is_own else _data_files(path, data, listed)
    if not is_nrrd and ("%" in data or listed is not None):
        _check_count(path, data, list(map(int, sizes)), len(files))
    missing = [file.name for file in files if not file.is_file()]
    if missing and check_files:
        raise DamagedFileError(
            f"{path}: expected its data file {missing[0]!r} next to it, got none. Copy it there, "
            "decompressed if it was compressed separately."
        )
    skips = any(fields.get(name, "0") != "0" for name in ("headersize", "lineskip", "byteskip"))
    numbers = math.prod(map(int, [*sizes, channels]))
    return _Header(is_nrrd, numbers, files, begin, packing, packed, skips)


def _read_fields(path: Path, text: bytes, *, is_nrrd: bool) -> tuple[dict[str, str], int]:
    """Return the fields by their names in lower case without spaces, and where the header ends."""
    last = "datafile" if is_nrrd else "elementdatafile"
    fields: dict[str, str] = {}
    at = 0
    while at < len(text):
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].removesuffix(b"\r").decode("latin-1")
        at = end + 1
        if is_nrrd and not line:
            break
        match = None if line.startswith("#") else _FIELD.fullmatch(line)
        name = match[1].replace(" ", "").lower() if match else ""
        if name in fields and name in _ONCE:
            raise _rejected(path, f"{name} twice")
        longest = _LONGEST_LINE - len(str(path)) if is_nrrd else _LONGEST_VALUE
        is_note = _NOTE.match(line) is not None if is_nrrd else not name.isalpha()
        if len(line) > longest and not is_note:
            raise _rejected(path, f"a line of {len(line)} characters in its header")
        value = match[2] if match else ""
        fields[name] = value.lstrip() if name == "datafile" else value.strip()  # NRRD keeps a last space
        if name == last and (not is_nrrd or fields[last].startswith("LIST")):
            break
    if not is_nrrd and not fields.get(last):
        raise _rejected(path, "a header without ElementDataFile")
    return fields, min(at, len(text))


def _packing(path: Path, fields: dict[str, str], *, is_nrrd: bool) -> tuple[str, int | None]:
    """Return how numbers are stored, and the length of a compressed stream if the header has it."""
    if is_nrrd:
        encoding, kind = fields.get("encoding", "").lower(), fields.get("type", "").lower()
        if encoding not in _ENCODINGS or kind in ("", "block"):
            raise WrongContentError(
                f"{path}: expected numbers as raw, text, hex or gzip, got type {kind[:20]!r} with encoding "
                f"{encoding[:20]!r}. Save it again with gzip."
            )
        return _ENCODINGS[encoding], None
    if fields.get("compresseddata", "")[:1].upper() in ("T", "1"):
        length = fields.get("compresseddatasize", "")
        if not _COUNT.fullmatch(length):  # ITK reads nothing without it
            raise _rejected(path, "compressed pixels without CompressedDataSize")
        return "deflate", int(length)
    return "text" if fields.get("binarydata", "")[:1].upper() in ("F", "0") else "raw", None


def _data_files(path: Path, field: str, listed: list[str] | None) -> tuple[Path, ...]:
    """Return the data files of a header, all of which must lie in its folder."""
    if listed is not None:
        last = max((number for number, line in enumerate(listed, 1) if line.strip()), default=0)
        names = [line.removesuffix("\r") for line in listed[:last]]
    elif "%" in field:
        pattern = _PATTERN.fullmatch(field)
        first, last, step = map(int, pattern[2].split()[:3]) if pattern else (0, 0, 0)
        is_short = max(map(len, field.split())) <= _LONGEST_WORD
        if pattern is None or not step or not is_short or not 0 <= last - first <= _MOST_FILES:
            raise UnsafeFileError(
                f"{path}: expected a pattern of data files such as 'a%03d.raw 1 9 1', got {field[:80]!r}. "
                "Name them in a list."
            )
        names = [pattern[1] % number for number in range(first, last + 1, step)]
    else:
        names = [field]
    if not names:
        raise _rejected(path, "a list of data files with no name in it")
    files = [path.parent / os.fsdecode(name.encode("latin-1")) for name in names]
    for name, file in zip(names, files, strict=True):
        if name != " ".join(name.split()):
            raise _rejected(path, f"the data file {name[:80]!r}, whose spaces ITK reads in another way")
        plain = name.replace("\\", "/")
        leads_out = plain.startswith(("/", "~")) or plain[1:2] == ":" or ".." in plain.split("/")
        is_other = plain == "-" or (not leads_out and file.exists() and not file.is_file())
        if leads_out or is_other:
            raise UnsafeFileError(
                f"{path}: expected pixels in its own folder, got {plain!r}, which leads out of it or is no "
                "file. Move them next to the header, and name them there."
            )
        if file.is_file() and not is_beside(path, file):
            raise UnsafeFileError(
                f"{path}: expected pixels in its own folder, got the link {plain!r}, which leads out of it. "
                "Copy them there with links followed: cp -L."
            )
    return tuple(files)


def _check_count(path: Path, field: str, sizes: list[int], count: int) -> None:
    """Check that there are as many data files as slices: ITK returns what was in memory for missing ones."""
    words = field.split()
    axes = words[1:2] if field.startswith("LIST") else words[4:5]  # axes of what is in one file
    if axes and not (axes[0].isdecimal() and 0 <= int(axes[0]) != len(sizes)):
        raise _rejected(path, f"data files of {axes[0][:20]!r} axes in an image of {len(sizes)}")
    own = int(axes[0]) if axes and 0 < int(axes[0]) < len(sizes) else len(sizes) - 1
    if count < (needed := math.prod(sizes[own:])):
        raise DamagedFileError(
            f"{path}: expected {needed} data files, one for each slice, got {count} names. Each must be on a "
            "line of its own, and the last line must end too."
        )


# ITK


def _reader(path: Path, header: _Header) -> Any:
    reader = require("SimpleITK", extra="io").ImageFileReader()
    reader.SetImageIO(_NRRD if header.is_nrrd else _META_IMAGE)
    reader.SetFileName(str(path))
    return reader


def _grid(reader: Any) -> Grid:
    """Return the grid of the axes x, y and z; those that an image lacks are made up."""
    count = reader.GetDimension()
    used = min(count, 3)
    spacing, origin, direction = np.ones(3), np.zeros(3), np.eye(3)
    spacing[:used] = reader.GetSpacing()[:used]
    origin[:used] = reader.GetOrigin()[:used]
    direction[:used, :used] = np.reshape(reader.GetDirection(), (count, count))[:used, :used]
    is_anatomical = reader.GetImageIO() != _NRRD or (  # axes of a NRRD file may be those of anything
        reader.HasMetaDataKey("NRRD_space") and "superior" in reader.GetMetaData("NRRD_space")
    )
    return Grid.of_itk(
        reader.GetSize()[:used][::-1],
        spacing=spacing,
        origin=origin,
        direction=direction,
        is_oriented=used == 3 and is_anatomical,
    )


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Turn what ITK raises, and what it prints on the terminal, into one short error."""
    with TemporaryFile() as printed:
        try:
            with _stderr_into(printed.fileno()):
                yield
        except RuntimeError as error:
            printed.seek(0)
            lines = printed.read(4096).decode("utf-8", "replace")
            reports = _REPORTS[0].findall(str(error)) or _REPORTS[1].findall(lines)[:1] or ["no reason given"]
            reason = str(reports[-1]).strip().rstrip(".")
            raise DamagedFileError(
                f"{path}: expected an image in MetaImage or NRRD format, got one that ITK cannot read "
                f"({reason}). It may be truncated, or its data file missing: copy it again."
            ) from None


@contextmanager
def _stderr_into(file: int) -> Iterator[None]:
    """Redirect what a C++ library prints on the terminal to a file; do nothing if there is no terminal."""
    kept = None
    with suppress(OSError):
        kept = os.dup(2)
    try:
        if kept is not None:
            os.dup2(file, 2)
        yield
    finally:
        if kept is not None:
            os.dup2(kept, 2)
            os.close(kept)
