"""Headers of MetaImage and NRRD, looked at before ITK sees them.

ITK's readers trust what a header says: they take a number that is missing from the next line, search without
end for the axes of a matrix that overflows, use the name of a data file as a pattern of C's ``printf``, and
divide by the step between data files. So a header is read here first, and what is not plainly in order is
refused.
"""

from __future__ import annotations

from pathlib import Path

from segtrust.io.itk_data import ItkHeader
from segtrust.io.itk_fields import LONGEST_HEADER
from segtrust.io.metaimage import metaimage_header
from segtrust.io.nrrd import nrrd_header

__all__ = ["is_nrrd", "read_itk_header"]


def is_nrrd(path: Path) -> bool:
    """Tell NRRD from MetaImage by the first bytes, else by the name."""
    with path.open("rb") as file:
        return file.read(4) == b"NRRD" or path.suffix.lower() in (".nrrd", ".nhdr")


def read_itk_header(path: Path) -> ItkHeader:
    r"""Read a header, and refuse one that ITK had better not see.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.mhd"
    >>> size = path.write_text("NDims = 2\nDimSize = 3 4\nElementType = MET_CHAR\nElementDataFile = a.raw\n")
    >>> header = read_itk_header(path)
    >>> header.numbers, header.names, header.packing
    (12, ('a.raw',), 'raw')
    """
    with path.open("rb") as file:
        text = file.read(LONGEST_HEADER)
    return (nrrd_header if is_nrrd(path) else metaimage_header)(path, text)
