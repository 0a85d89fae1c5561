"""HDF5: one of the datasets of a file, chunk by chunk if it is large.

A file can point to others: by links, or for the pixels themselves. Links are followed one step at a time and
only within the file's folder; pixels must lie in the file that holds the dataset.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._optional import require
from segtrust.errors import DamagedFileError, UnsafeFileError, WrongContentError
from segtrust.io.formats._common import (
    MAPS,
    MOST_NODES,
    NUMBERS,
    ChunkedArray,
    Volume,
    check_chunks,
    check_map,
    check_nodes,
    check_not_packed,
    choose_name,
    count_chunks,
    is_inside,
    is_large,
    list_names,
    missing_chunks,
    quote_name,
    read_chunked,
    reading,
)
from segtrust.io.formats._deflate import ZLIB, deflate_library

__all__ = ["linked_files", "open_hdf5", "recognises_hdf5"]

MAGIC = b"\x89HDF\r\n\x1a\n"
_DEFLATE, _SHUFFLE, _FLETCHER, _LZF = 1, 2, 3, 32000
"""Numbers of filters. Shuffle keeps the size, and Fletcher-32 adds a checksum."""
_FLETCHER_BYTES = 4
_DEEPEST = 16
"""Nested groups that are searched, and links to links that are followed."""


def recognises_hdf5(path: Path, head: bytes) -> bool:
    """Recognise a file by its first bytes."""
    return head.startswith(MAGIC)


def open_hdf5(
    path: Path, key: str | None = None, usual: Sequence[str] = MAPS, *, fill_missing: bool = False
) -> Volume:
    """Open the dataset ``key``, or the only one, or the one with a usual name; its pixels are read later.

    HDF5 has no agreed names for spacing and place, so the volume has no grid. Chunks that were never written
    are an error, unless they are to be filled with the dataset's fill value (``fill_missing``).
    """
    with reading(path, "an HDF5 file"), _opened(path) as file:
        name = choose_name(path, _find_maps(file, usual), usual) if key is None else key
        dataset = _find_dataset(file, name)
        array = _as_array(path, dataset, name)
        check_chunks(array)
        check_not_packed(path, name, dataset.attrs)
        if not fill_missing:
            _check_written(path, dataset, name)
        _check_chunk_lengths(path, dataset, name)
        shape, dtype = array.shape, array.dtype
        dataset.file.close()

    def load(channel: int | None) -> Any:
        with reading(path, "an HDF5 file"):
            dataset = _find_dataset(_opened(path), name)
            return read_chunked(_as_array(path, dataset, name), channel, dataset.file.close)

    return Volume(path, shape, dtype, load, lazy=is_large(math.prod(shape) * dtype.itemsize))


def linked_files(path: Path) -> list[Path]:
    """Return the files in a file's folder that it links to, directly or through each other."""
    h5py = require("h5py", extra="io")
    files, waiting = [path], [path]
    while waiting:
        here = waiting.pop()
        links: list[Any] = []
        with reading(here, "an HDF5 file"), _opened(here) as file:
            file.visititems_links(lambda _, link, links=links: links.append(link))
        for name in sorted({link.filename for link in links if isinstance(link, h5py.ExternalLink)}):
            linked = here.parent / name
            if linked not in files and linked.is_file() and is_inside(here.parent, linked):
                files.append(linked)
                waiting.append(linked)
    return files[1:]


def _opened(path: Path) -> Any:
    """Open a file; a file system that has no locks is no reason to fail."""
    return require("h5py", extra="io").File(path, "r", locking="best-effort")


def _as_array(path: Path, dataset: Any, name: str) -> ChunkedArray:
    check_map(path, name, dataset.shape, dataset.dtype)
    return ChunkedArray(path, dataset, tuple(range(len(dataset.shape))))


def _check_written(path: Path, dataset: Any, name: str) -> None:
    """Check that all pixels have been written: HDF5 returns the fill value for the others."""
    if 0 in dataset.shape:
        return
    if dataset.chunks is None:
        h5d = require("h5py", extra="io").h5d
        count, there = 1, int(dataset.id.get_space_status() != h5d.SPACE_STATUS_NOT_ALLOCATED)
    else:
        count, there = count_chunks(dataset.shape, dataset.chunks), dataset.id.get_num_chunks()
    if there < count:
        raise missing_chunks(
            path,
            name,
            f"{there} of {count} chunks",
            "If the others are empty on purpose, write zeros to them, or fill them: --fill-missing.",
        )


def _check_chunk_lengths(path: Path, dataset: Any, name: str) -> None:
    """Check that each compressed chunk unpacks to as many bytes as it has pixels.

    HDF5 does not: behind a stream that ends early, it returns what was in memory. Streams of gzip and LZF are
    measured; those of filters that are plug-ins, or that change the sizes before them, are not.
    """
    if dataset.chunks is None:
        return
    plist, infos = dataset.id.get_create_plist(), list[Any]()
    filters = [plist.get_filter(number)[0] for number in range(plist.get_nfilters())]
    if set(filters) - {_DEFLATE, _SHUFFLE, _FLETCHER, _LZF}:
        return
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    dataset.id.chunk_iter(infos.append)
    for info in infos:
        mask, stream = dataset.id.read_direct_chunk(info.chunk_offset)
        used = [code for number, code in enumerate(filters) if not mask >> number & 1]
        packings = [code for code in used if code in (_DEFLATE, _LZF)]
        if len(packings) > 1:
            continue
        found: int | None = len(stream) - _FLETCHER_BYTES * used.count(_FLETCHER)
        if packings:
            found = _unpacked_length(stream, size + 8) if packings == [_DEFLATE] else _lzf_length(stream)
            if found is None:
                continue
            found -= _FLETCHER_BYTES * used[: used.index(packings[0])].count(_FLETCHER)
        if found != size:
            raise DamagedFileError(
                f"{path}: expected {size} bytes in the chunk at {info.chunk_offset} of {quote_name(name)}, "
                f"got {found}. The file is corrupt: write it again."
            )


