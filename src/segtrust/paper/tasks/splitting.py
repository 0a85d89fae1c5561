"""Which cases are trained on, and which are kept for the end."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from segtrust._files import atomic_write
from segtrust.errors import ParameterError
from segtrust.paper.tasks.task import ID, SPLITS, Sample

__all__ = ["draw_split", "read_split", "split_in", "write_split"]

_COLUMNS = ("case", "split")


def draw_split(samples: Sequence[Sample], wanted: Mapping[str, int], *, seed: int = 0) -> dict[str, str]:
    """Draw the split of each case of the set in distribution; all others are tested on.

    Cases of a group stay together. What the data set itself says is kept; the others are drawn. Where there
    are as many as are wanted in all the numbers are met, otherwise their shares.

    Examples
    --------
    >>> split = draw_split([Sample(str(i)) for i in range(10)], {"train": 7, "val": 1, "test": 2})
    >>> sorted(split.values())
    ['test', 'test', 'train', 'train', 'train', 'train', 'train', 'train', 'train', 'val']
    """
    split = {each.id: each.split or ("" if each.set == ID else "test") for each in samples}
    open_cases = sorted((each for each in samples if not split[each.id]), key=lambda each: each.id)
    groups: dict[str, list[str]] = {}
    for each in open_cases:
        groups.setdefault(each.group or f"case {each.id}", []).append(each.id)
    order = [list(groups.values())[at] for at in np.random.default_rng(seed).permutation(len(groups))]
    targets = _shared_out(len(open_cases), wanted)
    for name, cases in zip(_filled(order, targets), order, strict=True):
        split |= dict.fromkeys(cases, name)
    return split


def _shared_out(number: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Share a number out in the proportions that are wanted; who loses most by rounding gets the rest.

    The test cases come first: tasks of the same cases and the same share have the same, whatever is done with
    the others.
    """
    total = sum(wanted.values())
    tested = wanted.get("test", 0)
    if tested and tested < total:
        own = (2 * number * tested + total) // (2 * total)
        others = {name: share for name, share in wanted.items() if name != "test"}
        return {**_shared_out(number - own, others), "test": own}
    exact = {name: number * share / total for name, share in wanted.items()}
    found = {name: int(each) for name, each in exact.items()}
    by_loss = sorted(found, key=lambda name: found[name] - exact[name])
    for name in by_loss[: number - sum(found.values())]:
        found[name] += 1
    return found


def _filled(order: Sequence[Sequence[str]], targets: Mapping[str, int]) -> list[str]:
    """Say for each group which split it goes to: the first that is not full."""
    left = {name: targets.get(name, 0) for name in SPLITS if name in targets}
    names = []
    for cases in order:
        name = next((each for each, room in left.items() if room > 0), SPLITS[0])
        left[name] = left.get(name, 0) - len(cases)
        names.append(name)
    return names


def write_split(path: Path, split: Mapping[str, str]) -> None:
    """Write a table of cases and their splits."""
    with atomic_write(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(sorted(split.items()))


def read_split(path: Path, samples: Sequence[Sample], *, is_own: bool = False) -> dict[str, str]:
    """Read such a table, which must say of each case where it belongs; cases with nothing are left out.

    Parameters
    ----------
    path
        Of the table.
    samples
        Cases that there are.
    is_own
        Whether it is that of an earlier run, which may know cases that are no longer there.
    """
    rows = _rows(path)
    found = {row["case"]: (row["split"] or "").strip() for row in rows}
    _refuse_doubled(path, rows)
    strange = sorted(set(found) - {each.id for each in samples})
    if strange and not is_own:
        raise ParameterError(
            f"{path}: expected cases of the data set, got {strange[0]!r}"
            f"{f' and {len(strange) - 1} more' if strange[1:] else ''}, of which there are no files. Cases "
            f"are called like {samples[0].id!r}."
        )
    wrong = sorted(set(found.values()) - {*SPLITS, ""})
    if wrong:
        raise ParameterError(f"{path}: expected {', '.join(SPLITS)} or nothing, got {wrong[0]!r}.")
    unsaid = [each.id for each in samples if each.id not in found]
    if unsaid:
        raise ParameterError(
            f"{path}: expected a row for each of {len(samples)} cases, got none for {unsaid[0]!r}"
            f"{f' and {len(unsaid) - 1} more' if unsaid[1:] else ''}. Add them, with an empty split to leave "
            "them out."
        )
    return {each.id: found[each.id] for each in samples}


def split_in(path: Path) -> dict[str, str]:
    """Give the rows of a table that is there, whatever cases they are of; none where it is not."""
    return {row["case"]: row["split"] or "" for row in _rows(path)} if path.exists() else {}


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise ParameterError(f"{path}: expected a table of {' and '.join(_COLUMNS)}, got no such file.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path}: expected a CSV table in UTF-8, got {error}.") from None
    if not rows or not set(_COLUMNS) <= set(rows[0]):
        raise ParameterError(f"{path}: expected the columns {' and '.join(_COLUMNS)}.")
    return rows


def _refuse_doubled(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    often, times = Counter(row["case"] for row in rows).most_common(1)[0]
    if times > 1:
        raise ParameterError(f"{path}: expected each case once, got {times} rows of {often!r}.")
