"""Headers of MetaImage (``.mha``, ``.mhd``): ``name = value``, the data file last."""

from __future__ import annotations

import math
import re
from pathlib import Path

from segtrust.errors import DamagedFileError
from segtrust.io.itk_data import LIST, ItkHeader, data_file_of, data_names
from segtrust.io.itk_fields import (
    COUNT,
    axes_of,
    check_number,
    check_printable,
    lengths_of,
    lines_of,
    refusal,
)

__all__ = ["metaimage_header"]

_LONGEST_NAME = 200
_LONGEST_VALUE = 490
"""Of fields that ITK knows: it has 500 bytes for them. All others may be longer."""
_OWN_FILE = ("LOCAL", "Local", "local")
"""Data files that are the file itself; written in any other way it is the name of another."""
_LINE = re.compile(r"[ \t]*([!-9;<>-~](?:[ -9;<>-~]*[!-9;<>-~])?)[ \t]*[=:](.*)")
_PER_AXIS = (
    *("DimSize", "ElementSpacing", "Offset", "Position", "Origin", "CenterOfRotation", "ElementSize"),
    *("ImagePosition", "SequenceID"),
)
_MATRICES = ("TransformMatrix", "Rotation", "Orientation")
_SINGLE = ("NDims", "ID", "ParentID", "HeaderSize", "CompressedDataSize", "ElementNumberOfChannels")
_VALUES = (
    *("ElementMin", "ElementMax", "ElementNBits"),
    *("ElementToIntensityFunctionSlope", "ElementToIntensityFunctionOffset"),
)
_TEXTS = (
    *("Comment", "ObjectType", "ObjectSubType", "TransformType", "Name", "AcquisitionDate", "Modality"),
    *("BinaryData", "BinaryDataByteOrderMSB", "ElementByteOrderMSB", "CompressedData", "DistanceUnits"),
    *("AnatomicalOrientation", "ElementType", "ElementDataFile"),
)
_KNOWN = {*_PER_AXIS, *_MATRICES, *_SINGLE, *_VALUES, *_TEXTS, "Color"}


def metaimage_header(path: Path, text: bytes) -> ItkHeader:
    """Read the header of a MetaImage, of the beginning of its file."""
    fields, listed, begin = _fields(path, text)
    axes = axes_of(path, fields.get("NDims", ""))
    _check_numbers(path, fields, axes)
    lengths = lengths_of(path, fields["DimSize"].split()[:axes])
    channels = lengths_of(path, [fields.get("ElementNumberOfChannels", "1")])
    field = fields["ElementDataFile"]
    names = () if field in _OWN_FILE else data_names(path, field, listed)
    _check_count(path, field, lengths, len(names))
    is_packed, is_text = (fields.get(name, "")[:1].upper() for name in ("CompressedData", "BinaryData"))
    numbers = math.prod([*lengths, *channels])
    if is_packed in ("T", "1"):
        return ItkHeader(path, numbers, names, begin, "deflate", _packed(path, fields, len(names)))
    return ItkHeader(path, numbers, names, begin, "text" if is_text in ("F", "0") else "raw")


def _packed(path: Path, fields: dict[str, str], files: int) -> int:
    """Give the bytes of the one stream; ITK reads none where the header does not tell."""
    length = fields.get("CompressedDataSize", "")
    if not COUNT.fullmatch(length) or not int(length) or files > 1:
        raise refusal(path, "packed pixels without CompressedDataSize, or in several files")
    return int(length)


def _fields(path: Path, text: bytes) -> tuple[dict[str, str], list[str], int]:
    """Give fields, the lines that follow them, and where these begin."""
    fields: dict[str, str] = {}
    for line, at in lines_of(path, text):
        if not line.strip():
            continue
        found = _LINE.fullmatch(check_printable(path, line))
        if found is None or len(found[1]) > _LONGEST_NAME:
            raise refusal(path, f"the line {line[:40]!r} in its header")
        name, value = found[1], found[2].strip()
        if name in _KNOWN and (name in fields or len(value) > _LONGEST_VALUE):
            raise refusal(path, f"{name} twice, or with more than {_LONGEST_VALUE} characters")
        fields[name] = value
        if name == "ElementDataFile":
            return fields, _listed(path, text, at) if value.startswith(LIST) else [], at
    raise refusal(path, "a header without ElementDataFile")


def _listed(path: Path, text: bytes, at: int) -> list[str]:
    """Give the lines of a list that ITK reads: a last one without an end it passes over."""
    lines = [each for each, _ in lines_of(path, text, at)]
    return lines if text.endswith(b"\n") else lines[:-1]


def _check_count(path: Path, field: str, lengths: list[int], count: int) -> None:
    """Refuse fewer files than slices: ITK gives whatever was in memory for those that lack."""
    words, axes = field.split(), len(lengths)
    if not field.startswith(LIST) and "%" not in field:
        return
    told = words[1:2] if field.startswith(LIST) else words[4:5]  # axes of what is in a file
    if told and not (COUNT.fullmatch(told[0]) and int(told[0]) != axes):
        raise refusal(path, f"data files of {told[0][:20]!r} axes in an image of {axes}")
    own = int(told[0]) if told and 0 < int(told[0]) < axes else axes - 1
    if count < (needed := math.prod(lengths[own:])):
        raise DamagedFileError(
            f"{path}: expected {needed} data files, one for each slice, got {count} names. Each must be on a "
            "line of its own, and the last line must end too."
        )


def _check_numbers(path: Path, fields: dict[str, str], axes: int) -> None:
    """Refuse fields with fewer numbers than ITK would read: it goes on with the next line."""
    wanted = {
        **dict.fromkeys(_PER_AXIS, axes),
        **dict.fromkeys(_MATRICES, axes * axes),
        **dict.fromkeys((*_SINGLE, *_VALUES), 1),
        "Color": 4,
    }
    for name in ("DimSize", "ElementType"):
        if not fields.get(name):
            raise refusal(path, f"a header without {name}")
    for name in wanted.keys() & fields.keys():
        numbers = fields[name].split()
        if len(numbers) < wanted[name]:
            raise refusal(path, f"{name} = {fields[name][:40]}, where {wanted[name]} numbers are needed")
        for number in numbers:
            check_number(path, number, name, is_place=name not in _VALUES)
    size = path.stat().st_size
    for name in ("HeaderSize", "CompressedDataSize"):
        if name in fields and not -1 <= float(fields[name].split()[0]) <= max(size, _data_size(path, fields)):
            raise refusal(path, f"{name} = {fields[name][:40]}")


def _data_size(path: Path, fields: dict[str, str]) -> int:
    """Bytes of the one data file; 0 where there is none, or there are many."""
    place = data_file_of(path, fields["ElementDataFile"])
    return place.stat().st_size if place.is_file() else 0
