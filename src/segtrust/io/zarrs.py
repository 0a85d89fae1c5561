"""Zarr, versions 2 and 3, in a directory or a zip file: an array, one of a group, or an OME-Zarr image."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.omezarr import Image, image_of
from segtrust.io.packed import PACKERS, check_packed, refuse_packed_twice
from segtrust.io.stores import (
    MAPS,
    MOST_NODES,
    Stored,
    check_map,
    check_piece,
    chosen_name,
    inside,
    is_large,
    listed,
    pixels_of,
    reading,
    too_many_nodes,
)
from segtrust.io.volumes import Volume

__all__ = ["open_zarr", "recognises_zarr"]

_ZIP = ".zarr.zip"
_DEEPEST = 16
_LONGEST_DOCUMENT = 16 << 20
_OWN_CODECS = ("_gzip_codec", "_zstd_codec", "_blosc_codec", "_codec")
"""Where Zarr's codecs of version 3 have those of NumCodecs that do the work."""
_NUMBERS = re.compile(r"[<>|][biuf]\d+|bool|u?int\d+|float\d+")
"""Types that may be pixels, as versions 2 and 3 write them."""


@dataclass(frozen=True)
class _Node:
    """An array or a group, as the store describes it.

    Attributes
    ----------
    name
        Its path in the store; "" for the root.
    place
        Its folder, on the disk or in the zip file.
    document
        What describes it.
    is_array
        Whether it is no group.
    attributes
        Free notes on it, which OME-Zarr fills.
    """

    name: str
    place: Any
    document: Mapping[str, Any]
    is_array: bool
    attributes: Mapping[str, Any]

    @property
    def can_be_map(self) -> bool:
        """Whether it is an array of numbers with at least 2 dimensions."""
        kind = self.document.get("dtype", self.document.get("data_type"))
        is_number = isinstance(kind, str) and _NUMBERS.fullmatch(kind)
        return bool(self.is_array and is_number and len(self.document.get("shape", ())) > 1)


def recognises_zarr(path: Path, head: bytes) -> bool:
    """Tell a directory by what lies in it, or by its name; a zip file by its first bytes and its name."""
    if path.is_dir():
        documents = (".zarray", ".zgroup", "zarr.json")
        return path.suffix.lower() == ".zarr" or any((path / each).is_file() for each in documents)
    return head[:2] == b"PK" and path.name.lower().endswith(_ZIP)


def open_zarr(path: Path, key: str | None = None, usual: Sequence[str] = MAPS) -> Volume:
    """Open the array or image ``key``, or the only one, or that of a usual name; its pixels are read later.

    Of an OME-Zarr image the finest level is taken. Single chunks that are missing are filled, as Zarr defines
    it; an array without any chunk is rejected, because nothing distinguishes it from one that was lost.
    """
    with reading(path, "a Zarr store"), _root(path) as root:
        node, image = _chosen(path, root, key, usual)
        _check_safe(path, node)
        name, has_chunks = node.name, 0 in node.document["shape"] or _has_chunk(node)
    with reading(path, "a Zarr array"):
        stored, store = _stored(path, name, image)
        grid = image.grid(stored.whole.shape, path) if image else None
        shape, dtype = stored.shape, stored.dtype
        store.close()
    if not has_chunks:  # it would be read as the fill value everywhere
        raise DamagedFileError(
            f"{path}: expected the chunks of {repr(name) if name else 'the array'}, got none. The writer may "
            "have been interrupted, or files are named otherwise than the description says "
            "(dimension_separator): write it again. If every pixel has the fill value, save it with "
            "zarr.config.set({'array.write_empty_chunks': True})."
        )

    def load(channel: int | None) -> Any:
        with reading(path, "a Zarr array"):
            stored, store = _stored(path, name, image)
            return pixels_of(stored, channel, store.close)

    lazy = is_large(math.prod(shape) * dtype.itemsize)
    if image is None:
        return Volume(path, shape, dtype, load, lazy=lazy)
    return Volume(path, shape, dtype, load, image.has_channels, grid, image.names_of(shape[0]), lazy)


@contextmanager
def _root(path: Path) -> Iterator[Any]:
    """Give the folder of a store, on the disk or in a zip file."""
    if path.is_dir():
        yield path
        return
    with zipfile.ZipFile(path) as archive:
        check_size(path, max((info.file_size for info in archive.infolist()), default=0))
        yield zipfile.Path(archive)


