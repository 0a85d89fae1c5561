"""What is wrong with a data set, all of it, before hours are spent."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from segtrust.errors import ParameterError, SegtrustError
from segtrust.paper.tasks.reading import check_shape, read_image, read_labels
from segtrust.paper.tasks.task import ID, SPLITS, Sample, Task

__all__ = ["Checked", "Problem", "check_data", "check_samples", "find_samples", "problems_of"]


@dataclass(frozen=True)
class Problem:
    """Something that stands in the way, and what to do about it."""

    case: str
    reason: str


@dataclass(frozen=True)
class Checked:
    """What was found of a task in a folder.

    Attributes
    ----------
    samples
        All cases.
    problems
        Of cases, and of the folder as a whole.
    notes
        What differs from the data set as published, and may be meant so.
    """

    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def find_samples(task: Task, data: Path) -> list[Sample]:
    """Find the cases of a task in a folder.

    Raises
    ------
    ParameterError
        If there is no such folder, or nothing in it.
    """
    if not data.is_dir():
        raise ParameterError(f"{data}: expected the folder of {task.name}, got none. {_layout(task)}")
    samples = _found(task, data)
    if not samples:
        raise ParameterError(f"{data}: expected the files of {task.name}, got none of them. {_layout(task)}")
    strange = next((each.set for each in samples if not each.set or set("/\\=") & set(each.set)), None)
    if strange is not None:
        raise ParameterError(f"{data}: expected names of sets without '/' and '=', got {strange!r}.")
    return samples


def _found(task: Task, data: Path) -> list[Sample]:
    """Call what finds cases; where that fails, as one's own may, say where."""
    try:
        return list(task.find(data))
    except SegtrustError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise ParameterError(
            f"{data}: expected `find` of {task.name} to give its cases, got {error!r} in line {place.lineno} "
            f"of {place.filename}."
        ) from error


def _layout(task: Task) -> str:
    return f"Expected is: {task.source.layout} See: segtrust tasks show {task.name}."


def check_data(
    task: Task, data: Path, *, quick: bool = False, advance: Callable[[int], object] = lambda done: None
) -> Checked:
    """Look at each case of a folder, and list all that is wrong.

    Parameters
    ----------
    task, data
        What is looked for, and where.
    quick
        Whether names are enough, and no file is opened.
    advance
        Is told of each case.
    """
    try:
        samples = find_samples(task, data)
    except ParameterError as error:
        return Checked((), (Problem(task.name, str(error)),))
    return check_samples(task, samples, quick=quick, advance=advance)


def check_samples(
    task: Task,
    samples: Sequence[Sample],
    *,
    quick: bool = False,
    advance: Callable[[int], object] = lambda done: None,
) -> Checked:
    """Look at each of some cases; parameters as for `check_data`."""
    problems = [*_of_folder(task, samples), *_doubles(samples)]
    for sample in samples:
        problems += _of_names(sample) if quick else problems_of(task, sample)
        advance(1)
    counts = Counter(each.set for each in samples)
    return Checked(tuple(samples), tuple(problems), tuple(_notes(task, counts)), dict(counts))


def problems_of(task: Task, sample: Sample) -> Iterator[Problem]:
    """List what is wrong with a case: files that are missing or cannot be read, sizes, values."""
    yield from _of_names(sample)
    whole = replace(sample, lacks="")
    image, said = _tried(lambda: read_image(task, whole)) if sample.images else (None, None)
    if said is None and image is not None and not sample.lacks:
        said = _of_channels(task, image.shape[0])
    if said:
        yield Problem(sample.id, said)
    for path in sample.masks:
        labels, said = _tried(lambda path=path: read_labels(task, sample, path))  # type: ignore[misc]
        if not said and image is not None:
            _, said = _tried(lambda path=path, labels=labels: check_shape(labels, image, path))  # type: ignore[misc]
        if said:
            yield Problem(sample.id, said)


def _of_channels(task: Task, channels: int) -> str | None:
    """Say what is wrong with the number of channels: a grey picture may stand for any."""
    given = task.options.get("channels", 3 if task.dimensions == 2 else 1)
    wanted = given if isinstance(given, int) else len(given)
    if channels in (1, wanted):
        return None
    return f"expected an image of 1 or {wanted} channels, got {channels}. Choose some of them in `find`."


def _of_names(sample: Sample) -> Iterator[Problem]:
    if sample.lacks:
        yield Problem(sample.id, sample.lacks)
    elif not sample.images and not sample.masks:
        yield Problem(sample.id, "neither image nor mask. Add them, or remove its folder.")
    elif not sample.images:
        yield Problem(
            sample.id, f"a mask without image: {sample.masks[0]}. Add the image, or remove the mask."
        )
    elif not sample.masks:
        yield Problem(
            sample.id, f"an image without mask: {sample.images[0]}. Add the mask, or remove the image."
        )


def _tried(read: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return read(), None
    except (SegtrustError, OSError) as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - all cases are listed, whatever one of them does
        return None, f"could not be read: {error!r}"


def _of_folder(task: Task, samples: Sequence[Sample]) -> Iterator[Problem]:
    """List sets and splits that are absent."""
    found = {each.set for each in samples}
    for name in task.sets:
        if name not in found:
            yield Problem(name, f"no case of the set {name!r}. {task.source.layout}")
    yield from _of_splits(task, samples)
    strange = sorted({each.split for each in samples} - {*SPLITS, ""})
    if strange:
        yield Problem(task.name, f"the split {strange[0]!r} is none of {', '.join(SPLITS)}.")


def _of_splits(task: Task, samples: Sequence[Sample]) -> Iterator[Problem]:
    """List splits that are wanted, and of which there can be no case."""
    known = [each.split for each in samples if each.set == ID]
    if known and "test" not in known and not task.split.get("test"):
        yield Problem("test", f"no case to test on: the data set should say which. {task.source.layout}")
    if not known or "" in known:
        return  # nothing at all, which is told already; or cases that are drawn
    for name in ("train", "test"):
        if task.split.get(name) and name not in known:
            yield Problem(name, f"no case of the split {name!r} in distribution. {task.source.layout}")


def _doubles(samples: Sequence[Sample]) -> Iterator[Problem]:
    """List cases that would share a file, also where a file system does not tell capitals."""
    names: dict[str, list[str]] = {}
    for each in samples:
        names.setdefault(each.file_name.casefold(), []).append(each.id)
    for same in names.values():
        if len(same) > 1:
            yield Problem(same[0], f"{len(same)} cases of this name: {', '.join(same)}. Rename all but one.")


def _notes(task: Task, counts: Mapping[str, int]) -> Iterator[str]:
    for name, published in task.sets.items():
        if published and counts.get(name, 0) != published:
            yield f"{name}: {counts.get(name, 0)} cases; the paper has {published}."
