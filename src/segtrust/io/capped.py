"""Files that give no more than they hold, whatever is asked of them.

Python makes room for all that is asked for before it looks how much there is: a damaged length in a header
would take gigabytes.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

__all__ = ["CappedFile"]


class CappedFile(io.BufferedReader):
    """A file to be read in bytes.

    Parameters
    ----------
    path
        Of a file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "words"
    >>> _ = path.write_bytes(b"three words there")
    >>> with CappedFile(path) as file:
    ...     file.read(5), file.read(1 << 60)
    (b'three', b' words there')
    """

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path))
        self._size = os.fstat(self.fileno()).st_size

    def read(self, size: int | None = -1, /) -> bytes:
        """Read so many bytes, or as many as there are."""
        if size is None or size < 0:
            return super().read()
        return super().read(min(size, max(self._size - self.tell(), 0)))