def _chosen(path: Path, root: Any, key: str | None, usual: Sequence[str]) -> tuple[_Node, Image | None]:
    """Find the array that is meant, and the image that it is the finest level of."""
    node = _asked_for(path, root, key or "")
    if not node.is_array and image_of(node.attributes, path) is None:
        names = _names_below(node, path)
        node = _asked_for(path, root, chosen_name(path, names, usual))
    if node.is_array:
        return node, None
    image = image_of(node.attributes, path)
    level = _asked_for(path, root, f"{node.name}/{image.level}" if image else node.name)
    if not level.is_array:
        raise WrongContentError(f"{path}: expected an array called {level.name!r}, got a group.")
    return level, image


def _asked_for(path: Path, root: Any, name: str) -> _Node:
    """Give the node of this name."""
    parts = PurePosixPath(name.strip("/")).parts
    if ".." in parts:
        raise UnsafeFileError(
            f"{path}: expected a name inside the store, got {name!r}, which leads out of it."
        )
    node = _node(path, "/".join(parts), root.joinpath(*parts)) if parts else _top(path, root)
    if node is None:
        names = listed(_names_below(_top(path, root), path))
        raise WrongContentError(
            f"{path}: expected an array called {name!r}, got none. The store holds {names}."
        )
    return node


def _top(path: Path, root: Any) -> _Node:
    """Give the root; where nothing describes it, as where a folder was packed as it is, it is a group."""
    return _node(path, "", root) or _Node("", root, {}, False, {})


def _node(path: Path, name: str, place: Any) -> _Node | None:
    """Read what describes an array or a group; ``None`` where nothing does."""
    if document := _document(path, place, "zarr.json"):
        return _Node(name, place, document, document["node_type"] == "array", document.get("attributes", {}))
    for file in (".zarray", ".zgroup"):
        if document := _document(path, place, file):
            return _Node(name, place, document, file == ".zarray", _document(path, place, ".zattrs"))
    return None


def _document(path: Path, place: Any, name: str) -> Mapping[str, Any]:
    """Read a file of JSON that lies in the store; empty where there is none."""
    file = place.joinpath(name)
    if not file.is_file():
        return {}
    if isinstance(file, Path):
        _check_inside(path, file)
    with file.open("rb") as opened:
        text = opened.read(_LONGEST_DOCUMENT)
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError(f"{name} describes nothing")
    return document


def _names_below(group: _Node, path: Path) -> list[str]:
    """Give the arrays that can be maps, and the images; the levels of an image are not told apart."""
    looked_at = list(itertools.islice(_below(group, path), MOST_NODES + 1))
    if len(looked_at) > MOST_NODES:
        raise too_many_nodes(path)
    return [name for name in looked_at if name]


def _below(group: _Node, path: Path, depth: int = 0) -> Iterator[str]:
    """Look into groups; what is no map is given too, without a name, so that all can be counted."""
    for place in sorted(group.place.iterdir(), key=lambda each: str(each.name)):
        is_link = isinstance(place, Path) and place.is_symlink()
        node = (
            None
            if is_link or not place.is_dir()
            else _node(path, f"{group.name}/{place.name}".strip("/"), place)
        )
        if node is None:
            yield ""
        elif node.can_be_map or image_of(node.attributes, path):
            yield node.name
        elif not node.is_array and depth < _DEEPEST:
            yield ""
            yield from _below(node, path, depth + 1)


def _check_safe(path: Path, node: _Node) -> None:
    """Refuse an array that would run code when read, whose chunks lie elsewhere, or that holds no numbers."""
    packing = json.dumps([node.document.get(each) for each in ("filters", "compressor", "codecs")])
    if "pickle" in packing.lower():
        raise UnsafeFileError(
            f"{path}: expected an array of numbers in {node.name!r}, got pickles: to read them would run "
            "whatever code their author put in. Save the numbers themselves (float32)."
        )
    if isinstance(node.place, Path):
        _check_links(path, node.place)
    if not node.can_be_map:
        kind = node.document.get("dtype", node.document.get("data_type"))
        raise WrongContentError(
            f"{path}: expected numbers of at least 2 dimensions in {node.name!r}, got the type {kind!r} and "
            f"the shape {node.document.get('shape')}. Choose another array by --key."
        )


