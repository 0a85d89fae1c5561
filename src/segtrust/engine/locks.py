"""One run at a time on one output."""

from __future__ import annotations

from typing import IO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["take"]


def take(file: IO[bytes]) -> bool:
    """Take an open file for this process until it is closed; tell whether nobody else has it.

    The system lets go of it when a process ends, however it ends, so that nothing a killed run leaves behind
    stands in the way of the next. Where files cannot be taken (Windows, some network drives) nobody is kept
    out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as first, open(first.name, "rb") as second:
    ...     take(first), take(second)
    (True, False)
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a drive that knows no locks
        return True
    return True
