"""All readers: a file finds its own by what it holds."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from segtrust.errors import DamagedFileError, UnknownFormatError, WrongContentError
from segtrust.io.dicomseg import open_dicomseg, recognises_dicomseg
from segtrust.io.hdf5 import open_hdf5, recognises_hdf5
from segtrust.io.images import open_image, recognises_image
from segtrust.io.itk import open_itk, recognises_itk
from segtrust.io.nifti import open_nifti, recognises_nifti
from segtrust.io.nnunet import open_nnunet, recognises_nnunet
from segtrust.io.npy import open_npy, recognises_npy
from segtrust.io.npz import open_npz, recognises_npz
from segtrust.io.places import Place
from segtrust.io.tiff import open_tiff, recognises_tiff
from segtrust.io.untrusted import open_unpickled
from segtrust.io.volumes import Volume
from segtrust.io.zarrs import open_zarr, recognises_zarr

__all__ = ["READERS", "Reader", "open_labels", "open_volume"]

_HEAD = 512
_PICKLES = (".pkl", ".pickle", ".pt", ".pth")


@dataclass(frozen=True)
class Reader:
    """A format.

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
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    open: Callable[[Path, str | None], Volume]
    open_labels: Callable[[Path, str | None, Sequence[str]], Volume] | None = None


READERS = (
    Reader("nnU-Net probabilities", recognises_nnunet, open_nnunet),
    Reader("NumPy archive", recognises_npz, open_npz),
    Reader("NumPy array", recognises_npy, open_npy),
    Reader("NIfTI", recognises_nifti, open_nifti),
    Reader("DICOM segmentation", recognises_dicomseg, open_dicomseg),
    Reader("HDF5", recognises_hdf5, open_hdf5, open_hdf5),
    Reader("Zarr", recognises_zarr, open_zarr, open_zarr),
    Reader("TIFF", recognises_tiff, open_tiff),
    Reader("PNG, BMP or WebP", recognises_image, open_image),
    Reader("MetaImage or NRRD", recognises_itk, open_itk),
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


def _reader_of(path: Path) -> Reader:
    head = _first_bytes(path)
    for reader in READERS:
        if reader.recognises(path, head):
            return reader
    listed = ", ".join(reader.name for reader in READERS)
    if path.suffix.lower() in _PICKLES:
        raise UnknownFormatError(
            f"{path}: expected one of {listed}; got a pickle, which can run any code when it is loaded, and "
            "so is not. Save the probabilities by numpy.savez_compressed; or, if you made the file yourself, "
            "--allow-pickle."
        )
    raise UnknownFormatError(f"{path}: expected one of {listed}; got a file that is none of them.")


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

    return replace(volume, path=str(place), shape=volume.shape[1:], load=load, has_channels=None)


@lru_cache(maxsize=3)  # maps, masks and truths of one file
def _stack(path: Path, key: str | None, changed: int) -> Any:
    return _reader_of(path).open(path, key).read()
