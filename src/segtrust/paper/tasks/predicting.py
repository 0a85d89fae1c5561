"""Prediction: maps of probabilities and truths as files, with manifests that `segtrust evaluate` takes."""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os.path import relpath
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write, read_json, remove_stale_drafts, write_json
from segtrust._optional import require
from segtrust.errors import ParameterError, SavedStateError, TooFewCasesError
from segtrust.paper.tasks.preparing import Prepared, PreparedCase, source_of
from segtrust.paper.tasks.task import ID, Task, file_name

__all__ = [
    "DTYPES",
    "PredictionOptions",
    "Predictions",
    "Row",
    "predict",
    "write_manifests",
    "write_npy",
    "write_png",
]

Row = dict[str, str]
"""Of a manifest."""

DTYPES = ("float32", "float16", "uint8")
_FOLDER = "predictions"
_COLUMNS: tuple[str, ...] = ("case", "probabilities", "mask", "truth", "image", "group", "split", "set")


@dataclass(frozen=True)
class PredictionOptions:
    """How maps are made and kept.

    Attributes
    ----------
    dtype
        Of the maps; ``"uint8"`` is p times 255, and loses the most.
    splits
        Whose cases are predicted.
    device, threads
        As in `segtrust.paper.tasks.training.TrainingOptions`.
    """

    dtype: str = "float32"
    splits: tuple[str, ...] = ("test",)
    device: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse a type that is not known."""
        if self.dtype not in DTYPES:
            raise ParameterError(f"dtype: expected one of {', '.join(DTYPES)}, got {self.dtype!r}.")


@dataclass(frozen=True)
class Predictions:
    """Manifests of what was predicted: one of all cases, and one a set."""

    manifest: Path
    sets: dict[str, Path]
    cases: int


def predict(
    task: Task,
    prepared: Prepared,
    weights: Sequence[Path],
    out: Path,
    options: PredictionOptions,
    *,
    advance: Callable[[int], object] = lambda done: None,
) -> Predictions:
    """Write the maps of the cases of some splits; those that are there already are kept.

    Parameters
    ----------
    task, prepared
        What is predicted, at the size of the prepared cases.
    weights
        A checkpoint, or several whose probabilities are averaged.
    out
        Folder of the run: all goes into ``predictions/``.
    options
        See `PredictionOptions`.
    advance
        Is told of each case.
    """
    cases = prepared.of(*options.splits)
    if not cases:
        raise TooFewCasesError(f"{task.name}: expected cases of {', '.join(options.splits)}, got none.")
    from segtrust.paper.tasks.mapping import map_cases

    folder = out / _FOLDER
    _check_size(task, cases[0])
    model = _model(task, weights, options)  # before anything: maps are not lost to a file that is no weights
    _open(folder, _made_with(task, weights, options))
    files = {case.case: Files(folder, case, is_flat=task.dimensions == 2) for case in cases}
    missing = {name for name, each in files.items() if not each.are_there}
    advance(len(cases) - len(missing))
    for mapped in map_cases(task, model, cases, channels=model.channels, only=missing):
        files[mapped.case.case].write(mapped, task, options.dtype)
        advance(1)
    return write_manifests(folder, [each.row(folder) for each in files.values()])


def _model(task: Task, weights: Sequence[Path], options: PredictionOptions) -> Any:
    import torch

    from segtrust.paper.networks.registry import create_ensemble
    from segtrust.paper.tasks.training import device_of

    if options.threads:
        torch.set_num_threads(options.threads)
    return create_ensemble(task.network, weights, **task.options).to(device_of(options.device))


def _made_with(task: Task, weights: Sequence[Path], options: PredictionOptions) -> dict[str, Any]:
    digests = []
    for path in weights:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    seen_as = [source_of(task.normalise), list(task.input_size or ()), task.foreground]
    about = {"task": task.name, "size": list(task.size), "seen as": seen_as}
    return {**about, "weights": digests, "dtype": options.dtype}


def _check_size(task: Task, case: PreparedCase) -> None:
    """Refuse cases that were prepared at another size."""
    found = tuple(case.load()[1].shape)
    if task.resize != "none" and found != task.size:
        raise ParameterError(
            f"{case.file}: expected a case of the task's size {task.size}, got {found}. Prepare anew: --data."
        )


def _open(folder: Path, made_with: dict[str, Any]) -> None:
    """Make a folder ready; maps of other weights are removed from it."""
    path = folder / "made_with.json"
    try:
        is_same = path.exists() and read_json(path) == made_with
    except SavedStateError:
        is_same = False
    if not is_same:
        shutil.rmtree(folder / "maps", ignore_errors=True)
    for name in ("maps", "truths", "images"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    remove_stale_drafts(folder)
    write_json(path, made_with)


class Files:
    """Where the map, the truth and the image of a case are kept.

    Parameters
    ----------
    folder
        Of all predictions.
    case
        Whose.
    is_flat
        Whether it is a picture, whose truth and image are written as PNG; volumes have NumPy arrays.
    """

    def __init__(self, folder: Path, case: PreparedCase, *, is_flat: bool) -> None:
        name = file_name(case.case)
        self.case, self.is_flat = case, is_flat
        self.map = folder / "maps" / f"{name}.npy"
        self.truth = folder / "truths" / (f"{name}.png" if is_flat else f"{name}.npy")
        self.image = folder / "images" / f"{name}.png" if is_flat else Path(case.image)

    @property
    def are_there(self) -> bool:
        """Whether all are there, and not older than the prepared case."""
        made = (self.map, self.truth, *([self.image] if self.is_flat else []))
        begun = Path(self.case.file).stat().st_mtime_ns
        return all(path.exists() and path.stat().st_mtime_ns >= begun for path in made)

    def write(self, mapped: Any, task: Task, dtype: str) -> None:
        """Write them; the map last."""
        truth = task.truth(mapped.labels)
        if self.is_flat:
            write_png(self.truth, 255 * truth)
            write_png(self.image, self.case.load()[0])
        else:
            write_npy(self.truth, truth)
        write_npy(self.map, _as_type(mapped.probabilities, dtype))

    def row(self, folder: Path) -> Row:
        """Give the row of a manifest in a folder."""
        places = {"probabilities": self.map, "truth": self.truth, "image": self.image}
        case = self.case
        return {
            "case": case.case,
            "mask": "",
            **{name: relpath(path, folder).replace("\\", "/") for name, path in places.items()},
            "group": case.group,
            "split": case.split,
            "set": case.set,
        }


def _as_type(p: Any, dtype: str) -> Any:
    return np.rint(p * 255.0).astype(np.uint8) if dtype == "uint8" else p.astype(dtype)


def write_npy(path: Path, values: Any) -> None:
    """Write an array; a file that is there is replaced in one step."""
    with atomic_write(path) as draft, draft.open("wb") as file:
        np.save(file, values)


def write_png(path: Path, values: Any) -> None:
    """Write 8-bit grey (H, W) or (1, H, W), or colours (3, H, W)."""
    channels = values if values.ndim == 2 else values[0] if len(values) == 1 else np.moveaxis(values, 0, -1)
    image = require("PIL.Image", extra="io").fromarray(np.ascontiguousarray(channels))
    with atomic_write(path) as draft:
        image.save(draft, format="PNG")


def write_manifests(folder: Path, rows: Sequence[Row]) -> Predictions:
    """Write ``manifest.csv`` of all cases, and ``id.csv`` and one for each other set of those to be judged.

    Those are the test cases; all of a set where no test case is among them.
    """
    sets: dict[str, Path] = {}
    for name in sorted({row["set"] for row in rows}, key=lambda each: (each != ID, each)):
        sets[name] = folder / ("id.csv" if name == ID else f"ood-{file_name(name)}.csv")
        own = [row | {"case": row["case"].removeprefix(f"{name}/")} for row in rows if row["set"] == name]
        tested = [row for row in own if row["split"] == "test"]
        _write_rows(sets[name], tested or own)
    _write_rows(folder / "manifest.csv", rows)
    return Predictions(folder / "manifest.csv", sets, len(rows))


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
