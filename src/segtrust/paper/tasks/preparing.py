"""Prepared cases: images at the size of the task and their labels, one file a case, decoded once."""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from segtrust._files import (
    atomic_write,
    read_json,
    remove_stale_drafts,
    remove_stale_drafts_of,
    write_json,
)
from segtrust.errors import ParameterError, SegtrustError
from segtrust.paper.tasks.checking import Problem
from segtrust.paper.tasks.reading import read_sample
from segtrust.paper.tasks.resizing import resized, resized_labels
from segtrust.paper.tasks.splitting import draw_split, read_split, split_in, write_split
from segtrust.paper.tasks.task import SPLITS, Sample, Task

__all__ = [
    "Prepared",
    "PreparedCase",
    "choose_split",
    "counts_of",
    "keep_split",
    "note_training",
    "prepare",
    "read_prepared",
    "source_of",
    "splits_of",
]

_FOLDER, _INDEX, _SPLIT = "prepared", "cases.csv", "split.csv"
_TRAINED = ("training", "cases.json")
"""Where a training says what it was begun with, below the folder of the run."""


@dataclass(frozen=True)
class PreparedCase:
    """A case that is ready to be trained on.

    Attributes
    ----------
    case, group, set
        As in `Sample`; the case by its id.
    split
        One of train, val and test; nothing where it is left out.
    image
        The file that it was made of, the first of several.
    file
        With the arrays ``image`` (C, *spatial) and ``labels`` (*spatial).
    """

    case: str
    group: str
    set: str
    split: str
    image: str
    file: str

    def load(self) -> tuple[Any, Any]:
        """Read image and labels."""
        with np.load(self.file) as arrays:
            return arrays["image"], arrays["labels"]


@dataclass(frozen=True)
class Prepared:
    """All cases of a task that are ready."""

    cases: tuple[PreparedCase, ...]
    problems: tuple[Problem, ...] = ()

    def of(self, *splits: str) -> list[PreparedCase]:
        """Give the cases of some splits."""
        return [each for each in self.cases if each.split in splits]


