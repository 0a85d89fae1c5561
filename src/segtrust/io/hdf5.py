"""HDF5: one of the data sets of a file, in pieces if it is large.

A file may point to others: by links, or for the pixels themselves. Links are followed one step at a time and
only within the file's folder; pixels must lie in the file that holds the data set.
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
from segtrust.io.packed import check_packed, may_swell, refuse_packed_twice
from segtrust.io.stores import (
    MAPS,
    MOST_NODES,
    NUMBERS,
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

__all__ = ["MAGIC", "open_hdf5", "recognises_hdf5"]

MAGIC = b"\x89HDF\r\n\x1a\n"
_PACKERS = {1: "zlib", 32000: "lzf"}
"""Numbers of HDF5's filters that unpack to more than they were given."""
_DEEPEST = 16
"""Groups below groups that are looked into, and links to links that are followed."""


def recognises_hdf5(path: Path, head: bytes) -> bool:
    """Tell by the first bytes."""
    return head.startswith(MAGIC)


def open_hdf5(path: Path, key: str | None = None, usual: Sequence[str] = MAPS) -> Volume:
    """Open the data set ``key``, or the only one, or that of a usual name; its pixels are read later.

    HDF5 has no agreed names for spacing and place, so nothing is known of them.
    """
    with reading(path, "an HDF5 file"), _file(path) as file:
        name = chosen_name(path, _names(file), usual) if key is None else key
        dataset = _dataset(file, name)
        stored = _stored(path, dataset, name)
        check_piece(stored)
        _check_chunks(path, dataset)
        shape, dtype = stored.shape, stored.dtype
        dataset.file.close()

    def load(channel: int | None) -> Any:
        with reading(path, "an HDF5 file"):
            dataset = _dataset(_file(path), name)
            return pixels_of(_stored(path, dataset, name), channel, dataset.file.close)

    return Volume(path, shape, dtype, load, lazy=is_large(math.prod(shape) * dtype.itemsize))


def _file(path: Path) -> Any:
    """Open a file; a lock that the file system does not know is no reason to refuse."""
    return require("h5py", extra="io").File(path, "r", locking="best-effort")


def _names(group: Any) -> list[str]:
    """Give the data sets that can be maps."""
    looked_at = list(itertools.islice(_maps_below(group, "", {group}), MOST_NODES + 1))
    if len(looked_at) > MOST_NODES:
        raise too_many_nodes(Path(group.file.filename))
    return [name for name in looked_at if name]


def _maps_below(group: Any, prefix: str, seen: set[Any]) -> Iterator[str]:
    """Look into groups, each once; what is only linked to is found where it is, or asked for by name.

    What can be no map is given too, without a name, so that all that was looked at can be counted.
    """
    h5py = require("h5py", extra="io")
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            yield ""
            continue
        node = group[name]
        yield prefix + name if isinstance(node, h5py.Dataset) and _can_be_map(node) else ""
        if isinstance(node, h5py.Group) and node not in seen and prefix.count("/") < _DEEPEST:
            seen.add(node)
            yield from _maps_below(node, f"{prefix}{name}/", seen)


def _can_be_map(dataset: Any) -> bool:
    return dataset.shape is not None and len(dataset.shape) > 1 and np.dtype(dataset.dtype).kind in NUMBERS


def _dataset(file: Any, name: str) -> Any:
    """Give a data set whose pixels lie in the file that holds it."""
    path = Path(file.filename)
    node = _found(file, name, hops=0)
    if not isinstance(node, require("h5py", extra="io").Dataset):
        below = f"{name.strip('/')}/"
        got = "none" if node is None else f"a group of {listed([below + each for each in _names(node)])}"
        raise WrongContentError(
            f"{path}: expected a data set called {name!r}, got {got}. The file holds {listed(_names(file))}."
        )
    if node.is_virtual or node.external:
        raise UnsafeFileError(
            f"{path}: expected the pixels of {name!r} in the file itself, got a data set whose pixels lie "
            "elsewhere, where HDF5 would look for them in any folder. Write it to one file: h5repack."
        )
    return node


def _found(node: Any, name: str, *, hops: int) -> Any:
    """Walk to what is called so, step by step; ``None`` where there is nothing."""
    for part in name.split("/"):
        if part not in ("", ".") and node is not None:
            node = _next(node, part, hops)
    return node


def _next(group: Any, part: str, hops: int) -> Any:
    """Go one step; HDF5 would follow a link wherever it leads."""
    h5py = require("h5py", extra="io")
    link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
    if link is None or hops > _DEEPEST:
        return None
    if isinstance(link, h5py.ExternalLink):
        return _found(_linked_file(group, link), link.path, hops=hops + 1)
    if isinstance(link, h5py.SoftLink):
        start = group.file if link.path.startswith("/") else group
        return _found(start, link.path, hops=hops + 1)
    return group[part]


def _linked_file(group: Any, link: Any) -> Any:
    """Open the file that a link leads to, if it lies in the folder of the one that has the link."""
    path = Path(group.file.filename)
    linked = path.parent / link.filename
    if not inside(path.parent, linked):
        raise UnsafeFileError(
            f"{path}: expected links within its folder, got one to {link.filename!r}, which leads out of it. "
            "Copy that file beside this one, and link to it there."
        )
    if not linked.is_file():
        raise DamagedFileError(
            f"{path}: expected the file {link.filename!r} beside it, which it links to, got none."
        )
    return _file(linked)


def _check_chunks(path: Path, dataset: Any) -> None:
    """Refuse chunks that unpack to more than an array may take, which HDF5 would let them."""
    about = dataset.id.get_create_plist()
    filters = [about.get_filter(number)[0] for number in range(about.get_nfilters())]
    kinds = [_PACKERS[each] for each in filters if each in _PACKERS]
    refuse_packed_twice(path, kinds)
    if not kinds:
        return
    for number in range(dataset.id.get_num_chunks()) if _may_swell(dataset, kinds[0]) else ():
        place = dataset.id.get_chunk_info(number).chunk_offset
        check_packed(path, kinds[0], dataset.id.read_direct_chunk(place)[1])


def _may_swell(dataset: Any, kind: str) -> bool:
    """Tell whether some chunk is long enough to unpack to more than is allowed."""
    longest = 0

    def look(chunk: Any) -> None:
        nonlocal longest
        longest = max(longest, int(chunk.size))

    dataset.id.chunk_iter(look)
    return may_swell(kind, longest)


def _stored(path: Path, dataset: Any, name: str) -> Stored:
    check_map(path, name, dataset.shape, dataset.dtype)
    return Stored(path, dataset, tuple(range(len(dataset.shape))))
