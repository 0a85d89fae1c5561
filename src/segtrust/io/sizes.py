"""How much memory a case will take, told from its files without reading them."""

from __future__ import annotations

from pathlib import Path

from segtrust.io.cases import CaseFiles
from segtrust.io.inflate import is_gzip
from segtrust.io.nnunet import AXES, KEYS
from segtrust.io.npz import Member, open_member, read_directory, recognises_npz
from segtrust.io.places import Place

__all__ = ["memory_of"]

_LAZY = 256 << 20
"""Of a Zarr or HDF5 file, which is read piece by piece."""
_PIECEWISE = (".zarr", ".h5", ".hdf5")
_COPIES = 2
"""An array and what is made of it: a mask, a transposed copy, a part."""
_SUMS = 4
"""Of an ensemble: sums of doubles, the fused map, and masks as bits, beside a map of single floats."""


def memory_of(case: CaseFiles) -> int:
    """Estimate the bytes that a case takes while it is scored.

    Examples
    --------
    >>> from pathlib import Path
    >>> memory_of(CaseFiles("a", Place(Path("missing.npy"))))
    0
    """
    beside = sum(_unpacked(place) for place in (case.mask, case.truth) if place is not None)
    largest = max(_unpacked(place) for place in case.maps)  # members are read one after the other
    sums = _SUMS * largest if case.members else 0
    return _COPIES * (largest + beside) + sums


def _at_once(path: Path, member: Member) -> int:
    """Bytes of an array that are in memory at once: of nnU-Net's one channel."""
    is_nnunet = member.name in KEYS
    shape = open_member(path, member).shape if is_nnunet else ()
    return member.size // shape[0] if len(shape) == AXES and shape[0] else member.size


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
            return max((_at_once(path, member) for member in read_directory(path).values()), default=0)
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