def _unpacked_length(stream: bytes, most: int) -> int | None:
    """Return the number of bytes that a zlib stream holds, up to ``most``.

    Return ``None`` for a broken stream, which HDF5 itself reports.
    """
    unpack = deflate_library().decompressobj(ZLIB)
    try:
        length = len(unpack.decompress(stream, most))
    except Exception:  # noqa: BLE001 - each library has an error of its own
        return None
    return length if unpack.eof or length >= most else None


def _lzf_length(stream: bytes) -> int:
    """Return the number of bytes that an LZF stream holds.

    Examples
    --------
    >>> [_lzf_length(bytes(stream)) for stream in ([2, 7, 7, 7], [0, 7, 0x20, 0], [0, 7, 0xE0, 1, 0])]
    [3, 4, 11]
    """
    place = length = 0
    while place < len(stream):
        control = stream[place]
        if control < 32:  # so many bytes as they are
            place, length = place + control + 2, length + control + 1
        elif control < 224:  # a repetition: its length in three bits
            place, length = place + 2, length + (control >> 5) + 2
        else:  # and in another byte
            more = stream[place + 1] if place + 1 < len(stream) else 0
            place, length = place + 3, length + more + 9
    return length


def _find_maps(group: Any, usual: Sequence[str] = ()) -> list[str]:
    """Return the names of the datasets that can be maps, and of links to other files with a usual name."""
    searched = list(itertools.islice(_search(group, "", {group}, usual), MOST_NODES + 1))
    return check_nodes(Path(group.file.filename), searched)


def _search(group: Any, prefix: str, seen: set[Any], usual: Sequence[str]) -> Iterator[str]:
    """Search groups, each once; what other links lead to is found where it is, or by its key.

    What cannot be a map is yielded as an empty name, so that everything that was searched can be counted.
    """
    h5py = require("h5py", extra="io")
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            is_usual = isinstance(link, h5py.ExternalLink) and name.lower() in usual
            yield prefix + name if is_usual else ""
            continue
        node = group[name]
        is_map = (
            isinstance(node, h5py.Dataset)
            and len(node.shape or ()) > 1
            and np.dtype(node.dtype).kind in NUMBERS
        )
        yield prefix + name if is_map else ""
        if isinstance(node, h5py.Group) and node not in seen and prefix.count("/") < _DEEPEST:
            seen.add(node)
            yield from _search(node, f"{prefix}{name}/", seen, usual)


def _find_dataset(file: Any, name: str) -> Any:
    """Return a dataset whose pixels lie in the file that holds it."""
    path = Path(file.filename)
    node = _follow(file, name, hops=0)
    if not isinstance(node, require("h5py", extra="io").Dataset):
        below = f"{name.strip('/')}/"
        received = (
            "none"
            if node is None
            else f"a group of {list_names([below + inner for inner in _find_maps(node)])}"
        )
        raise WrongContentError(
            f"{path}: expected a dataset called {name!r}, got {received}. The file holds "
            f"{list_names(_find_maps(file))}."
        )
    if node.is_virtual or node.external:
        raise UnsafeFileError(
            f"{path}: expected the pixels of {name!r} in the file itself, got a dataset whose pixels lie "
            "elsewhere, where HDF5 would look for them in any folder. Write it to one file: h5repack."
        )
    return node


def _follow(node: Any, name: str, *, hops: int) -> Any:
    """Walk along a name step by step; HDF5 would follow a link wherever it leads."""
    h5py = require("h5py", extra="io")
    for part in name.split("/"):
        if part in ("", "."):
            continue
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None or hops > _DEEPEST:
            return None
        if isinstance(link, h5py.ExternalLink):
            node = _follow(_open_linked(Path(node.file.filename), link.filename), link.path, hops=hops + 1)
        elif isinstance(link, h5py.SoftLink):
            start = node.file if link.path.startswith("/") else node
            node = _follow(start, link.path, hops=hops + 1)
        else:
            node = node[part]
    return node


def _open_linked(path: Path, name: str) -> Any:
    """Open the file that a link leads to, if it lies in the folder of the file with the link."""
    linked = path.parent / name
    if not is_inside(path.parent, linked):
        raise UnsafeFileError(
            f"{path}: expected links within its folder, got one to {name!r}, which leads out of it. "
            "Copy that file next to this one, and link to it there."
        )
    if not linked.is_file():
        raise DamagedFileError(f"{path}: expected the file {name!r} next to it, which it links to, got none.")
    return _opened(linked)
