"""All readers: a file finds its own by what it holds."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from segtrust._arguments import describe
from segtrust.errors import (
    DamagedFileError,
    PluginError,
    SegtrustError,
    UnknownFormatError,
    WrongContentError,
)
from segtrust.io.dicomseg import open_dicomseg, recognises_dicomseg
from segtrust.io.hdf5 import open_hdf5, recognises_hdf5
from segtrust.io.images import open_image, recognises_image
from segtrust.io.itk import open_itk, recognises_itk
from segtrust.io.names import ENDINGS, ending_of
from segtrust.io.nifti import open_nifti, recognises_nifti
from segtrust.io.nnunet import open_nnunet, recognises_nnunet
from segtrust.io.npy import open_npy, recognises_npy
from segtrust.io.npz import open_npz, recognises_npz
from segtrust.io.places import Place
from segtrust.io.tiff import open_tiff, recognises_tiff
from segtrust.io.untrusted import open_unpickled
from segtrust.io.volumes import Volume
from segtrust.io.zarrs import open_zarr, recognises_zarr
from segtrust.plugins import Plugin, find_plugin

__all__ = ["READERS", "Reader", "missing_package", "open_labels", "open_volume", "reader_of_ending"]

_HEAD = 512
_PICKLES = (".pkl", ".pickle", ".pt", ".pth")


@dataclass(frozen=True)
class Reader:
    """A format. Another package may offer one under the ending of its files.

    Attributes
    ----------
    name
        In errors.
    recognises
        Tells from a path and the first bytes whether a file is of this format.
    open
        Gives its array, of the name that is given or the usual one.
    open_labels
        The same for masks and truths, with the usual names of these, where a file may hold several arrays.
    needs
        Package without which no file of this format can be opened, of the extra ``io``; empty for none.
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    open: Callable[[Path, str | None], Volume]
    open_labels: Callable[[Path, str | None, Sequence[str]], Volume] | None = None
    needs: str = ""


READERS = (
    Reader("nnU-Net probabilities", recognises_nnunet, open_nnunet),
    Reader("NumPy archive", recognises_npz, open_npz),
    Reader("NumPy array", recognises_npy, open_npy),
    Reader("NIfTI", recognises_nifti, open_nifti, needs="nibabel"),
    Reader("DICOM segmentation", recognises_dicomseg, open_dicomseg, needs="pydicom"),
    Reader("HDF5", recognises_hdf5, open_hdf5, open_hdf5, needs="h5py"),
    Reader("Zarr", recognises_zarr, open_zarr, open_zarr, needs="zarr"),
    Reader("TIFF", recognises_tiff, open_tiff, needs="tifffile"),
    Reader("PNG, BMP or WebP", recognises_image, open_image, needs="PIL"),
    Reader("MetaImage or NRRD", recognises_itk, open_itk, needs="SimpleITK"),
)
"""Most specific first."""


def open_labels(place: Place, usual: Sequence[str]) -> Volume:
    """Open a mask or a truth, by its usual names; no pixel is read yet. Raises what `open_volume` does."""
    reader = None if place.is_trusted or place.index is not None else _reader_of(place.path)
    if reader is None or reader.open_labels is None:
        return open_volume(place)
    return reader.open_labels(place.path, place.key, usual)


def open_volume(place: Place) -> Volume:
    """Open the map that lies at a place; no pixel is read yet.

    Raises
    ------
    UnknownFormatError
        If no reader knows the file.
    ReadError
        If it is damaged, unsafe to read, or holds something else.
    """
    if place.is_trusted:
        return open_unpickled(place)
    volume = _reader_of(place.path).open(place.path, place.key)
    return volume if place.index is None else _one_of(volume, place)


def missing_package(place: Place) -> str:
    """Name the package that is needed to open a file and is not installed; empty where none is.

    Examples
    --------
    >>> missing_package(Place(Path("nowhere.nii.gz")))  # what else is wrong is told when it is read
    ''
    """
    try:
        needed = "" if place.is_trusted else _reader_of(place.path).needs
    except (SegtrustError, OSError):
        return ""
    return needed if needed and find_spec(needed) is None else ""


def _reader_of(path: Path) -> Reader:
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
            f"{path}: expected one of {listed}; got a pickle, which can run any code when it is loaded, and "
            "so is not. Save the probabilities by numpy.savez_compressed; or, if you made the file yourself, "
            "--allow-pickle."
        )
    raise UnknownFormatError(f"{path}: expected one of {listed}; got a file that is none of them.")


def reader_of_ending(ending: str) -> Reader | None:
    """Give the reader that another package offers for an ending, written without its dot; else ``None``.

    Raises
    ------
    PluginError
        If it cannot be loaded, is none, or several packages offer one.

    Examples
    --------
    >>> reader_of_ending("npy") is None
    True
    """
    plugin = None if not ending or f".{ending}" in ENDINGS else find_plugin("readers", ending)
    return None if plugin is None else plugin.load(lambda found: _guarded(found, plugin))


def _guarded(reader: Any, plugin: Plugin) -> Reader:
    """Check what a package offers, and let it answer for what happens in it."""
    if not isinstance(reader, Reader):
        raise PluginError(f"expected a segtrust.io.readers.Reader, got {describe(reader)}")

    def guard(function: Callable[..., Any], kind: type) -> Callable[..., Any]:
        return lambda path, *more: _answered(plugin, path, kind, lambda: function(path, *more))

    labels = reader.open_labels
    return Reader(
        reader.name,
        guard(reader.recognises, bool),
        guard(reader.open, Volume),
        None if labels is None else guard(labels, Volume),
    )


def _answered(plugin: Plugin, path: Path, kind: type, call: Callable[[], Any]) -> Any:
    try:
        found = call()
    except (SegtrustError, MemoryError):
        raise
    except Exception as error:
        raise DamagedFileError(
            f"{path}: expected a file that {plugin} can read, got {type(error).__name__}: {error}."
        ) from error
    if not isinstance(found, kind):
        raise PluginError(f"{path}: expected {kind.__name__} from {plugin}, got {describe(found)}.")
    return found


def _first_bytes(path: Path) -> bytes:
    """Read the beginning of a file once, for all readers; nothing of a folder."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return b""
        if not stat.S_ISREG(mode):  # a pipe would be waited for without end
            raise UnknownFormatError(f"{path}: expected a file, got a pipe, a socket or a device.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        raise UnknownFormatError(f"{path}: expected a file, got none of this name.") from None
    except OSError as error:
        raise DamagedFileError(
            f"{path}: expected a file that can be read, got: {error.strerror}. Look at its permissions and "
            "at where it is a link to."
        ) from None
    if not head:
        raise DamagedFileError(f"{path}: expected data, got an empty file. Was it still being written?")
    return head


def _one_of(volume: Volume, place: Place) -> Volume:
    """Give one of the cases that are stacked in an array; the array is read once, not once a case."""
    index = place.index
    count = volume.shape[0] if volume.shape else 0
    if index is None or not 0 <= index < count:
        raise WrongContentError(f"{place}: expected the number of one of {count} cases, got {index}.")

    def load(channel: int | None) -> Any:
        part = _stack(place.path, place.key, place.path.stat().st_mtime_ns)[index]
        return part if channel is None else part[channel]

    shape = volume.shape[1:]
    return replace(volume, path=str(place), shape=shape, load=load, has_channels=None, in_order=False)


@lru_cache(maxsize=3)  # maps, masks and truths of one file
def _stack(path: Path, key: str | None, changed: int) -> Any:
    return _reader_of(path).open(path, key).read()
