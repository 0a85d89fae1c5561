"""Headers of NRRD (``.nrrd``, ``.nhdr``): ``name: value``, an empty line last."""

from __future__ import annotations

import math
import re
from itertools import islice
from pathlib import Path

from segtrust._files import max_bytes
from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.io.inflate import is_gzip
from segtrust.io.itk_data import LIST, ItkHeader, data_names
from segtrust.io.itk_fields import (
    COUNT,
    axes_of,
    check_number,
    check_printable,
    lengths_of,
    lines_of,
    refusal,
)

__all__ = ["nrrd_header"]

_LONGEST_LINE = 700
_LINE = re.compile(r"[ \t]*([A-Za-z][A-Za-z ]*?): (.*)")
_NOTE = re.compile(r"#|content:|(?:(?!: ).)*:=")
"""Lines that may say anything: remarks, and notes under any name."""
_PLACES = (
    *("sizes", "spacings", "thicknesses", "axismins", "axismaxs", "spaceorigin", "spacedirections"),
    *("measurementframe", "dimension", "spacedimension"),
)
_PACKINGS = {
    **dict.fromkeys(("raw",), "raw"),
    **dict.fromkeys(("txt", "text", "ascii"), "text"),
    **dict.fromkeys(("gz", "gzip"), "deflate"),
    "hex": "hex",
}


def nrrd_header(path: Path, text: bytes) -> ItkHeader:
    """Read the header of a NRRD file, of the beginning of its file."""
    fields, listed, begin = _fields(path, text)
    axes = axes_of(path, fields.get("dimension", ""))
    for name in fields.keys() & set(_PLACES):
        for number in re.split(r"[\s(),]+", fields[name].strip("() ")):
            if number.lower() not in ("none", "nan"):
                check_number(path, number, name)
    sizes = lengths_of(path, fields.get("sizes", "").split())
    if len(sizes) != axes:
        raise refusal(path, f"{len(sizes)} sizes for {axes} axes")
    packing = _packing(path, fields)
    _check_skips(path, fields)
    names = data_names(path, fields["datafile"], listed) if "datafile" in fields else ()
    header = ItkHeader(path, math.prod(sizes), names, begin, packing)
    if packing == "deflate":
        _check_gzip(header, max(0, int(fields.get("lineskip", 0))))
    return header


def _check_gzip(header: ItkHeader, lines: int) -> None:
    """Refuse what is said to be gzip and is not: NRRD's library would take it for pixels as they are.

    Lines are skipped before the pixels are unpacked, bytes afterwards.
    """
    for path in header.files or ([] if header.names else [header.path]):
        with path.open("rb") as file:
            file.seek(0 if header.names else header.begin)
            for _ in islice(file, lines):
                pass
            if not is_gzip(file.read(2)):
                raise refusal(header.path, f"pixels in {path.name} that are not gzip")


def _packing(path: Path, fields: dict[str, str]) -> str:
    """Tell how numbers are kept; bzip2 is not looked for, because one byte of it can become millions."""
    if "type" not in fields or "encoding" not in fields:
        raise refusal(path, "a header without type or encoding")
    kind, encoding = fields["type"].lower(), fields["encoding"].lower()
    if kind == "block" or encoding not in _PACKINGS:
        raise WrongContentError(
            f"{path}: expected numbers as raw, text, hex or gzip, got type {kind[:20]!r} with encoding "
            f"{encoding[:20]!r}. Save it again with gzip."
        )
    return _PACKINGS[encoding]


def _fields(path: Path, text: bytes) -> tuple[dict[str, str], list[str], int]:
    """Give fields, the lines that follow them, and where these begin; notes are passed over."""
    fields: dict[str, str] = {}
    at, lines, most = 0, lines_of(path, text), _room_to_quote(path, text)
    if not re.fullmatch(r"NRRD\d{4}[ \t]*", next(lines, ("", 0))[0]):
        raise refusal(path, "a header that does not begin with NRRD and its version")
    for line, at in lines:
        if not line:
            return fields, [], at
        if _NOTE.match(line):
            continue
        if len(line) > most:
            raise DamagedFileError(
                f"{path}: expected an image in MetaImage or NRRD format, with lines of at most {most} bytes "
                f"in its header, got one of {len(line)}."
            )
        found = _LINE.fullmatch(check_printable(path, line))
        if found is None:
            raise refusal(path, f"the line {line[:40]!r} in its header")
        name = found[1].replace(" ", "").lower()
        if name in fields:
            raise refusal(path, f"{found[1]} twice")
        fields[name] = found[2].strip() if name != "datafile" else found[2].lstrip()  # as NRRD's library does
        if name == "datafile" and fields[name].startswith(LIST):
            return fields, [each for each, _ in lines_of(path, text, at)], at
    return fields, [], at


def _room_to_quote(path: Path, text: bytes) -> int:
    """Give the longest line that NRRD's library can quote in an error: it has no room for more.

    Of a file of pixels it quotes the folder too.
    """
    is_detached = re.search(rb"\n[ \t]*data ?file[ \t]*:", text, re.IGNORECASE) is not None
    return _LONGEST_LINE - (len(str(path)) if is_detached else 0)


def _check_skips(path: Path, fields: dict[str, str]) -> None:
    """Refuse to pass over more than anybody would unpack."""
    for name in ("lineskip", "byteskip"):
        text = fields.get(name, "0")
        if text != "-1" and not (COUNT.fullmatch(text) and int(text) <= max_bytes()):
            raise refusal(path, f"{name} {text[:20]!r}")
