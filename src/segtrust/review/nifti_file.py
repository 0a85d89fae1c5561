"""A volume as a NIfTI-1 file in memory, for the viewer of the page."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["nifti_bytes"]

_CODES = {"uint8": (2, 8), "float32": (16, 32)}
"""Number of a type in NIfTI, and its bits."""
_HEADER = struct.Struct("<i10s18sihcB8h3f4h8f3fhBB4f2i80s24s2h6f12f16s4s4x")
"""The fields of the header in their order, and four bytes that say that nothing follows it."""
_MILLIMETRES = 2
_ALIGNED = 1
"""What the rows of the affine mean: the place in some room, which is not that of an atlas."""


def nifti_bytes(values: Any, affine: Any) -> bytes:
    """Write a volume.

    Parameters
    ----------
    values
        (z, y, x) of uint8 or float32.
    affine
        From (x, y, z) to millimetres, right, anterior and superior: 4 × 4.

    Examples
    --------
    >>> len(nifti_bytes(np.zeros((2, 3, 4), np.uint8), np.eye(4)))
    376
    """
    code, bits = _CODES[values.dtype.name]
    spacing = np.sqrt((np.asarray(affine)[:3, :3] ** 2).sum(0))
    header = _HEADER.pack(
        *(348, b"", b"", 0, 0, b"r", 0),
        *(3, *values.shape[::-1], 1, 1, 1, 1),
        *(0.0, 0.0, 0.0, 0, code, bits, 0),
        *(1.0, *spacing, 0.0, 0.0, 0.0, 0.0),
        *(352.0, 1.0, 0.0, 0, 0, _MILLIMETRES),
        *(0.0, 0.0, 0.0, 0.0, 0, 0, b"segtrust", b""),
        *(0, _ALIGNED, *(0.0,) * 6, *np.asarray(affine, np.float64)[:3].ravel(), b"", b"n+1\0"),
    )
    return header + np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
