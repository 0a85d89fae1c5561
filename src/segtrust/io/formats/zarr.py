"""Zarr, versions 2 and 3, in a folder or a zip file: an array, one of a group, or an OME-Zarr image."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from segtrust._files import check_size
from segtrust._optional import require
from segtrust.errors import DamagedFileError, GeometryError, UnsafeFileError, WrongContentError
from segtrust.io.formats._common import (
    MAPS,
    MOST_NODES,
    ChunkedArray,
    Volume,
    check_chunks,
    check_map,
    check_nodes,
    check_not_packed,
    choose_name,
    is_inside,
    is_large,
    list_names,
    missing_chunks,
    quote_name,
    read_chunked,
    reading,
)
from segtrust.io.grid import Grid

__all__ = ["OmeImage", "open_zarr", "read_ome_image", "recognises_zarr"]

_DEEPEST = 16
_LONGEST_DOCUMENT = 16 << 20
_NUMBERS = re.compile(r"[<>|][biuf]\d+|bool|u?int\d+|float\d+")
"""Types that can be pixels, as versions 2 and 3 write them."""
_ABSENT = 2**64 - 1
"""Offset and length of a chunk that a shard does not have."""


@dataclass(frozen=True)
class _Node:
    """An array or a group as the store describes it.

    Attributes
    ----------
    name
        Path in the store; "" for the root.
    place
        Folder, on the disk or in the zip file.
    document
        The description.
    is_array
        Whether it is an array and not a group.
    attributes
        Free notes, which OME-Zarr and CF use.
    """

    name: str
    place: Any
    document: Mapping[str, Any]
    is_array: bool
    attributes: Mapping[str, Any]

    @property
    def dtype(self) -> Any:
        """Name of the type."""
        return self.document.get("dtype", self.document.get("data_type"))

    @property
    def can_be_map(self) -> bool:
        """Whether it is an array of numbers with at least 2 dimensions."""
        is_number = isinstance(self.dtype, str) and _NUMBERS.fullmatch(self.dtype)
        return bool(self.is_array and is_number and len(self.document.get("shape", ())) > 1)


def recognises_zarr(path: Path, head: bytes) -> bool:
    """Recognise a folder by its content or its name, and a zip file by its first bytes and its name."""
    if path.is_dir():
        documents = (".zarray", ".zgroup", "zarr.json")
        return path.suffix.lower() == ".zarr" or any((path / name).is_file() for name in documents)
    return head[:2] == b"PK" and path.name.lower().endswith(".zarr.zip")


def open_zarr(
    path: Path, key: str | None = None, usual: Sequence[str] = MAPS, *, fill_missing: bool = False
) -> Volume:
    """Open the array or image ``key``, or the only one, or the one with a usual name.

    The pixels are read later; of an OME-Zarr image, those of the finest level. Chunks that are missing are an
    error, since nothing distinguishes an empty chunk from a lost one, unless they are to be filled with the
    array's fill value (``fill_missing``).
    """
    with reading(path, "a Zarr store"), _root(path) as root:
        node, image = _choose_node(path, root, key, usual)
        name = node.name
        _check_safe(path, node)
        array, store = _open_array(path, name, image)
        check_chunks(array)
        check_not_packed(path, name, node.attributes)
        if not fill_missing:
            _check_written(path, node)
        grid = image.grid(array.whole.shape, path) if image else None
        shape, dtype = array.shape, array.dtype
        store.close()

    def load(channel: int | None) -> Any:
        with reading(path, "a Zarr array"):
            array, store = _open_array(path, name, image)
            return read_chunked(array, channel, store.close)

    lazy = is_large(math.prod(shape) * dtype.itemsize)
    if image is None:
        return Volume(path, shape, dtype, load, lazy=lazy)
    return Volume(path, shape, dtype, load, image.has_channels, grid, image.names_of(shape[0]), lazy)


@contextmanager
def _root(path: Path) -> Iterator[Any]:
    """Yield the folder of a store, on the disk or in a zip file."""
    if path.is_dir():
        yield path
        return
    with zipfile.ZipFile(path) as archive:
        check_size(path, max((info.file_size for info in archive.infolist()), default=0))
        yield zipfile.Path(archive)


def _choose_node(path: Path, root: Any, key: str | None, usual: Sequence[str]) -> tuple[_Node, Any]:
    """Return the array that is meant, and the image whose finest level it is."""
    node = _find_node(path, root, key or "")
    if not node.is_array and read_ome_image(node.attributes, path) is None:
        node = _find_node(path, root, choose_name(path, _find_maps(node, path), usual))
    if node.is_array:
        return node, None
    image = read_ome_image(node.attributes, path)
    level = _find_node(path, root, f"{node.name}/{image.level}" if image else node.name)
    if not level.is_array:
        raise WrongContentError(f"{path}: expected an array called {level.name!r}, got a group.")
    return level, image


def _find_node(path: Path, root: Any, name: str) -> _Node:
    """Return the node of this name. A root that nothing describes is a group: a folder packed as it is."""
    parts = PurePosixPath(name.strip("/")).parts
    if ".." in parts:
        raise UnsafeFileError(
            f"{path}: expected a name inside the store, got {name!r}, which leads out of it."
        )
    node = _read_node(path, "/".join(parts), root.joinpath(*parts))
    if node is None and not parts:
        return _Node("", root, {}, False, {})
    if node is None:
        names = list_names(_find_maps(_find_node(path, root, ""), path))
        raise WrongContentError(
            f"{path}: expected an array called {name!r}, got none. The store holds {names}."
        )
    return node


def _read_node(path: Path, name: str, place: Any) -> _Node | None:
    """Read the description of an array or a group; ``None`` if there is none."""
    if document := _read_document(path, place, "zarr.json"):
        return _Node(name, place, document, document["node_type"] == "array", document.get("attributes", {}))
    for file in (".zarray", ".zgroup"):
        if document := _read_document(path, place, file):
            attributes = _read_document(path, place, ".zattrs")
            return _Node(name, place, document, file == ".zarray", attributes)
    return None


def _read_document(path: Path, place: Any, name: str) -> Mapping[str, Any]:
    """Read a JSON file of the store; empty if there is none."""
    file = place.joinpath(name)
    if not file.is_file():
        return {}
    if isinstance(file, Path):
        _check_inside(path, file)
    with file.open("rb") as opened:
        document = json.loads(opened.read(_LONGEST_DOCUMENT))
    if not isinstance(document, dict):
        raise ValueError(f"{name} describes nothing")
    return document


def _find_maps(group: _Node, path: Path) -> list[str]:
    """Return the names of the arrays that can be maps, and of images, but not of their levels."""
    return check_nodes(path, list(itertools.islice(_search(group, path), MOST_NODES + 1)))


def _search(group: _Node, path: Path, depth: int = 0) -> Iterator[str]:
    """Search groups; what is no map is yielded as an empty name, so that everything can be counted."""
    for place in sorted(group.place.iterdir(), key=lambda entry: str(entry.name)):
        is_link = isinstance(place, Path) and place.is_symlink()
        name = f"{group.name}/{place.name}".strip("/")
        node = None if is_link or not place.is_dir() else _read_node(path, name, place)
        if node is not None and (node.can_be_map or read_ome_image(node.attributes, path)):
            yield node.name
            continue
        yield ""
        if node is not None and not node.is_array and depth < _DEEPEST:
            yield from _search(node, path, depth + 1)


def _check_safe(path: Path, node: _Node) -> None:
    """Check that reading runs no code and reads nothing outside the store, and that there are numbers."""
    codecs = json.dumps([node.document.get(name) for name in ("filters", "compressor", "codecs")])
    if "pickle" in codecs.lower():
        raise UnsafeFileError(
            f"{path}: expected numbers in {quote_name(node.name)}, got pickles: reading them "
            "would run whatever code their author put in. Save the numbers themselves (float32)."
        )
    for link in (node.place, *_special_files(node.place)) if isinstance(node.place, Path) else ():
        if not link.is_file() and not link.is_dir() and link.exists():
            raise UnsafeFileError(
                f"{path}: expected files and folders in the store, got {link.name!r}, which is neither: "
                "reading would wait for it. Remove it."
            )
        _check_inside(path, link)
    if not node.can_be_map:
        raise WrongContentError(
            f"{path}: expected numbers of at least 2 dimensions in {quote_name(node.name)}, got the type "
            f"{node.dtype!r} and the shape {node.document.get('shape')}. Choose another array by --key."
        )


def _check_inside(path: Path, link: Path) -> None:
    if not is_inside(path, link):
        raise UnsafeFileError(
            f"{path}: expected all of the store in its folder, got the link {link.name!r}, which leads "
            "out of it. Copy the store with its links followed: cp -rL."
        )


def _special_files(folder: Path) -> Iterator[Path]:
    """Yield everything that is neither a file nor a folder itself: links, pipes, devices."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _special_files(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _open_array(path: Path, name: str, image: OmeImage | None) -> tuple[ChunkedArray, Any]:
    """Open an array; return it with its store, which is closed after it."""
    zarr = require("zarr", extra="io")
    kind = zarr.storage.LocalStore if path.is_dir() else zarr.storage.ZipStore
    store = kind(path, read_only=True)
    whole = zarr.open_array(store, path=name, mode="r")
    axes = image.kept_axes(whole.shape, path) if image else tuple(range(whole.ndim))
    array = ChunkedArray(path, whole, axes)
    check_map(path, name, array.shape, array.dtype)
    return array, store


