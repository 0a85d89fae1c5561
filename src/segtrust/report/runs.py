"""A folder that tells how its results were made."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any

from segtrust.errors import ParameterError
from segtrust.saved import remove_old_drafts, write_json

__all__ = ["RESULTS", "fresh_results", "mark_running", "more_results", "open_run", "write_run"]

RESULTS = ("tables", "figures")
"""Folders that every run has."""
_LIST = ".results.json"


def open_run(folder: Path, *, command: str) -> None:
    """Make a folder ready for the results of a command, before anything is computed.

    Raises
    ------
    ParameterError
        If the folder cannot be written to, or holds the results of another command.
    """
    _make_writable(folder)
    path = folder / "run.json"
    found = _command_of(path) if path.exists() else command
    if found != command:
        raise ParameterError(
            f"{path}: expected a folder that is new or of `{command}`, got one of `{found}`. "
            f"Choose another folder."
        )
    for name in RESULTS:
        _make_writable(folder / name)
    remove_old_drafts(folder)


def mark_running(folder: Path, *, command: str) -> None:
    """Let ``run.json`` say until `write_run` that the run is not finished."""
    write_json(folder / "run.json", {"command": command, "finished": None})


@contextmanager
def fresh_results(folder: Path) -> Iterator[None]:
    """Remove tables and figures that a run before has written, and note those that are written now.

    A run before may have had other sets or settings; what somebody else has put there stays.
    """
    listed = folder / _LIST
    for name in _listed(listed):
        (folder / name).unlink(missing_ok=True)
    for name in RESULTS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    foreign = _files_in(folder)
    try:
        yield
    finally:
        write_json(listed, sorted(_files_in(folder) - foreign))


@contextmanager
def more_results(folder: Path) -> Iterator[None]:
    """Note tables and figures that are added to those of a run, so that its next one removes them too."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    before = _files_in(folder)
    try:
        yield
    finally:
        known = {*_listed(folder / _LIST), *(_files_in(folder) - before)}
        write_json(folder / _LIST, sorted(known & _files_in(folder)))


def _files_in(folder: Path) -> set[str]:
    return {f"{name}/{path.name}" for name in RESULTS for path in (folder / name).iterdir() if path.is_file()}


def _listed(path: Path) -> list[str]:
    """Give the names in a list of results; none but such may be removed."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in names if PurePosixPath(name).parent.as_posix() in RESULTS]


def _make_writable(folder: Path) -> None:
    """Make a folder, or refuse one that nothing can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            f"{folder}: expected a folder that can be written to, got: {error.strerror}. "
            f"Choose another folder, or change its permissions."
        ) from None


def _command_of(path: Path) -> str:
    """Give the command that wrote a ``run.json``; a file that cannot be read is of none."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["command"])
    except (ValueError, KeyError, TypeError, OSError):
        return "something that cannot be read"


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