def prepare(
    task: Task,
    samples: Sequence[Sample],
    out: Path,
    *,
    split: Path | None = None,
    seed: int | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> Prepared:
    """Read, preprocess and resize each case once; what is there already and has not changed is kept.

    Parameters
    ----------
    task, samples
        What is prepared.
    out
        Folder of the run: arrays go into ``prepared/``, the split into ``split.csv``.
    split
        A table of one's own that says which case is trained on; otherwise that of an earlier run, or a new
        one, is used.
    seed
        Of a new split; where one is there, it must be that which this seed draws.
    advance
        Is told of each case.

    Returns
    -------
    Prepared
        Cases that could not be read are not among its cases, but among its problems; those that are left out
        are in neither.

    Raises
    ------
    ParameterError
        If the network was trained here on other cases, or at another size: nothing is changed then.
    """
    out.mkdir(parents=True, exist_ok=True)
    splits = splits_of(task, samples, out, split=split, seed=seed)
    (out / _FOLDER).mkdir(exist_ok=True)
    remove_stale_drafts(out / _FOLDER)
    cases, problems = [], []
    for sample in samples:
        if not splits[sample.id]:
            advance(1)
            continue
        file = out / _FOLDER / f"{sample.file_name}.npz"
        try:
            _prepare_case(task, sample, file)
            image = str(sample.images[0].absolute())
            cases.append((sample.id, sample.group, sample.set, splits[sample.id], image, file.name))
        except (SegtrustError, OSError) as error:
            problems.append(Problem(sample.id, str(error)))
        except Exception as error:  # noqa: BLE001 - all cases are tried, whatever a function of one's own does
            problems.append(Problem(sample.id, f"could not be prepared: {error!r}"))
        advance(1)
    _write_index(out / _FOLDER / _INDEX, cases)
    return Prepared(read_prepared(out).cases, tuple(problems))


def splits_of(
    task: Task, samples: Sequence[Sample], out: Path, *, split: Path | None = None, seed: int | None = None
) -> Mapping[str, str]:
    """Give the split of each case, see `choose_split`, and keep it; not if others were trained on here."""
    found = choose_split(task, samples, out, split=split, seed=seed)
    _refuse_other_training(task, out, found)
    keep_split(out, found)
    return found


def choose_split(
    task: Task, samples: Sequence[Sample], out: Path, *, split: Path | None = None, seed: int | None = None
) -> Mapping[str, str]:
    """Give the split of each case: that of a file, that of an earlier run, or a new one."""
    own = out / _SPLIT
    if split is not None:
        return read_split(split, samples)
    drawn = draw_split(samples, task.split, seed=seed or 0)
    if not own.exists():
        return drawn
    found = read_split(own, samples, is_own=True)
    if seed is not None and found != drawn:
        raise ParameterError(
            f"{own}: expected the split that the seed {seed} draws, got another. Leave the seed away to "
            "use it, or choose another folder."
        )
    return found


def keep_split(out: Path, found: Mapping[str, str]) -> None:
    """Write a split into the folder of a run; cases that are away for a while keep their place."""
    own = out / _SPLIT
    remove_stale_drafts_of(own)
    write_split(own, {**split_in(own), **found})


def note_training(folder: Path, task: Task, cases: Mapping[str, Sequence[str]]) -> None:
    """Write down what a training is begun with: its size, and its cases by split."""
    write_json(
        folder / _TRAINED[1],
        {"size": list(task.size), **{name: sorted(each) for name, each in cases.items()}},
    )


def _refuse_other_training(task: Task, out: Path, found: Mapping[str, str]) -> None:
    """Refuse to turn cases that a network was trained on into others, or to make them of another size."""
    path = out.joinpath(*_TRAINED)
    if not path.exists():
        return
    known = read_json(path)
    now = {name: sorted(case for case, split in found.items() if split == name) for name in ("train", "val")}
    other = [name for name in now if name in known and known[name] != now[name]]
    if other or known.get("size", list(task.size)) != list(task.size):
        what = f"{other[0]} cases" if other else f"size {tuple(known['size'])}"
        raise ParameterError(
            f"{path.parent}: expected the {what} of the training in it, got others: what was trained on "
            "would be tested on. Give the same split and size, choose another folder, or remove this one to "
            "begin anew."
        )


def _prepare_case(task: Task, sample: Sample, file: Path) -> None:
    stamp = _stamp(task, sample)
    if _stamp_in(file) == stamp:
        return
    image, labels = task.preprocess(*read_sample(task, sample), sample)
    image, labels = resized(image, task.size, task.resize), resized_labels(labels, task.size, task.resize)
    with atomic_write(file) as draft, draft.open("wb") as target:
        np.savez(target, image=image, labels=labels, stamp=np.array(stamp))


def _stamp(task: Task, sample: Sample) -> str:
    """Tell all that a prepared case depends on."""
    files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in _files(sample)]
    made_with = [
        task.size,
        task.resize,
        str(sample.labels or task.labels),
        task.preprocess.__name__,
        source_of(task.preprocess),
        sample.box,
    ]
    return json.dumps([files, made_with])


def source_of(function: Any) -> str:
    """Tell functions of one name apart by what they do; nothing where their source cannot be had."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return ""


def _files(sample: Sample) -> Iterable[Path]:
    return (*sample.images, *sample.masks)


def _stamp_in(file: Path) -> str:
    try:
        with file.open("rb") as opened, np.load(opened) as arrays:
            return str(arrays["stamp"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return ""


def _write_index(path: Path, rows: Iterable[Sequence[str]]) -> None:
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([each.name for each in fields(PreparedCase)])
        writer.writerows(rows)


def read_prepared(out: Path) -> Prepared:
    """Read the list of the cases that `prepare` wrote into a folder."""
    path = out / _FOLDER / _INDEX
    if not path.is_file():
        raise ParameterError(f"{path}: expected prepared cases, got none. Run: segtrust tasks prepare.")
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row | {"file": str(path.parent / row["file"])} for row in csv.DictReader(file)]
    return Prepared(tuple(PreparedCase(**row) for row in rows))


def counts_of(prepared: Prepared) -> dict[str, int]:
    """Count the cases of each split."""
    found = Counter(each.split for each in prepared.cases)
    return {name: found[name] for name in (*SPLITS, "") if name in found}