def _has_chunk(node: _Node) -> bool:
    """Return whether a file has the name that the array's description gives to one of its chunks."""
    document, prefix, separator = node.document, "", "."
    if document.get("zarr_format") == 3:
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        encoding = document["chunk_key_encoding"]
        is_default = encoding["name"] == "default"
        separator = encoding.get("configuration", {}).get("separator", "/" if is_default else ".")
        prefix = f"c{separator}" if is_default else ""
    else:
        chunk, separator = document["chunks"], document.get("dimension_separator") or "."
    counts = [-(-length // max(size, 1)) for length, size in zip(document["shape"], chunk, strict=True)]
    number = r"(0|[1-9][0-9]*)"
    pattern = re.compile(re.escape(prefix) + re.escape(separator).join([number] * len(counts)))

    def is_chunk(name: str) -> bool:
        key = pattern.fullmatch(name)
        return key is not None and all(
            int(index) < count for index, count in zip(key.groups(), counts, strict=True)
        )

    def has_chunk_below(folder: Any, above: str) -> bool:
        entries = [(entry, f"{above}{entry.name}") for entry in folder.iterdir()]
        return any(not entry.is_dir() and is_chunk(name) for entry, name in entries) or any(
            has_chunk_below(entry, f"{name}/")
            for entry, name in entries
            if entry.is_dir() and name.count("/") <= len(counts)
        )

    return has_chunk_below(node.place, "")


def _check_links(path: Path, place: Path) -> None:
    """Refuse links that lead out of the store, and pipes, for the array's folder and all in it."""
    for link in (place, *_special_below(place)):
        if not link.is_file() and not link.is_dir() and link.exists():
            raise UnsafeFileError(
                f"{path}: expected files and folders in the store, got {link.name!r}, which is neither: it "
                "would be waited for. Remove it."
            )
        _check_inside(path, link)


def _check_inside(path: Path, link: Path) -> None:
    """Refuse what leads out of the store."""
    if not inside(path, link):
        raise UnsafeFileError(
            f"{path}: expected all of the store in its folder, got the link {link.name!r}, which leads "
            "out of it. Copy the store with its links followed: cp -rL."
        )


def _special_below(place: Path) -> Iterator[Path]:
    """Give all that is neither a file nor a folder itself: links, pipes, devices."""
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _special_below(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _stored(path: Path, name: str, image: Image | None) -> tuple[Stored, Any]:
    """Open an array, and give the store that is to be closed after it."""
    zarr = require("zarr", extra="io")
    kind = zarr.storage.LocalStore if path.is_dir() else zarr.storage.ZipStore
    store = kind(path, read_only=True)
    array = zarr.open_array(store, path=name, mode="r")
    axes = image.kept(array.shape, path) if image else tuple(range(array.ndim))
    stored = Stored(path, array, axes)
    check_map(path, name, stored.shape, stored.dtype)
    check_piece(stored)
    _bound(path, array._async_array.codec_pipeline)
    return stored, store


def _bound(path: Path, codecs: Any) -> None:
    """Let whatever unpacks the chunks of an array look at how much that will be, and refuse too much."""
    unpackers = list(_unpackers(path, codecs))
    refuse_packed_twice(path, [each.codec_id for each in unpackers])
    for unpacker in unpackers:
        if unpacker.codec_id in PACKERS:
            unpacker.decode = _Bounded(path, unpacker.codec_id, unpacker.decode)


def _unpackers(path: Path, codecs: Any) -> Iterator[Any]:
    """Give the codecs of NumCodecs behind those of Zarr; those within shards are bound as they are."""
    for codec in codecs:
        if hasattr(codec, "codecs"):
            _bound(path, codec.codecs)
        own = [codec.compressor, *(codec.filters or ())] if hasattr(codec, "compressor") else []
        names = [name for name in _OWN_CODECS if hasattr(codec, name)]
        yield from (each for each in (*own, *(getattr(codec, name) for name in names)) if each is not None)


@dataclass(frozen=True)
class _Bounded:
    """Unpacks as a codec does, once it is known that the memory suffices."""

    path: Path
    kind: str
    unpack: Callable[..., Any]

    def __call__(self, packed: Any, out: Any = None) -> Any:
        check_packed(self.path, self.kind, packed)
        return self.unpack(packed, out)
