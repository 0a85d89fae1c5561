"""Values that were saved, and are read again without taking anything in them on trust."""

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
from segtrust.limits import LETTER, check_size

__all__ = [
    "bring_to_disk",
    "check_format",
    "check_keys",
    "checksum",
    "json_text",
    "make_writable",
    "plain",
    "read_json",
    "reading",
    "rebuild",
    "remove_old_drafts",
    "remove_old_drafts_of",
    "replacing",
    "replacing_all",
    "write_json",
]

T = TypeVar("T")
Error = type[SegtrustError]


def plain(values: Any, name: str) -> Any:
    """Give what JSON gives back: lists for tuples, numbers for NumPy's; a copy that shares nothing.

    Examples
    --------
    >>> plain({"sides": (1, 2)}, "parameters")
    {'sides': [1, 2]}
    """
    try:
        return json.loads(json.dumps(values, default=_number, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(
            f"{name}: expected plain values only (text, finite numbers, lists, mappings); {error}."
        ) from error


def _number(value: Any) -> Any:
    if type(value).__module__ == "numpy" and callable(getattr(value, "item", None)) and not value.ndim:
        return value.item()
    raise TypeError(f"got {value!r} of type {type(value).__name__}")


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give the path of a draft, which takes the place of a file when it is written, or leaves it as it was.

    So whoever reads the file finds all of it, whatever happens meanwhile. Two that write the same file have a
    draft each, be they threads, processes or machines that share a drive. A disk that is full is told with
    the name of the file, not of its draft.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with replacing(path) as draft:
    ...     _ = draft.write_text("n,risk")
    >>> [each.name for each in path.parent.iterdir()]
    ['table.csv']
    """
    with replacing_all(path) as (draft,):
        yield draft


@contextmanager
def replacing_all(*paths: str | Path) -> Iterator[tuple[Path, ...]]:
    """Give drafts of files that belong together: none takes its place before all are on the disk.

    Only a process that is killed between two names, which takes no room and hardly any time, leaves some of
    them new and some old; they take their places in the order given.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing_all(folder / "a", folder / "b") as drafts:
    ...     _ = [draft.write_text("new") for draft in drafts]
    >>> sorted(each.name for each in folder.iterdir())
    ['a', 'b']
    """
    drafts = {_draft_of(Path(path)): Path(path) for path in paths}
    try:
        with _naming(drafts):
            yield tuple(drafts)
            bring_to_disk(*drafts)
            for draft, path in drafts.items():
                draft.replace(path)
    except BaseException:
        for draft in drafts:
            with suppress(OSError):  # where nothing can be written there is nothing to be removed
                draft.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in drafts.values()}:
        _bring_names_to_disk(folder)


@contextmanager
def _naming(drafts: Mapping[Path, Path]) -> Iterator[None]:
    """Let errors of the system name the file that was to be written: those of writing name none at all."""
    try:
        yield
    except OSError as error:
        named = Path(str(error.filename)) if error.filename is not None else next(iter(drafts))
        if error.errno is None or named not in drafts:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(drafts[named])) from error


def bring_to_disk(*paths: Path) -> None:
    """Wait until files are on the disk, so that a name that is given to them later never stands for less."""
    for path in paths:
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _bring_names_to_disk(folder: Path) -> None:
    """Let the new name outlast a power failure too, where folders can be asked for that."""
    if os.name != "posix":
        return
    with suppress(OSError):  # some network drives refuse, and the file is whole either way
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_DRAFT = re.compile(r"\..*\.((?P<place>[0-9a-f]{8})-)?(?P<pid>\d+)(-[0-9a-f]{6})?\.part(\..*)?")
"""Name of a draft, also where an ending was added for a library that goes by endings. Those of earlier
releases have the number of their process alone."""
_DEAD_S = 24 * 3600.0
"""A draft is written in minutes at most: one that was not touched for a day is nobody's, wherever that was.
The clocks of machines that share a drive do not differ by as much."""


def _draft_of(path: Path) -> Path:
    """Give the name of a new draft: it says who writes it, and is nobody else's."""
    return path.with_name(f".{path.name}.{_place()}-{os.getpid()}-{secrets.token_hex(3)}.part")


@cache
def _place() -> str:
    """Give a fingerprint of where processes have their numbers: this machine, and here this container.

    A machine that shares the drive knows nothing of ours, nor does a container that has the machine's name.
    """
    try:
        numbers = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # a system without containers of this kind
        numbers = ""
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:8]


def make_writable(folder: Path) -> None:
    """Make a folder, or refuse one that nothing can be written to, before hours are spent on it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            f"{folder}: expected a folder that can be written to, got: {error.strerror}. Choose another, or "
            "change its permissions."
        ) from None


def remove_old_drafts(folder: Path, names: str = "**/.*.part*") -> None:
    """Remove the drafts below a folder whose process was killed before it could.

    Of processes elsewhere nothing is known but what the drive tells: their drafts are removed after a day.
    """
    for draft in folder.glob(names):
        found = _DRAFT.fullmatch(draft.name)
        if found and not _may_be_written(draft, found["place"], int(found["pid"])):
            draft.unlink(missing_ok=True)


def _may_be_written(draft: Path, place: str | None, pid: int) -> bool:
    """Tell whether somebody may be at a draft; of one by an earlier release nobody knows where that is."""
    if place in (None, _place()) and _is_running(pid):
        return True
    return place != _place() and _age_s(draft) < _DEAD_S


def _age_s(path: Path) -> float:
    """Seconds since a file was written to; none where it is gone, because somebody has finished it."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def remove_old_drafts_of(path: Path) -> None:
    """Remove those of one file, and of what lies beside it under a longer name, in a folder of any size."""
    remove_old_drafts(path.parent, f".{escape(path.name)}.*.part")


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere to ask is to kill
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def write_json(path: str | Path, values: Any, *, indent: int | None = 2) -> None:
    """Write a JSON file; a file that is there is replaced in one step, or left as it was."""
    text = json_text(values, indent=indent)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def json_text(values: Any, *, indent: int | None = 2) -> str:
    r"""Give values as `write_json` writes them.

    Examples
    --------
    >>> json_text({"side": 10}, indent=None)
    '{"side": 10}\n'
    """
    return json.dumps(values, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def read_json(path: str | Path, *, error: Error = SavedStateError, most: int | None = None) -> Any:
    """Read a JSON file; what is no JSON is named by its path.

    Parameters
    ----------
    path
        Of the file.
    error
        Raised over what is no JSON.
    most
        Bytes that a file of this kind may have. As values it may take no more than an array may, whatever its
        kind (`segtrust.limits`).
    """
    try:
        size = Path(path).stat().st_size
        check_size(path, LETTER * size, what="a JSON file")
        if most is not None and size > most:
            raise error(
                f"{path}: expected a JSON file of at most {most >> 20} MiB, got {size / 2**20:.3g} MiB."
            )
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path}: expected a JSON file, got none of this name.") from None
    except (error, UnsafeFileError):
        raise
    except (ValueError, RecursionError) as found:
        raise error(f"{path}: expected JSON, got something else ({found}).") from found


def check_keys(
    saved: Any, names: Collection[str], source: str, *, error: Error = SavedStateError
) -> dict[str, Any]:
    """Give a mapping with exactly these keys; refuse any other, and say what is missing or too many.

    Examples
    --------
    >>> check_keys({"level": 0.9}, ["level"], "bounds.json")
    {'level': 0.9}
    """
    if not isinstance(saved, Mapping):
        raise error(f"{source}: expected a mapping with {', '.join(names)}; got {type(saved).__name__}.")
    for said, wrong in (
        ("is missing", [name for name in names if name not in saved]),
        ("is unknown", [name for name in saved if name not in names]),
    ):
        if wrong:
            raise error(f"{source}: {wrong[0]!r} {said}; expected {', '.join(names)}. Make it anew.")
    return dict(saved)


@contextmanager
def reading(source: str, *, error: Error = SavedStateError) -> Iterator[None]:
    """Turn whatever is wrong with a saved value into one kind of error that names its source."""
    try:
        yield
    except (SegtrustError, TypeError, ValueError, AttributeError, OverflowError) as found:
        said = str(found)
        raise error(said if said.startswith(f"{source}: ") else f"{source}: {said}") from found


def rebuild(
    kind: type[T], saved: Any, source: str, *, error: Error = SavedStateError, without: Collection[str] = ()
) -> T:
    """Make a dataclass of the values of all its fields but some; it checks them itself."""
    names = [each.name for each in fields(kind) if each.name not in without]  # type: ignore[arg-type]
    values = check_keys(saved, names, source, error=error)
    with reading(source, error=error):
        return kind(**values)


def check_format(values: Any, expected: str, source: str, *, error: Error = SavedStateError) -> None:
    """Refuse what is no file of this kind and version; the version stands after the last hyphen."""
    found = values.get("format") if isinstance(values, Mapping) else None
    if found == expected:
        return
    kind, _, _ = expected.rpartition("-")
    if isinstance(found, str) and found.startswith(f"{kind}-"):
        raise error(
            f"{source}: expected format {expected!r}, got {found!r}, of another version of segtrust. Read "
            "it with that version, or make it anew."
        )
    got = repr(found) if isinstance(values, Mapping) else type(values).__name__
    raise error(f"{source}: expected format {expected!r}, got {got}.")


def checksum(values: Any) -> str:
    """Fingerprint of plain values: shows that a file was changed, not who did it."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
