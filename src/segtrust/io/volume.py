"""Opening an array: a file finds its reader by what it holds."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._arguments import describe
from segtrust.errors import (
    DamagedFileError,
    PluginError,
    SegtrustError,
    UnknownFormatError,
    WrongContentError,
)
from segtrust.io.array_ref import ArrayRef
from segtrust.io.formats._common import MAPS, MASKS, TRUTHS, Volume
from segtrust.io.formats.dicom import open_dicom, recognises_dicom
from segtrust.io.formats.hdf5 import open_hdf5, recognises_hdf5
from segtrust.io.formats.image import open_image, open_image_labels, recognises_image
from segtrust.io.formats.itk import open_itk, recognises_itk
from segtrust.io.formats.nifti import open_nifti, recognises_nifti
from segtrust.io.formats.nnunet import open_nnunet, recognises_nnunet
from segtrust.io.formats.numpy import open_npy, open_npz, recognises_npy, recognises_npz
from segtrust.io.formats.pickle import open_trusted
from segtrust.io.formats.tiff import open_tiff, open_tiff_labels, recognises_tiff
from segtrust.io.formats.zarr import open_zarr, recognises_zarr
from segtrust.io.names import MAP_ENDINGS, ending_of
from segtrust.plugins import Plugin, find_plugin

__all__ = [
    "MAPS",
    "MASKS",
    "READERS",
    "TRUTHS",
    "Reader",
    "Volume",
    "missing_package",
    "open_labels",
    "open_volume",
    "read_map",
    "reader_of_ending",
]

_HEAD = 512
_PICKLES = (".pkl", ".pickle", ".pt", ".pth")


@dataclass(frozen=True)
class Reader:
    """A file format. Another package may offer one under the ending of its files.

    Attributes
    ----------
    name
        Name of the format in errors.
    recognises
        Function that decides from a path and the first 512 bytes whether a file has this format.
    open
        Function that opens the array with a key, or the usual one (``None``).
    open_labels
        The same for masks and ground truth, with their usual names, if this differs from maps.
    needs
        Package of the extra ``io`` without which no file of this format can be opened; empty for none.
    can_fill
        Whether the functions that open a file take ``fill_missing=True``, to fill parts that were never
        written.
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    open: Callable[..., Volume]
    open_labels: Callable[..., Volume] | None = None
    needs: str = ""
    can_fill: bool = False


READERS = (
    Reader("nnU-Net probabilities", recognises_nnunet, open_nnunet),
    Reader("NumPy archive", recognises_npz, open_npz),
    Reader("NumPy array", recognises_npy, open_npy),
    Reader("NIfTI", recognises_nifti, open_nifti, needs="nibabel"),
    Reader("DICOM segmentation", recognises_dicom, open_dicom, needs="pydicom"),
    Reader("HDF5", recognises_hdf5, open_hdf5, open_hdf5, needs="h5py", can_fill=True),
    Reader("Zarr", recognises_zarr, open_zarr, open_zarr, needs="zarr", can_fill=True),
    Reader("TIFF", recognises_tiff, open_tiff, open_tiff_labels, needs="tifffile", can_fill=True),
    Reader("PNG, BMP or WebP", recognises_image, open_image, open_image_labels, needs="PIL"),
    Reader("MetaImage or NRRD", recognises_itk, open_itk, needs="SimpleITK"),
)
"""The formats, most specific first."""


def read_map(
    path: str | Path, *, key: str | None = None, index: int | None = None, channel: int | None = None
) -> Any:
    """Read one array from a file of any supported format.

    Parameters
    ----------
    path
        The file, or the folder of a Zarr store.
    key
        Name of the array in a file that holds several; the only one, or the one with a usual name, if
        ``None``.
    index
        Number along the first axis, if a file holds many cases in one array.
    channel
        Number of the channel to read; all of them if ``None``.

    Returns
    -------
    numpy.ndarray
        The array as it is stored: channels first, if there are any, then (z, y, x) or (y, x).

    Raises
    ------
    UnknownFormatError
        If no reader recognises the file.
    ReadError
        If the file is corrupt, unsafe to read, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "map.npy"
    >>> np.save(path, np.full((2, 4, 5), 0.5, np.float32))
    >>> read_map(path, channel=1).shape
    (4, 5)
    """
    return np.asarray(open_volume(ArrayRef(Path(path), key, index)).read(channel))


def open_volume(ref: ArrayRef, *, fill_missing: bool = False) -> Volume:
    """Open a map; no pixel is read yet.

    Parameters
    ----------
    ref
        Location of the array.
    fill_missing
        Whether parts of a chunked file that were never written have the fill value; an error otherwise.

    Raises
    ------
    UnknownFormatError
        If no reader recognises the file.
    ReadError
        If it is corrupt, unsafe to read, or holds something else.
    """
    if ref.is_trusted:
        return open_trusted(ref)
    reader = _find_reader(ref.path)
    volume = reader.open(ref.path, ref.key, **_filling(reader, fill_missing))
    return volume if ref.index is None else _one_case(volume, ref, fill_missing)


