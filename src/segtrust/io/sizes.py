"""How much memory a case will take, told from its files without reading them."""

from __future__ import annotations

from segtrust.io.cases import CaseFiles
from segtrust.io.inflate import is_gzip
from segtrust.io.npz import read_directory, recognises_npz
from segtrust.io.places import Place

__all__ = ["memory_of"]

_LAZY = 256 << 20
"""Of a Zarr or HDF5 file, which is read piece by piece."""
_PIECEWISE = (".zarr", ".h5", ".hdf5")
_COPIES = 2
"""An array and what is made of it: a mask, a transposed copy, a part."""


def memory_of(case: CaseFiles) -> int:
    """Estimate the bytes that a case takes while it is scored.

    Examples
    --------
    >>> from pathlib import Path
    >>> memory_of(CaseFiles("a", Place(Path("missing.npy"))))
    0
    """
    places = (case.probabilities, case.mask, case.truth)
    return _COPIES * sum(_unpacked(place) for place in places if place is not None)


def _unpacked(place: Place) -> int:
    """Bytes of a file when it is unpacked; 0 for one that cannot be looked at, which will say so itself."""
    path = place.path
    try:
        if path.suffix.lower() in _PIECEWISE:
            return _LAZY
        if not path.is_file():  # a pipe would be waited for
            return 0
        with path.open("rb") as file:
            head = file.read(2)
            if is_gzip(head):
                file.seek(-4, 2)
                return max(int.from_bytes(file.read(4), "little"), path.stat().st_size)
        if recognises_npz(path, head):
            return max((member.size for member in read_directory(path).values()), default=0)
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
