"""Values that were saved, and are read again without taking anything in them on trust."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from segtrust.errors import ParameterError, SavedStateError, SegtrustError

__all__ = [
    "check_format",
    "check_keys",
    "checksum",
    "plain",
    "read_json",
    "reading",
    "rebuild",
    "remove_old_drafts",
    "replacing",
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

    So whoever reads the file finds all of it, whatever happens meanwhile. Two processes that write the same
    file have a draft each.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with replacing(path) as draft:
    ...     _ = draft.write_text("n,risk")
    >>> [each.name for each in path.parent.iterdir()]
    ['table.csv']
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def remove_old_drafts(folder: Path) -> None:
    """Remove the drafts below a folder whose process was killed before it could."""
    for draft in folder.rglob(".*.part"):
        pid = draft.suffixes[-2].removeprefix(".") if len(draft.suffixes) > 1 else ""
        if pid.isdigit() and not _is_running(int(pid)):
            draft.unlink(missing_ok=True)


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
    text = json.dumps(values, indent=indent, ensure_ascii=False, allow_nan=False)
    with replacing(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path, *, error: Error = SavedStateError) -> Any:
    """Read a JSON file; what is no JSON is named by its path."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path}: expected a JSON file, got none of this name.") from None
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
