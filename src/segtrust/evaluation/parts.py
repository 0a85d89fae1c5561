"""Long experiments in parts: each is kept when it is finished, so that a run can go on where it was stopped.

A part is a name and a function without arguments that gives arrays. Several processes may compute parts side
by side; what comes out does not depend on their number. A finished part is one file, which appears whole or
not at all, and says with which parameters it was made.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write
from segtrust.engine import compute_in_processes
from segtrust.errors import ParameterError

Arrays = dict[str, Any]

_PARAMETERS, _SECONDS = "made with", "seconds"
_LONGEST = 120
_DAMAGED = (ValueError, KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile)
"""What reading a damaged file may raise; `NotImplementedError` is among them."""


@dataclass(frozen=True)
class Part:
    """A piece of an experiment.

    Attributes
    ----------
    name
        Of its file, different for each part.
    compute
        Gives its arrays by name; something that can be sent to another process.
    weight
        What it counts for in the progress.
    """

    name: str
    compute: Callable[[], Arrays]
    weight: int = 1


@dataclass(frozen=True)
class PartStore:
    """A folder of finished parts, all made with the same parameters.

    Attributes
    ----------
    folder
        Made when the first part is kept; ``None`` keeps nothing.
    parameters
        What every part depends on, as values that JSON can hold.

    Examples
    --------
    >>> import tempfile
    >>> store = PartStore(Path(tempfile.mkdtemp()), {"images": 5})
    >>> store.load("first") is None
    True
    >>> store.keep("first", {"risk": np.array([0.5])})
    >>> store.load("first")["risk"].tolist()
    [0.5]
    """

    folder: Path | None
    parameters: Mapping[str, Any]

    def count(self, names: Iterable[str]) -> int:
        """Tell how many of some parts are there; `load` says what is refused."""
        return sum(self.load(name) is not None for name in names)

    def load(self, name: str) -> Arrays | None:
        """Give a finished part, or ``None``; a file that cannot be read counts as unfinished.

        Raises
        ------
        ParameterError
            If the part was made with other parameters.
        """
        path = self._path(name)
        found = self._read(path)
        if path is None or found is None:
            return None
        made_with, arrays = found
        self._check(path, made_with)
        return arrays

    def _read(self, path: Path | None) -> tuple[Any, Arrays] | None:
        """Give what a part was made with, and its arrays; ``None`` for no file or a damaged one."""
        if path is None or not path.exists():
            return None
        with path.open("rb") as file:
            try:
                with np.load(file) as kept:
                    arrays = dict(kept)
                return json.loads(str(arrays.pop(_PARAMETERS))), arrays
            except _DAMAGED:
                return None

    def _check(self, path: Path, made_with: Mapping[str, Any]) -> None:
        asked = json.loads(json.dumps(dict(self.parameters)))
        names = [name for name in {**asked, **made_with} if asked.get(name) != made_with.get(name)]
        if names:
            listed = "; ".join(
                f"{name} {_short(made_with.get(name))}, not {_short(asked.get(name))}" for name in names
            )
            raise ParameterError(
                f"{path}: expected a part made with the parameters of this run, got one with {listed}. "
                f"Choose another folder, or delete {path.parent} to begin anew."
            )

    def keep(self, name: str, arrays: Arrays) -> None:
        """Write a finished part; a file of its name is whole."""
        path = self._path(name)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        made_with: Any = {_PARAMETERS: json.dumps(dict(self.parameters))}
        with atomic_write(path) as draft, draft.open("wb") as file:
            np.savez(file, **made_with, **arrays)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name}.npz"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def store_of(folder: str | Path | None, parameters: Mapping[str, Any]) -> PartStore:
    """Give the store of an experiment, whose parts depend on its parameters and on the version."""
    from segtrust import __version__

    path = None if folder is None else Path(folder)
    return PartStore(path, {"segtrust": __version__, **parameters})


def compute_parts(
    parts: Sequence[Part],
    store: PartStore,
    *,
    workers: int = 1,
    advance: Callable[[int], object] = lambda done: None,
) -> dict[str, Arrays]:
    """Give the arrays of each part by its name: those that are kept, and the others computed, and kept now.

    Parameters
    ----------
    parts
        What to compute.
    store
        Where finished parts are.
    workers
        Processes at work; 1 computes in this one. A script that asks for more must guard its own code by
        ``if __name__ == "__main__"``, because the others import it.
    advance
        Told the weight of each part when it is there.

    Returns
    -------
    dict
        Beside its own arrays each part has ``"seconds"``, the time that it took when it was computed.
    """
    if not isinstance(workers, int) or workers < 1:
        raise ParameterError(f"workers: expected a whole number of at least 1, got {workers!r}.")
    found = {part.name: store.load(part.name) for part in parts}
    for part in parts:
        if found[part.name] is not None:
            advance(part.weight)
    missing = [part for part in parts if found[part.name] is None]
    with closing(_computed(missing, workers)) as computed:
        for part, arrays in computed:
            store.keep(part.name, arrays)
            found[part.name] = arrays
            advance(part.weight)
    return {name: arrays for name, arrays in found.items() if arrays is not None}


def _timed(part: Part) -> Arrays:
    begin = time.perf_counter()
    arrays = part.compute()
    return {**arrays, _SECONDS: np.float64(time.perf_counter() - begin)}


def _computed(parts: Sequence[Part], workers: int) -> Generator[tuple[Part, Arrays], None, None]:
    """Give each part as soon as it is there."""
    if workers == 1 or len(parts) < 2:
        yield from ((part, _timed(part)) for part in parts)
    else:
        yield from compute_in_processes(_timed, parts, workers)
