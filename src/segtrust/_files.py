"""Files: atomic writes, JSON that is checked as it is read, format versions, and how large a file may be."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from glob import escape
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from segtrust.errors import ParameterError, SavedStateError, SegtrustError, UnsafeFileError

__all__ = [
    "BYTES_PER_CHARACTER",
    "GIB",
    "atomic_write",
    "atomic_write_all",
    "check_format",
    "check_keys",
    "check_size",
    "checksum",
    "format_bytes",
    "format_json",
    "make_writable_folder",
    "max_bytes",
    "naming_errors",
    "plain_values",
    "read_json",
    "rebuild",
    "remove_stale_drafts",
    "remove_stale_drafts_of",
    "sync_files",
    "write_json",
]

T = TypeVar("T")
Error = type[SegtrustError]

GIB = 1 << 30
BYTES_PER_CHARACTER = 16
"""Bytes of memory that one byte of text may take when it is parsed as JSON or as a row of CSV."""


# How large a file may be


def max_bytes() -> int:
    """Return the bytes that one array may take in memory: ``SEGTRUST_MAX_BYTES``, or 16 GiB.

    Examples
    --------
    >>> max_bytes() // 2**30
    16
    """
    text = os.environ.get("SEGTRUST_MAX_BYTES", "")
    if not text:
        return 16 * GIB
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"SEGTRUST_MAX_BYTES: expected a whole number of at least 1, got {text!r}.")
    return int(text)


def format_bytes(count: int) -> str:
    """Format a number of bytes for people.

    Examples
    --------
    >>> format_bytes(16 * GIB), format_bytes(3 << 20), format_bytes(1000)
    ('16 GiB', '3 MiB', '1000 bytes')
    """
    if count >= GIB:
        return f"{count / GIB:.3g} GiB"
    return f"{count / (1 << 20):.3g} MiB" if count >= 1 << 20 else f"{count} bytes"


def check_size(path: Path | str, count: int, *, is_whole: bool = True, what: str = "an array") -> None:
    """Check that no more bytes are read than one array may take: a header may announce anything.

    Parameters
    ----------
    path
        File that the error names.
    count
        Number of bytes in memory.
    is_whole
        Whether ``count`` is the total. ``False`` where bytes are counted while they are decompressed, which
        stops at the limit.
    what
        What is read, for the error message.
    """
    limit = max_bytes()
    if count <= limit:
        return
    expected = f"{path}: expected {what} of at most {format_bytes(limit)} in memory"
    if is_whole:
        raise UnsafeFileError(
            f"{expected}, got one of {format_bytes(count)}. "
            f"If that is right, allow it: SEGTRUST_MAX_BYTES={count}."
        )
    raise UnsafeFileError(
        f"{expected}, got one of more than that. "
        f"If that is right, allow more: SEGTRUST_MAX_BYTES, now {limit}."
    )


# Atomic writes


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Write a file in one step: yield the path of a draft, which replaces the file when the block succeeds.

    A reader finds the old file or the new one, never a part. Each writer has a draft of its own, even if
    several threads, processes or machines write the same file. If the block fails, the draft is removed and
    the file stays as it was. Errors of the system, such as a full disk, name the file and not its draft.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with atomic_write(path) as draft:
    ...     _ = draft.write_text("n,risk")
    >>> [file.name for file in path.parent.iterdir()]
    ['table.csv']
    """
    with atomic_write_all(path) as (draft,):
        yield draft


@contextmanager
def atomic_write_all(*paths: str | Path) -> Iterator[tuple[Path, ...]]:
    """Write files that belong together: yield a draft for each; none is renamed before all are on disk.

    They are renamed in the order given. Only a process that is killed between two renames leaves some files
    new and some old.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write_all(folder / "a", folder / "b") as drafts:
    ...     _ = [draft.write_text("new") for draft in drafts]
    >>> sorted(file.name for file in folder.iterdir())
    ['a', 'b']
    """
    owner = f"{_host()}-{os.getpid()}-{secrets.token_hex(3)}"
    drafts = {path.with_name(f".{path.name}.{owner}.part"): path for path in map(Path, paths)}
    try:
        yield tuple(drafts)
        sync_files(*drafts)
        for draft, path in drafts.items():
            draft.replace(path)
    except BaseException as error:
        for draft in drafts:
            with suppress(OSError):  # where nothing can be written, there is nothing to remove
                draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            # errors of writing, such as a full disk, name no file at all
            failed = next(iter(drafts)) if error.filename is None else Path(str(error.filename))
            if failed in drafts:
                raise OSError(error.errno, os.strerror(error.errno), str(drafts[failed])) from error
        raise
    for folder in {path.parent for path in drafts.values()}:
        _sync_folder(folder)


def sync_files(*paths: Path) -> None:
    """Wait until the content of files is on disk, so that a rename never exposes an incomplete file."""
    for path in paths:
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power failure, on systems where folders can be synchronised."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some network drives do not support it, and the file is complete either way
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_DRAFT = re.compile(r"\..*\.(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{6}\.part(\..*)?")
"""Name of a draft; a library that goes by suffixes may have added one."""
_STALE_S = 24 * 3600.0
"""A draft takes minutes at most, so one that nobody touched for a day is abandoned, whoever wrote it.
The clocks of machines that share a drive do not differ by as much."""