def open_labels(ref: ArrayRef, usual: Sequence[str] = TRUTHS, *, fill_missing: bool = False) -> Volume:
    """Open a mask or ground truth by its usual names as `open_volume` opens a map; no pixel is read yet."""
    reader = None if ref.is_trusted or ref.index is not None else _find_reader(ref.path)
    if reader is None or reader.open_labels is None:
        return open_volume(ref, fill_missing=fill_missing)
    return reader.open_labels(ref.path, ref.key, usual, **_filling(reader, fill_missing))


def missing_package(ref: ArrayRef) -> str:
    """Return the name of the package that is needed to open a file and not installed; empty if there is none.

    Examples
    --------
    >>> missing_package(ArrayRef(Path("nowhere.nii.gz")))  # other problems are reported when it is read
    ''
    """
    try:
        needed = "" if ref.is_trusted else _find_reader(ref.path).needs
    except (SegtrustError, OSError):
        return ""
    return needed if needed and find_spec(needed) is None else ""


def reader_of_ending(ending: str) -> Reader | None:
    """Return the reader that another package offers for an ending without its dot; ``None`` if there is none.

    Raises
    ------
    PluginError
        If it cannot be loaded, is not a reader, or several packages offer one.

    Examples
    --------
    >>> reader_of_ending("npy") is None
    True
    """
    plugin = None if not ending or f".{ending}" in MAP_ENDINGS else find_plugin("readers", ending)
    return None if plugin is None else plugin.load(lambda value: _guarded(value, plugin))


def _filling(reader: Reader, fill_missing: bool) -> dict[str, bool]:
    return {"fill_missing": True} if fill_missing and reader.can_fill else {}


def _find_reader(path: Path) -> Reader:
    head = _first_bytes(path)
    for reader in READERS:
        if reader.recognises(path, head):
            return reader
    added = reader_of_ending(ending_of(path)[1:])
    if added is not None and added.recognises(path, head):
        return added
    listed = ", ".join(reader.name for reader in (*READERS, *([] if added is None else [added])))
    if path.suffix.lower() in _PICKLES:
        raise UnknownFormatError(
            f"{path}: expected one of {listed}; got a pickle, which can run any code when it is loaded, so "
            "it is not loaded. Save the probabilities by numpy.savez_compressed; or, if you made the file "
            "yourself, --allow-pickle."
        )
    raise UnknownFormatError(f"{path}: expected one of {listed}; got a file that is none of them.")


def _first_bytes(path: Path) -> bytes:
    """Read the beginning of a file once, for all readers; nothing of a folder."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return b""
        if not stat.S_ISREG(mode):  # reading a pipe would wait without end
            raise UnknownFormatError(f"{path}: expected a file, got a pipe, a socket or a device.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise UnknownFormatError(f"{path}: no such file.") from None
    except OSError as error:
        raise DamagedFileError(
            f"{path}: expected a file that can be read, got: {error.strerror}. Check its permissions, and "
            "what it is a link to."
        ) from None
    if not head:
        raise DamagedFileError(f"{path}: expected data, got an empty file. Was it still being written?")
    return head


def _one_case(volume: Volume, ref: ArrayRef, fill_missing: bool) -> Volume:
    """Return one of the cases that are stacked in an array; the array is read once, not once per case."""
    index = ref.index
    count = volume.shape[0] if volume.shape else 0
    if index is None or not 0 <= index < count:
        raise WrongContentError(f"{ref}: expected the number of one of {count} cases, got {index}.")

    def load(channel: int | None) -> Any:
        stack = _read_stack(ref.path, ref.key, fill_missing, ref.path.stat().st_mtime_ns)
        one = (slice(index, index + 1), *[slice(None)] * len(shape))  # a chunked array takes slices only
        part = np.asarray(stack[one])[0]
        return part if channel is None else part[channel]

    shape = volume.shape[1:]
    return replace(volume, path=str(ref), shape=shape, load=load, has_channels=None, in_order=False)


@lru_cache(maxsize=3)  # maps, masks and ground truth of one file
def _read_stack(path: Path, key: str | None, fill_missing: bool, modified_ns: int) -> Any:
    return open_volume(ArrayRef(path, key), fill_missing=fill_missing).read()


def _guarded(reader: Any, plugin: Plugin) -> Reader:
    """Check what a package offers, and name the package in whatever goes wrong in it."""
    if not isinstance(reader, Reader):
        raise PluginError(f"expected a segtrust.io.volume.Reader, got {describe(reader)}")

    def guard(function: Callable[..., Any], kind: type) -> Callable[..., Any]:
        def call(path: Path, *arguments: Any, **options: Any) -> Any:
            try:
                value = function(path, *arguments, **options)
            except (SegtrustError, MemoryError):
                raise
            except Exception as error:
                raise DamagedFileError(
                    f"{path}: expected a file that {plugin} can read, got {type(error).__name__}: {error}."
                ) from error
            if not isinstance(value, kind):
                raise PluginError(f"{path}: expected {kind.__name__} from {plugin}, got {describe(value)}.")
            return value

        return call

    labels = reader.open_labels
    return replace(
        reader,
        recognises=guard(reader.recognises, bool),
        open=guard(reader.open, Volume),
        open_labels=None if labels is None else guard(labels, Volume),
    )
