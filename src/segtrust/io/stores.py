"""What files of many arrays have in common: which one is meant, and how it is read as it is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from segtrust._files import check_size, max_bytes
from segtrust.errors import DamagedFileError, SegtrustError, UnsafeFileError, WrongContentError
from segtrust.io.volumes import check_pieces
from segtrust.kernels import channel_of

__all__ = [
    "MAPS",
    "MASKS",
    "MOST_NODES",
    "NUMBERS",
    "TRUTHS",
    "Stored",
    "beside",
    "check_map",
    "check_piece",
    "chosen_name",
    "inside",
    "is_large",
    "listed",
    "pixels_of",
    "reading",
    "too_many_nodes",
]

NUMBERS = "biuf"
"""Kinds of NumPy types that may be pixels."""

_AT_ONCE = 256 << 20
"""Bytes up to which an array is read whole, so that its file is closed at once: of thousands of cases none
stays open."""

MAPS = (
    *("probabilities", "probability", "softmax", "p_hat", "prediction", "predictions"),
    *("probs", "prob", "sigmoid", "preds", "pred"),
)
MASKS = ("mask", "masks", "y_hat", "segmentation", "seg", "labels", "label")
TRUTHS = ("truth", "ground_truth", "gt", "y", "labels", "label", "mask", "masks", "segmentation", "seg")
"""Usual names of arrays, the surest first."""
_LISTED = 20
MOST_NODES = 2_000
"""Groups and arrays that are looked at to find a map, where none is named."""
_MOST_CHUNKS = 32_768
_LEAST_CHUNK = 4096
"""Bytes of a chunk, at least and on average, where there are more than that: each takes time to be found."""
_LONGEST_REASON = 200


@contextmanager
def reading(path: Path | str, expected: str) -> Iterator[None]:
    """Name the file in whatever a library says of it; libraries raise nearly everything."""
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


def inside(folder: Path, place: Path) -> bool:
    """Tell whether a place lies in a folder, links followed."""
    return place.resolve().is_relative_to(folder.resolve())


def beside(path: Path, place: Path) -> bool:
    """Tell whether a place lies in the folder of a file, or in that to which a file that is a link leads.

    So a header and its pixels may both be links to what lies in one folder.
    """
    return inside(path.parent, place) or inside(path.resolve().parent, place)


def listed(names: Sequence[str]) -> str:
    """Give names for an error, the first of them if they are many.

    Examples
    --------
    >>> listed(["a", "b/c"]), listed([])
    ("'a', 'b/c'", 'none')
    """
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return (", ".join(map(repr, names[:_LISTED])) or "none") + more


def chosen_name(path: Path, names: Sequence[str], usual: Sequence[str] = MAPS) -> str:
    """Give the only array, or the only one of a usual name.

    Examples
    --------
    >>> chosen_name(Path("case.h5"), ["image", "model/softmax", "mask"])
    'model/softmax'
    >>> chosen_name(Path("a.h5"), ["image", "other"])
    Traceback (most recent call last):
    ...
    segtrust.errors.WrongContentError: a.h5: expected one array, or one called 'probabilities', got 'image',
    'other'. Say which by --key.
    >>> chosen_name(Path("case.h5"), ["image", "mask"], MASKS)
    'mask'
    """
    if len(names) == 1:
        return names[0]
    for each in usual:
        found = [name for name in names if PurePosixPath(name).name.lower() == each]
        if len(found) == 1:
            return found[0]
        if found:
            break
    remedy = (
        "Say which by --key." if names else "Arrays of numbers with at least 2 dimensions are looked for."
    )
    raise WrongContentError(
        f"{path}: expected one array, or one called {usual[0]!r}, got {listed(names)}. {remedy}"
    )


def check_map(path: Path, name: str, shape: Sequence[int] | None, dtype: Any) -> None:
    """Refuse an array that cannot be a map: text, objects, records, or a row of numbers."""
    if np.dtype(dtype).kind not in NUMBERS:
        raise WrongContentError(
            f"{path}: expected numbers in {name!r}, got the type {dtype}. Choose another array by --key."
        )
    if shape is None or len(shape) < 2:
        raise WrongContentError(
            f"{path}: expected at least 2 dimensions in {name!r}, got the shape {shape}. Choose another "
            "array by --key."
        )


def is_large(count: int) -> bool:
    """Tell whether so many bytes are to be read as they are needed."""
    return count > min(_AT_ONCE, max_bytes())


@dataclass(frozen=True, eq=False)
class Stored:
    """An array on a disk, its axes in another order if need be, of which a piece is read when asked for.

    Attributes
    ----------
    path
        Named when a piece cannot be read.
    whole
        The array of the library.
    axes
        Axis of ``whole`` for each axis of this; of the others the first element is taken.
    """

    path: Path
    whole: Any
    axes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Pixels along each axis."""
        return tuple(int(self.whole.shape[axis]) for axis in self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @property
    def dtype(self) -> Any:
        """NumPy's."""
        return np.dtype(self.whole.dtype)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Pixels of a chunk along each axis; ``None`` of an array that lies in one piece."""
        chunks = self.whole.chunks
        return None if chunks is None else tuple(int(chunks[axis]) for axis in self.axes)

    def __getitem__(self, index: tuple[Any, ...]) -> Any:
        """Read a piece, given by a slice or a number for each axis."""
        where: list[Any] = [0] * len(self.whole.shape)
        for axis, part in zip(self.axes, index, strict=True):
            where[axis] = part
        kept = [axis for axis, part in zip(self.axes, index, strict=True) if isinstance(part, slice)]
        with reading(self.path, "a piece of an array"):
            piece = np.asarray(self.whole[tuple(where)])
        return piece.transpose(np.argsort(np.argsort(kept)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Read it all, for who needs it in memory."""
        return np.asarray(self[(slice(None),) * self.ndim], dtype=dtype)


def too_many_nodes(path: Path) -> WrongContentError:
    """Say that a file is not searched to its end."""
    return WrongContentError(
        f"{path}: expected at most {MOST_NODES} groups and arrays to look at, got more. Say which by --key."
    )


def check_piece(stored: Stored) -> None:
    """Refuse chunks larger than an array may be, as a chunk is unpacked whole, and those beyond number."""
    whole = stored.whole
    size = math.prod(map(int, whole.shape)) * stored.dtype.itemsize
    if whole.chunks is not None:
        check_size(stored.path, math.prod(map(int, whole.chunks)) * stored.dtype.itemsize)
    check_pieces(stored.path, size)
    if whole.chunks is None:
        return
    count = math.prod(
        -(-int(n) // max(int(one), 1)) for n, one in zip(whole.shape, whole.chunks, strict=True)
    )
    if count > _MOST_CHUNKS + size // _LEAST_CHUNK:
        raise UnsafeFileError(
            f"{stored.path}: expected chunks of {_LEAST_CHUNK} bytes or more, got {count} chunks of "
            f"{whole.chunks} pixels, which would take hours to read. Save it in larger chunks."
        )


def pixels_of(stored: Stored, channel: int | None, close: Callable[[], None]) -> Any:
    """Read an array, or a channel, and close its file; give a large one as it is, to be read in pieces."""
    values = stored if channel is None else channel_of(stored, channel)
    if is_large(math.prod(values.shape) * stored.dtype.itemsize):
        return values
    try:
        return np.asarray(values)
    finally:
        close()