@cache
def _host() -> str:
    """Return a hash of where process ids are valid: this machine, and in a container this container."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # a system without process namespaces
        namespace = ""
    return hashlib.sha256(f"{socket.gethostname()} {namespace}".encode()).hexdigest()[:8]


def remove_stale_drafts(folder: Path, names: str = "**/.*.part*") -> None:
    """Remove drafts that killed processes left below a folder; those of other machines after a day."""
    for draft in folder.glob(names):
        parts = _DRAFT.fullmatch(draft.name)
        if parts is None:
            continue
        with suppress(FileNotFoundError):  # its writer has just finished
            if parts["host"] == _host():
                is_stale = not _is_running(int(parts["pid"]))
            else:
                is_stale = time.time() - draft.stat().st_mtime >= _STALE_S
            if is_stale:
                draft.unlink()


def remove_stale_drafts_of(path: Path) -> None:
    """Remove the stale drafts of one file without searching the folders below its own."""
    remove_stale_drafts(path.parent, f".{escape(path.name)}.*.part")


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere os.kill(pid, 0) ends the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def make_writable_folder(folder: Path) -> None:
    """Create a folder and check that it can be written to, before hours are spent on its content."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            f"{folder}: cannot write to this folder ({error.strerror}). Choose another, or change its "
            "permissions."
        ) from None


# JSON


def plain_values(values: Any, name: str) -> Any:
    """Return a copy as JSON returns it: lists for tuples, Python's numbers for NumPy's.

    Examples
    --------
    >>> plain_values({"sides": (1, 2)}, "parameters")
    {'sides': [1, 2]}
    """

    def as_python(value: Any) -> Any:
        if type(value).__module__ == "numpy" and callable(getattr(value, "item", None)) and not value.ndim:
            return value.item()
        raise TypeError(f"got {value!r} of type {type(value).__name__}")

    try:
        return json.loads(json.dumps(values, default=as_python, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(
            f"{name}: expected plain values only (text, finite numbers, lists, mappings); {error}."
        ) from error


def format_json(values: Any, *, indent: int | None = 2) -> str:
    r"""Return the text that `write_json` writes.

    Examples
    --------
    >>> format_json({"side": 10}, indent=None)
    '{"side": 10}\n'
    """
    return json.dumps(values, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: str | Path, values: Any, *, indent: int | None = 2) -> None:
    """Write a JSON file in one step; an existing file is replaced or, after an error, unchanged."""
    text = format_json(values, indent=indent)
    with atomic_write(path) as draft:
        draft.write_text(text, encoding="utf-8")


def read_json(path: str | Path, *, error: Error = SavedStateError, most: int | None = None) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path
        Path of the file.
    error
        Class of the error that is raised if the file is missing or is not JSON.
    most
        Largest size in bytes of files of this kind. In any case the parsed values may take no more memory
        than `max_bytes`.
    """
    try:
        size = Path(path).stat().st_size
    except (FileNotFoundError, ValueError):  # a path with a null byte is a ValueError
        raise error(f"{path}: no such JSON file.") from None
    check_size(path, BYTES_PER_CHARACTER * size, what="a JSON file")
    if most is not None and size > most:
        raise error(f"{path}: expected a JSON file of at most {most >> 20} MiB, got {size / 2**20:.3g} MiB.")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as cause:
        raise error(f"{path}: expected JSON, got something else ({cause}).") from cause


# Saved values


def check_format(values: Any, expected: str, source: str, *, error: Error = SavedStateError) -> None:
    """Check that saved values are of this kind and version, such as ``"segtrust-policy-1"``."""
    version = values.get("format") if isinstance(values, Mapping) else None
    if version == expected:
        return
    kind = expected.rpartition("-")[0]
    if isinstance(version, str) and version.startswith(f"{kind}-"):
        raise error(
            f"{source}: expected format {expected!r}, got {version!r}, of another version of segtrust. Read "
            "it with that version, or create it again."
        )
    received = repr(version) if isinstance(values, Mapping) else type(values).__name__
    raise error(f"{source}: expected format {expected!r}, got {received}.")


def check_keys(
    saved: Any, names: Collection[str], source: str, *, error: Error = SavedStateError
) -> dict[str, Any]:
    """Check that a mapping has exactly these keys, and return a copy.

    Examples
    --------
    >>> check_keys({"level": 0.9}, ["level"], "bounds.json")
    {'level': 0.9}
    """
    if not isinstance(saved, Mapping):
        raise error(f"{source}: expected a mapping with {', '.join(names)}; got {type(saved).__name__}.")
    for problem, keys in (
        ("is missing", [name for name in names if name not in saved]),
        ("is unknown", [name for name in saved if name not in names]),
    ):
        if keys:
            raise error(f"{source}: {keys[0]!r} {problem}; expected {', '.join(names)}. Create it again.")
    return dict(saved)


@contextmanager
def naming_errors(source: str, *, error: Error = SavedStateError) -> Iterator[None]:
    """Turn any error about a saved value into an error of one class that names its source."""
    try:
        yield
    except (SegtrustError, TypeError, ValueError, AttributeError, OverflowError) as cause:
        text = str(cause)
        raise error(text if text.startswith(f"{source}: ") else f"{source}: {text}") from cause


def rebuild(
    kind: type[T], saved: Any, source: str, *, error: Error = SavedStateError, without: Collection[str] = ()
) -> T:
    """Return a dataclass made of the saved values of all its fields, except those in ``without``."""
    names = [field.name for field in fields(kind) if field.name not in without]  # type: ignore[arg-type]
    values = check_keys(saved, names, source, error=error)
    with naming_errors(source, error=error):
        return kind(**values)


def checksum(values: Any) -> str:
    """Return the SHA-256 checksum of plain values: it shows that a file was changed, not who did it."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
