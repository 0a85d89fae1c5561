"""A folder that tells how its results were made."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from segtrust._files import (
    check_format,
    make_writable_folder,
    read_json,
    remove_stale_drafts,
    write_json,
)
from segtrust.errors import ParameterError, SavedStateError

__all__ = [
    "FORMAT",
    "RESULTS",
    "check_run_format",
    "fresh_results",
    "mark_running",
    "more_results",
    "open_run",
    "write_run",
]

RESULTS = ("tables", "figures")
"""Folders that every run has."""
FORMAT = "segtrust-run-1"
"""Of ``run.json`` and of the tables in its folder, which are CSV without a word of their own."""
_LIST = ".results.json"


def open_run(folder: Path, *, command: str) -> None:
    """Make a folder ready for the results of a command, before anything is computed.

    Raises
    ------
    ParameterError
        If the folder cannot be written to, or holds the results of another command.
    """
    make_writable_folder(folder)
    path = folder / "run.json"
    found = _command_of(path) if path.exists() else command
    if found != command:
        raise ParameterError(
            f"{path}: expected a folder that is new or of `{command}`, got one of `{found}`. "
            f"Choose another folder."
        )
    for name in RESULTS:
        make_writable_folder(folder / name)
    remove_stale_drafts(folder)


def mark_running(folder: Path, *, command: str) -> None:
    """Let ``run.json`` say until `write_run` that the run is not finished."""
    write_json(folder / "run.json", {"format": FORMAT, "command": command, "finished": None})


@contextmanager
def fresh_results(folder: Path) -> Iterator[None]:
    """Remove tables and figures that a run before has written, and note those that are written now.

    A run before may have had other sets or settings; what somebody else has put there stays.
    """
    listed = folder / _LIST
    for name in _listed(listed):
        (folder / name).unlink(missing_ok=True)
    with _listing(folder, listed):
        yield


@contextmanager
def more_results(folder: Path) -> Iterator[None]:
    """Note tables and figures that are added to those of a run, so that its next one removes them too."""
    with _listing(folder, folder / _LIST, before=_listed(folder / _LIST)):
        yield


@contextmanager
def _listing(folder: Path, listed: Path, before: Sequence[str] = ()) -> Iterator[None]:
    """List the results that are written meanwhile, beside those of before.

    What a run that was killed has written is in no list; it is known again by being written anew.
    """
    for name in RESULTS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    foreign = _files_in(folder)
    try:
        yield
    finally:
        now = _files_in(folder)
        written = {name for name, stamp in now.items() if foreign.get(name) != stamp}
        write_json(listed, sorted({*before, *written} & {*now}))


def _files_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Give the files of all results, each with what tells whether it was written anew."""
    return {
        f"{name}/{path.name}": (path.stat().st_ino, path.stat().st_mtime_ns)
        for name in RESULTS
        for path in (folder / name).iterdir()
        if path.is_file()
    }


def _listed(path: Path) -> list[str]:
    """Give the names in a list of results; none but such may be removed."""
    try:
        names = read_json(path)
    except (OSError, SavedStateError):
        return []
    return [name for name in names if PurePosixPath(name).parent.as_posix() in RESULTS]


def _command_of(path: Path) -> str:
    """Give the command that wrote a ``run.json``; a file that cannot be read is of none.

    One of another version is refused: its results would be lost.
    """
    try:
        found = read_json(path)
        command = str(found["command"])
    except (SavedStateError, KeyError, TypeError, OSError):
        return "something that cannot be read"
    check_run_format(found, path)
    return command


def check_run_format(found: Mapping[str, Any], path: Path) -> None:
    """Refuse a ``run.json`` of another version; one without a format is older than formats are."""
    if "format" in found:
        check_format(found, FORMAT, str(path))


def write_run(
    folder: Path,
    *,
    command: str,
    parameters: Mapping[str, Any],
    seconds: float,
    seeds: Mapping[str, Any] | None = None,
    timings: Mapping[str, float] | None = None,
) -> None:
    """Write ``run.json``: what was run, with what, when, and how long it took.

    Parameters
    ----------
    folder
        Made where it does not exist.
    command, parameters
        What was run.
    seconds
        In all.
    seeds
        What random numbers were drawn from, where it is more than a parameter.
    timings
        Seconds of single steps.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = {
        "format": FORMAT,
        "command": command,
        "parameters": dict(parameters),
        **({} if seeds is None else {"seeds": dict(seeds)}),
        "seconds": round(seconds, 1),
        **({} if timings is None else {"timings": {name: round(each, 3) for name, each in timings.items()}}),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **_versions()},
    }
    write_json(folder / "run.json", run)


def _versions() -> dict[str, str]:
    """Versions of the packages that results depend on; of Matplotlib where it is installed."""
    names = ["segtrust", "numpy", "scipy", "numba"] + ["matplotlib"] * (find_spec("matplotlib") is not None)
    return {name: version(name) for name in names}
