"""One run at a time on one output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone", "take"]


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


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until nobody else is in here with the same file, which is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with alone(Path(tempfile.mkdtemp()) / ".lock"):
    ...     pass
    """
    with path.open("ab") as file:
        if fcntl is not None:
            with suppress(OSError):  # a drive that knows no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield
