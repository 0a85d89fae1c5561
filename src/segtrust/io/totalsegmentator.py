"""The names that TotalSegmentator gives its structures, from the package itself.

It writes probabilities as nnU-Net does, but no ``dataset.json`` beside them. Its lists of names change with
its versions, so they are read from the one that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from segtrust._optional import require
from segtrust.errors import UnknownNameError
from segtrust.io.structures import LabelScheme

__all__ = ["PARTS", "PREFIX", "names_task", "task_scheme"]

PREFIX = "totalsegmentator:"
"""Before the name of a task, where else the path of a ``dataset.json`` stands."""
PARTS = (
    "Of a task that runs several models, TotalSegmentator keeps the probabilities of the last one only: name "
    "that, as in totalsegmentator:total/ribs, or let it run with --fast, where one model does all."
)
"""What to do where a file has fewer channels than its task has structures."""
_PART = "class_map_part_"
_AUXILIARY = "_auxiliary"

_Classes = Mapping[int, str]


def names_task(path: Path) -> bool:
    """Tell whether a task is named, and no file.

    Examples
    --------
    >>> names_task(Path("totalsegmentator:total")), names_task(Path("dataset.json"))
    (True, False)
    """
    return str(path).startswith(PREFIX)


def task_scheme(path: Path) -> LabelScheme:
    """Give the structures of a task, ``totalsegmentator:total``, or of one of its models, ``…:total/ribs``.

    Labels are those of the masks of the whole task: that of a model of part of them has others as well.
    """
    task, _, part = str(path).removeprefix(PREFIX).partition("/")
    lists = require("totalsegmentator.map_to_binary", extra="totalsegmentator")
    classes = _classes_of(lists, task)
    if part:
        return _part_scheme(classes, _part_of(lists, classes, task, part))
    # What a model was trained on to tell it from the rest, and what is taken out of its masks.
    auxiliary: _Classes = lists.class_map.get(task + _AUXILIARY, {})
    every = {**classes, **auxiliary}
    labels = tuple((every[i], (i,)) for i in sorted(every))
    return LabelScheme(labels, is_regions=False, undelivered=tuple(auxiliary.values()))


def _classes_of(lists: ModuleType, task: str) -> _Classes:
    known: Mapping[str, _Classes] = lists.class_map
    if task not in known:
        listed = ", ".join(sorted(name for name in known if not name.endswith(_AUXILIARY)))
        raise UnknownNameError(f"Unknown task of TotalSegmentator {task!r}; available: {listed}.")
    return known[task]


def _part_of(lists: ModuleType, classes: _Classes, task: str, part: str) -> _Classes:
    """Find one of the models that share a task: of the lists of parts, that whose names are the task's."""
    names = set(classes.values())
    parts: dict[str, _Classes] = {
        name.removeprefix(_PART): values
        for each in vars(lists).values()
        for name, values in _items_of(each)
        if name.startswith(_PART) and set(values.values()) <= names
    }
    short = part.removeprefix(_PART)
    if short not in parts:
        listed = ", ".join(parts) or "none, as one model does all"
        raise UnknownNameError(
            f"Unknown part of TotalSegmentator's task {task!r} {part!r}; there are: {listed}."
        )
    return parts[short]


def _items_of(value: Any) -> list[tuple[str, _Classes]]:
    """Give what looks like a list of parts: names with classes."""
    if not isinstance(value, dict):
        return []
    return [(name, each) for name, each in value.items() if isinstance(name, str) and isinstance(each, dict)]


def _part_scheme(classes: _Classes, part: _Classes) -> LabelScheme:
    labels = {name: number for number, name in classes.items()}
    own = tuple((part[i], (labels[part[i]],)) for i in sorted(part))
    others = sorted(set(classes) - {number for _, numbers in own for number in numbers})
    return LabelScheme(own, is_regions=False, others=tuple(others))
