"""What the formats share: an opened array, checks of what a file announces, and arrays read in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from segtrust._files import check_size, format_bytes, max_bytes
from segtrust.errors import DamagedFileError, SegtrustError, UnsafeFileError, WrongContentError
from segtrust.io.grid import Grid
from segtrust.kernels import channel_of

__all__ = [
    "MAPS",
    "MASKS",
    "MOST_NODES",
    "NUMBERS",
    "TRUTHS",
    "ChunkedArray",
    "Volume",
    "check_chunks",
    "check_complete",
    "check_grid",
    "check_map",
    "check_nodes",
    "check_not_packed",
    "check_numbers",
    "check_shape",
    "choose_name",
    "greys_of_palette",
    "is_beside",
    "is_inside",
    "is_large",
    "list_names",
    "missing_chunks",
    "quote_name",
    "read_chunked",
    "reading",
]

NUMBERS = "biuf"
"""Kinds of NumPy types that can be pixels."""
MAPS = (
    *("probabilities", "probability", "softmax", "p_hat", "prediction", "predictions"),
    *("probs", "prob", "sigmoid", "preds", "pred"),
)
MASKS = ("mask", "masks", "y_hat", "segmentation", "seg", "labels", "label")
TRUTHS = ("truth", "ground_truth", "gt", "y", "labels", "label", "mask", "masks", "segmentation", "seg")
"""Usual names of arrays, the most specific first."""
MOST_NODES = 2_000
"""Groups and arrays that are searched for a map if no key is given."""
_LISTED = 20
_LONGEST_REASON = 200
_AT_ONCE = 256 << 20
"""Bytes up to which a chunked array is read whole, so that its file can be closed: thousands of cases may
follow."""
_CHUNKWISE = 64
"""How many times larger than the limit an array may be that is read chunk by chunk."""
_MOST_CHUNKS, _LEAST_CHUNK = 32_768, 4096
"""Chunks of any size, and bytes per chunk on average if there are more: each takes time to find."""


@dataclass(frozen=True, eq=False)
class Volume:
    """An array that has been opened but not yet read, with what its file says about it.

    Attributes
    ----------
    path
        The file, or another name for it in errors.
    shape
        Shape of the whole array as `read` returns it: channels first, if there are any, then (z, y, x) or
        (y, x).
    dtype
        NumPy type of the array.
    load
        Function that reads the whole array (``None``) or one channel. An array that is read chunk by chunk
        (Zarr, HDF5) may be returned unread.
    has_channels
        Whether the first axis holds channels; ``None`` if the file does not say.
    grid
        Where the pixels lie in space, without channels; ``None`` if the file does not say.
    channel_names
        Name of each channel, if the file has them.
    lazy
        Whether `load` returns an array without reading its pixels, so that it may be larger than the memory.
    is_cropped
        Whether slices that hold nothing may be absent, as in DICOM segmentations.
    in_order
        Whether reading the channels in their order costs little more than reading all of them at once.
    """

    path: Path | str
    shape: tuple[int, ...]
    dtype: Any
    load: Callable[[int | None], Any]
    has_channels: bool | None = None
    grid: Grid | None = None
    channel_names: tuple[str, ...] = ()
    lazy: bool = False
    is_cropped: bool = False
    in_order: bool = False

    @property
    def bytes(self) -> int:
        """Memory that the whole array takes."""
        return math.prod(self.shape) * int(np.dtype(self.dtype).itemsize)

    def read(self, channel: int | None = None) -> Any:
        """Read the array, or one of its channels."""
        if channel is not None:
            self.check_channel(channel)
        if not self.lazy:
            check_size(self.path, self.bytes if channel is None else self.bytes // self.shape[0])
        return self.load(channel)

    def ready_for(self, structures: int) -> Volume:
        """Return a volume from which this many structures can be read one after the other."""
        return self if structures < 2 or self.lazy or self.in_order else self.in_memory()

    def in_memory(self) -> Volume:
        """Read all channels at once: to decompress the third one, the first two are decompressed as well."""
        whole = self.read()
        return replace(self, load=lambda channel: whole if channel is None else whole[channel])

    def check_channel(self, channel: int) -> None:
        """Check that a channel exists; a row of a flat map is not a channel."""
        fewest = 2 if self.has_channels else 3
        if self.has_channels is False or len(self.shape) < fewest:
            raise WrongContentError(
                f"{self.path}: expected channels to choose number {channel} from, got one map of shape "
                f"{self.shape}."
            )
        if not 0 <= channel < self.shape[0]:
            raise WrongContentError(
                f"{self.path}: expected a channel from 0 to {self.shape[0] - 1}, got {channel}."
            )


# What a file announces


@contextmanager
def reading(path: Path | str, expected: str) -> Iterator[None]:
    """Name the file in whatever a library raises about it; libraries raise nearly everything."""
    try:
        yield
    except (SegtrustError, FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - see above
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        raise DamagedFileError(
            f"{path}: expected {expected}, got one that cannot be read ({reason}). It may be truncated: copy "
            "it again."
        ) from None


def check_complete(path: Path, expected: int, received: int, *, exactly: bool = False) -> None:
    """Check that a file holds as many bytes as its header announces; more only unless ``exactly``.

    Examples
    --------
    >>> check_complete(Path("a.nii"), 96, 64)
    Traceback (most recent call last):
    ...
    segtrust.errors.DamagedFileError: a.nii: expected 96 bytes by its own header, got 64. The file is ...
    """
    if received < expected:
        raise DamagedFileError(
            f"{path}: expected {expected} bytes by its own header, got {received}. The file is truncated: "
            "copy it again."
        )
    if exactly and received > expected:
        raise DamagedFileError(
            f"{path}: expected {expected} bytes by its own header, got {received}. Pixels that the header "
            "does not know would be left out: correct the header, or save it again."
        )


def check_grid(path: Path, grid: Grid) -> Grid:
    """Check that pixels have an extent and a place; return the grid."""
    steps = grid.affine[:3, :3]
    if not np.isfinite(grid.affine).all() or not np.linalg.det(steps):
        raise DamagedFileError(
            f"{path}: expected a place in space, got {grid}. Save it again with the geometry of its image."
        )
    return grid


def check_shape(path: Path | str, shape: tuple[int, ...], dtype: Any) -> None:
    """Check that an array can have this shape, without allocating it."""
    try:
        np.broadcast_to(np.empty((), dtype), shape)
    except (ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path}: expected the shape of an array, got {shape} ({error}).") from None


def check_numbers(path: Path | str, dtype: Any) -> Any:
    """Check that a pixel is one real number; return the type."""
    kind = np.dtype(dtype)
    if kind.kind not in NUMBERS:
        raise WrongContentError(
            f"{path}: expected one real number per pixel, got {kind}. Save one channel of it."
        )
    return kind


def greys_of_palette(path: Path | str, numbers: Any, greys: Any) -> Any:
    """Return the grey levels that a palette shows for the numbers of an image.

    Raises
    ------
    WrongContentError
        If the palette is inverted: higher numbers are darker. Viewers show the inverse of what most programs
        read, so either may be the foreground.
    """
    steps = np.diff(greys[np.union1d(numbers, np.arange(min(2, len(greys))))].astype(int))
    if steps.any() and (steps <= 0).all():
        raise WrongContentError(
            f"{path}: expected 0 to be black, got an inverted palette, in which higher numbers are darker, "
            "so either may be the foreground. Save it without a palette, as a grey image in which the "
            "foreground is white."
        )
    return greys[numbers]


def is_inside(folder: Path, path: Path) -> bool:
    """Return whether a path lies in a folder after links have been followed."""
    return path.resolve().is_relative_to(folder.resolve())


def is_beside(path: Path, other: Path) -> bool:
    """Return whether a file lies in the folder of another, or in the folder that a link leads to.

    So a header and its pixels may both be links to files of one folder.
    """
    return is_inside(path.parent, other) or is_inside(path.resolve().parent, other)


# Files that hold several arrays


def list_names(names: Sequence[str]) -> str:
    """Return names for an error message, the first of them if there are many.

    Examples
    --------
    >>> list_names(["a", "b/c"]), list_names([])
    ("'a', 'b/c'", 'none')
    """
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(map(repr, names[:_LISTED])) or "none") + more


def choose_name(path: Path, names: Sequence[str], usual: Sequence[str] = MAPS) -> str:
    """Return the only name, or the only one that is a usual name.

    Examples
    --------
    >>> choose_name(Path("case.h5"), ["image", "model/softmax", "mask"])
    'model/softmax'
    >>> choose_name(Path("a.h5"), ["image", "other"])
    Traceback (most recent call last):
    ...
    segtrust.errors.WrongContentError: a.h5: expected one array, or one called 'probabilities', got 'image',
    'other'. Say which by --key.
    >>> choose_name(Path("case.h5"), ["image", "mask"], MASKS)
    'mask'
    """
    if len(names) == 1:
        return names[0]
    for word in usual:
        matching = [name for name in names if PurePosixPath(name).name.lower() == word]
        if len(matching) == 1:
            return matching[0]
        if matching:
            break
    remedy = (
        "Say which by --key." if names else "Arrays of numbers with at least 2 dimensions are looked for."
    )
    raise WrongContentError(
        f"{path}: expected one array, or one called {usual[0]!r}, got {list_names(names)}. {remedy}"
    )


def quote_name(name: str) -> str:
    """Return the name of an array for an error message; the root of a store has none.

    Examples
    --------
    >>> quote_name("model/softmax"), quote_name("")
    ("'model/softmax'", 'the array')
    """
    return repr(name) if name else "the array"


def check_nodes(path: Path, names: list[str]) -> list[str]:
    """Check that not too many groups and arrays were searched; return the names that are not empty."""
    if len(names) > MOST_NODES:
        raise WrongContentError(
            f"{path}: expected at most {MOST_NODES} groups and arrays to search, got more. Say which by "
            "--key."
        )
    return [name for name in names if name]


def check_map(path: Path, name: str, shape: Sequence[int] | None, dtype: Any) -> None:
    """Check that an array can be a map, and is not text, objects, records or a row of numbers."""
    if np.dtype(dtype).kind not in NUMBERS:
        raise WrongContentError(
            f"{path}: expected numbers in {quote_name(name)}, got the type {dtype}. Choose another array by "
            "--key."
        )
    if shape is None or len(shape) < 2:
        raise WrongContentError(
            f"{path}: expected at least 2 dimensions in {quote_name(name)}, got the shape {shape}. Choose "
            "another array by --key."
        )


def check_not_packed(path: Path, name: str, attributes: Mapping[str, Any]) -> None:
    """Check that the stored numbers are the values, and not scaled and shifted as by the CF conventions."""
    packing = {key: attributes[key] for key in ("scale_factor", "add_offset") if key in attributes}
    try:
        is_plain = all(
            np.all(np.asarray(value, np.float64) == (key == "scale_factor")) for key, value in packing.items()
        )
    except (TypeError, ValueError):
        is_plain = False
    if not is_plain:
        listed = ", ".join(f"{key} {value}" for key, value in packing.items())
        raise WrongContentError(
            f"{path}: expected the values themselves in {quote_name(name)}, got packed ones ({listed}, of "
            "the CF conventions). Unpack them, for example with xarray, and save them as float32."
        )


# Arrays that are read chunk by chunk


@dataclass(frozen=True, eq=False)
class ChunkedArray:
    """An array on a disk, with its axes in another order if necessary, of which parts are read on request.

    Attributes
    ----------
    path
        File that errors name.
    whole
        The library's array.
    axes
        Axis of ``whole`` for each axis of this array; the first element of all others is taken.
    """

    path: Path
    whole: Any
    axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return tuple(int(self.whole.shape[axis]) for axis in self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def dtype(self) -> Any:
        """NumPy type of the array."""
        return np.dtype(self.whole.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Number of pixels of a chunk along each axis; ``None`` for an array without chunks."""
        chunks = self.whole.chunks
        return None if chunks is None else tuple(int(chunks[axis]) for axis in self.axes)

    def __getitem__(self, index: tuple[Any, ...]) -> Any:
        """Read a part, selected by a slice or a number for each axis."""
        selection: list[Any] = [0] * len(self.whole.shape)
        for axis, part in zip(self.axes, index, strict=True):
            selection[axis] = part
        kept = [axis for axis, part in zip(self.axes, index, strict=True) if isinstance(part, slice)]
        with reading(self.path, "a part of an array"):
            part = np.asarray(self.whole[tuple(selection)])
        return part.transpose(np.argsort(np.argsort(kept)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read the whole array."""
        return np.asarray(self[(slice(None),) * self.ndim], dtype=dtype)


def is_large(count: int) -> bool:
    """Return whether an array of this many bytes is read chunk by chunk."""
    return count > min(_AT_ONCE, max_bytes())


def check_chunks(array: ChunkedArray) -> None:
    """Check the size of a chunk, which is decompressed whole, of all chunks together, and their number."""
    whole, itemsize = array.whole, array.dtype.itemsize
    size = math.prod(map(int, whole.shape)) * itemsize
    if whole.chunks is not None:
        check_size(array.path, math.prod(map(int, whole.chunks)) * itemsize)
    if size > _CHUNKWISE * max_bytes():
        raise UnsafeFileError(
            f"{array.path}: expected at most {format_bytes(_CHUNKWISE * max_bytes())} to be read chunk by "
            f"chunk, got an array of {format_bytes(size)}. If that is right, allow it: "
            f"SEGTRUST_MAX_BYTES={-(-size // _CHUNKWISE)}."
        )
    count = 0 if whole.chunks is None else count_chunks(whole.shape, whole.chunks)
    if count > _MOST_CHUNKS + size // _LEAST_CHUNK:
        raise UnsafeFileError(
            f"{array.path}: expected chunks of {_LEAST_CHUNK} bytes or more, got {count} chunks of "
            f"{whole.chunks} pixels, which would take hours to read. Save it in larger chunks."
        )


def count_chunks(shape: Sequence[int], chunks: Sequence[int]) -> int:
    """Return the number of chunks of an array."""
    return math.prod(-(-int(n) // max(int(one), 1)) for n, one in zip(shape, chunks, strict=True))


def missing_chunks(path: Path, name: str, missing: str, remedy: str) -> DamagedFileError:
    """Return the error about parts of an array that were never written."""
    return DamagedFileError(
        f"{path}: expected all parts of {quote_name(name)}, got {missing}. The writer may "
        f"have been interrupted: write it again. {remedy}"
    )


def read_chunked(array: ChunkedArray, channel: int | None, close: Callable[[], None]) -> Any:
    """Read an array or a channel and close its file; return a large one unread."""
    values = array if channel is None else channel_of(array, channel)
    if is_large(math.prod(values.shape) * array.dtype.itemsize):
        return values
    try:
        return np.asarray(values)
    finally:
        close()
