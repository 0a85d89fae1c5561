"""Maps that others have published, beside the truths of a task, as if they were predicted here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os.path import relpath
from pathlib import Path

import numpy as np

from segtrust._files import write_json
from segtrust.errors import PairingError, WrongContentError
from segtrust.io import ArrayRef, open_volume
from segtrust.paper.tasks.layouts import PICTURES
from segtrust.paper.tasks.predicting import Predictions, Row, write_manifests, write_npy, write_png
from segtrust.paper.tasks.reading import read_labels
from segtrust.paper.tasks.resizing import resized_labels
from segtrust.paper.tasks.task import Sample, Task

__all__ = ["map_of", "take_maps"]


def map_of(folder: Path, sample: Sample) -> Path | None:
    """Find the published map of a case: ``set/case.png``, ``case.png``, or ``set/predictions/case.png``."""
    *parents, name = sample.case.split("/")
    places = [folder.joinpath(*parents), folder.joinpath(*parents, "predictions"), folder]
    files = (place / f"{name}{ending}" for place in places for ending in (*PICTURES, ".npy"))
    return next((path for path in files if path.is_file()), None)


def take_maps(
    task: Task,
    samples: Sequence[Sample],
    maps: Path,
    out: Path,
    *,
    advance: Callable[[int], object] = lambda done: None,
) -> Predictions:
    """Bring published maps and their truths to the size of the task, by nearest pixels, and list them.

    Parameters
    ----------
    task, samples
        Whose test cases are looked for.
    maps
        Folder of the maps, see `map_of`.
    out
        Folder of the run: all goes into ``predictions/``.
    advance
        Is told of each case.

    Raises
    ------
    PairingError
        If maps are missing; all of them are named.
    """
    tested = [sample for sample in samples if sample.split == "test" and sample.masks]
    found = {sample.id: path for sample in tested if (path := map_of(maps, sample)) is not None}
    missing = [sample.id for sample in tested if sample.id not in found]
    if missing or not tested:
        raise PairingError(
            f"{maps}: expected a map for each of {len(tested)} test cases, got none for {len(missing)}"
            f"{': ' if missing else ''}{', '.join(missing[:5])}{', …' if missing[5:] else ''}. Name them as "
            "the masks, in a folder for each set."
        )
    rows = list(_rows(task, tested, found, out, advance))
    write_json(out / "predictions" / "made_with.json", {"task": task.name, "maps": "published"})
    return write_manifests(out / "predictions", rows)


def _rows(
    task: Task,
    samples: Sequence[Sample],
    found: dict[str, Path],
    out: Path,
    advance: Callable[[int], object],
) -> Iterator[Row]:
    folder = out / "predictions"
    for sample in samples:
        name = sample.file_name
        map_path, truth_path = folder / "maps" / f"{name}.npy", folder / "truths" / f"{name}.png"
        for path in (map_path, truth_path):
            path.parent.mkdir(parents=True, exist_ok=True)
        labels = np.maximum.reduce([read_labels(task, sample, path) for path in sample.masks])
        p = np.asarray(open_volume(ArrayRef(found[sample.id])).read())
        if p.ndim != 2:
            raise WrongContentError(f"{found[sample.id]}: expected one map, got {p.ndim} axes.")
        write_png(truth_path, 255 * task.truth(resized_labels(labels, task.size, task.resize)))
        write_npy(map_path, resized_labels(p, task.size, task.resize))
        image = relpath(sample.images[0], folder) if sample.images else ""
        yield {
            "case": sample.id,
            "probabilities": relpath(map_path, folder),
            "mask": "",
            "truth": relpath(truth_path, folder),
            "image": image,
            "group": sample.group,
            "split": sample.split,
            "set": sample.set,
        }
        advance(1)