def _check_written(path: Path, node: _Node) -> None:
    """Check that all chunks exist under the names that the description gives them, also those in shards."""
    document, shape = node.document, node.document["shape"]
    prefix, separator, sharding = "", ".", None
    if document.get("zarr_format") == 3:
        chunk = document["chunk_grid"]["configuration"]["chunk_shape"]
        encoding = document["chunk_key_encoding"]
        is_default = encoding["name"] == "default"
        separator = encoding.get("configuration", {}).get("separator", "/" if is_default else ".")
        prefix = f"c{separator}" if is_default else ""
        codecs = (codec for codec in document["codecs"] if isinstance(codec, dict))
        sharding = next((codec for codec in codecs if codec["name"] == "sharding_indexed"), None)
    else:
        chunk, separator = document["chunks"], document.get("dimension_separator") or "."
    count = missing = 0
    for place in itertools.product(*(range(-(-n // size)) for n, size in zip(shape, chunk, strict=True))):
        file = node.place.joinpath(prefix + separator.join(map(str, place)))
        is_there = file.is_file()
        if sharding is not None and is_there:
            corner = [number * size for number, size in zip(place, chunk, strict=True)]
            there = _chunks_in_shard(path, file, sharding["configuration"], corner, shape, chunk)
            count, missing = count + there.size, missing + int((~there).sum())
        else:
            count, missing = count + 1, missing + (not is_there)
    if missing:
        raise missing_chunks(
            path,
            node.name,
            f"only {count - missing} of {count} chunks",
            "Their names may also differ from the description (dimension_separator). If they are empty on "
            "purpose, fill them (--fill-missing), or save them with "
            "zarr.config.set({'array.write_empty_chunks': True}).",
        )


def _chunks_in_shard(
    path: Path, file: Any, sharding: Mapping[str, Any], corner: list[int], shape: list[int], shard: list[int]
) -> Any:
    """Return which chunks inside the array a shard has, by the index at its end or beginning."""
    inner = sharding["chunk_shape"]
    per_axis = [size // step for size, step in zip(shard, inner, strict=True)]
    names = [codec["name"] for codec in sharding["index_codecs"]]
    if names != ["bytes", "crc32c"] or sharding["index_codecs"][0]["configuration"]["endian"] != "little":
        raise WrongContentError(
            f"{path}: expected shards with an index in bytes and crc32c, got {', '.join(names)}. Save it "
            "without shards."
        )
    count = 16 * math.prod(per_axis)
    with file.open("rb") as opened:
        if sharding.get("index_location", "end") == "end":
            opened.seek(-count - 4, 2)
        index = np.frombuffer(opened.read(count), "<u8").reshape(*per_axis, 2)
    is_inside_array = [
        start + np.arange(number) * step < length
        for start, number, step, length in zip(corner, per_axis, inner, shape, strict=True)
    ]
    return (index != _ABSENT).any(-1)[np.ix_(*is_inside_array)]


# OME-Zarr


_ORDER = "czyx"
"""Axes of the arrays that are read: channels first, then space."""

_MILLIMETRES = {
    "angstrom": 1e-7,
    "nanometer": 1e-6,
    "micrometer": 1e-3,
    "millimeter": 1.0,
    "centimeter": 10.0,
    "decimeter": 100.0,
    "meter": 1000.0,
    "inch": 25.4,
}


@dataclass(frozen=True)
class OmeImage:
    """Description of an OME-Zarr image (0.4 and 0.5): its finest level, its axes, and where it lies.

    Attributes
    ----------
    level
        Path of the finest array, from the group of the image.
    axes
        Name of each axis of the array: t, c, z, y, x.
    units
        Unit of each axis; "" if the file does not say.
    transformations
        Transformations from pixels to the world in the order in which they are applied.
    channel_names
        Name of each channel, if the file has them.
    """

    level: str
    axes: tuple[str, ...]
    units: tuple[str, ...]
    transformations: tuple[Mapping[str, Any], ...]
    channel_names: tuple[str, ...]

    @property
    def has_channels(self) -> bool:
        """Whether there is an axis of channels."""
        return "c" in self.axes

    def kept_axes(self, shape: Sequence[int], path: Path) -> tuple[int, ...]:
        """Return the axes of the array that are channels, z, y and x, in this order."""
        if len(set(self.axes)) != len(shape) or not {"y", "x"} <= set(self.axes) <= set("tczyx"):
            raise WrongContentError(
                f"{path}: expected axes of t, c, z, y, x, one for each length of {tuple(shape)}, got "
                f"{', '.join(self.axes) or 'none'}."
            )
        if "t" in self.axes and (times := shape[self.axes.index("t")]) != 1:
            raise WrongContentError(
                f"{path}: expected an image of one time, got {times} times. Save each as an image of its own."
            )
        return tuple(self.axes.index(name) for name in _ORDER if name in self.axes)

    def names_of(self, count: int) -> tuple[str, ...]:
        """Return the names of the channels if there is one for each."""
        return self.channel_names if self.has_channels and len(self.channel_names) == count else ()

    def grid(self, shape: Sequence[int], path: Path) -> Grid | None:
        """Return the grid, if all axes in space have a unit and only scales and shifts are applied."""
        space = [self.axes.index(name) for name in "xyz" if name in self.axes]
        placed = _applied(self.transformations, len(self.axes))
        if placed is None or not all(self.units[axis] in _MILLIMETRES for axis in space):
            return None
        to_mm = np.array([_MILLIMETRES[self.units[axis]] for axis in space])
        spacing, origin = (values[space] * to_mm for values in placed)
        if not (np.isfinite(origin).all() and np.isfinite(spacing).all() and (spacing > 0.0).all()):
            raise GeometryError(
                f"{path}: expected finite steps above 0, got {spacing.tolist()} mm from {origin.tolist()} mm "
                "for x, y, z. Correct the scale of the image."
            )
        missing = 3 - len(space)
        return Grid.of_itk(
            tuple(int(shape[axis]) for axis in reversed(space)),
            spacing=np.pad(spacing, (0, missing), constant_values=1.0),
            origin=np.pad(origin, (0, missing)),
            is_oriented=False,
        )


def _applied(transformations: Sequence[Mapping[str, Any]], count: int) -> tuple[Any, Any] | None:
    """Return the step and the origin of each axis; ``None`` if that is not all there is."""
    steps, origin = np.ones(count), np.zeros(count)
    for transformation in transformations:
        match transformation:
            case {"type": "scale", "scale": values}:
                steps, origin = steps * np.asarray(values, float), origin * np.asarray(values, float)
            case {"type": "translation", "translation": values}:
                origin = origin + np.asarray(values, float)
            case {"type": "identity"}:
                pass
            case _:
                return None
    return (steps, origin) if transformations else None


def read_ome_image(attributes: Mapping[str, Any], path: Path) -> OmeImage | None:
    """Read the attributes of a group; ``None`` if it is not an image.

    Examples
    --------
    >>> level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 0.5]}]}
    >>> axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    >>> image = read_ome_image({"multiscales": [{"axes": axes, "datasets": [level]}]}, Path("cells.zarr"))
    >>> image.level, image.grid((7, 8), Path("cells.zarr")).spacing_mm
    ('0', (0.002, 0.0005))
    """
    ome = attributes.get("ome", attributes)
    if "multiscales" not in ome:
        return None
    try:
        scales = ome["multiscales"][0]
        finest = scales["datasets"][0]
        axes = [axis if isinstance(axis, dict) else {"name": axis} for axis in scales.get("axes", "tczyx")]
        return OmeImage(
            level=str(finest["path"]),
            axes=tuple(str(axis["name"]).lower() for axis in axes),
            units=tuple(str(axis.get("unit") or "") for axis in axes),
            transformations=(
                *finest.get("coordinateTransformations", ()),
                *scales.get("coordinateTransformations", ()),
            ),
            channel_names=tuple(
                str(channel.get("label", "")) for channel in ome.get("omero", {}).get("channels", ())
            ),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(
            f"{path}: expected the description of an OME-Zarr image, got one that cannot be read ({error!r})."
        ) from None
