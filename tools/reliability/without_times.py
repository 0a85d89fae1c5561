"""What a run leaves behind, without the times in it: two runs that did the same are equal."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from segtrust.engine import read_log

__all__ = ["TIMES", "contents", "differences"]

TIMES = frozenset(["seconds", "timings", "finished", "made", "checksum", "digests", "reused parts"])
"""Columns and keys that hold a time, a checksum of one, or how much was there when a run was begun."""
_OTHERS = re.compile(r"\.lock$|\.part(\..*)?$")
"""Files without content of their own, and drafts, which are counted apart."""
_TOLD = re.compile(
    rb"\d{4}-\d\d-\d\d[T ][0-9.+:Z]+"  # a moment
    rb"|<dt>Seconds</dt>\s*<dd>[^<]*"  # how long it took
    rb"|(?<=<code>)[0-9a-f]{64}"  # of files that are compared themselves, some with times in them
)

Content = dict[str, Any]


def contents(folder: Path) -> Content:
    """Give what each file below a folder holds, but for times: bytes where it holds none."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not _OTHERS.search(path.name))
    return {path.relative_to(folder).as_posix(): _content(path) for path in files}


def differences(expected: Content, found: Content) -> list[str]:
    """Name the files of which two runs have one only, or not the same."""
    absent = object()
    names = {**expected, **found}
    return [name for name in names if expected.get(name, absent) != found.get(name, absent)]


def _content(path: Path) -> Any:
    readers: dict[str, Callable[[Path], Any]] = {
        ".csv": _of_csv,
        ".json": lambda path: _timeless(json.loads(path.read_text(encoding="utf-8"))),
        ".log": _of_log,
        ".npz": _of_npz,
        ".pt": _of_checkpoint,
        ".parquet": _of_parquet,
        ".html": _of_page,
    }
    return readers.get(path.suffix, lambda path: hashlib.sha256(path.read_bytes()).hexdigest())(path)


def _timeless(values: Any) -> Any:
    """Leave away the times in plain values, however deep they are."""
    if isinstance(values, dict) and {"order", "columns", "rows"} <= set(values):  # of a CSV table
        names = ["case", "structure", *values["columns"]]
        return [{n: v for n, v in zip(names, row, strict=True) if n not in TIMES} for row in values["rows"]]
    if isinstance(values, dict):
        return {name: _timeless(each) for name, each in values.items() if name not in TIMES}
    return [_timeless(each) for each in values] if isinstance(values, list | tuple) else values


def _of_csv(path: Path) -> list[list[str]]:
    """Return the cells of a table as text, without columns that hold times."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    kept = [at for at, name in enumerate(rows[0] if rows else ()) if name not in TIMES]
    return [[row[at] for at in kept] for row in rows]


def _of_log(path: Path) -> dict[str, Any]:
    """Return the settings of a run, and the last outcome of each case: the order is that of their end."""
    log = read_log(path)
    outcomes = {outcome.case: _timeless(outcome.to_dict()) for outcome in log.outcomes}
    return {"made with": _timeless(dict(log.settings)), **outcomes}


def _of_npz(path: Path) -> dict[str, tuple[Any, ...]]:
    import numpy as np

    with np.load(path) as arrays:
        kept = {name: arrays[name] for name in arrays.files if name not in TIMES}
    return {name: (each.dtype.str, each.shape, each.tobytes()) for name, each in kept.items()}


def _of_checkpoint(path: Path) -> Any:
    import torch

    return dict(_flat(_timeless(torch.load(path, weights_only=True)), ""))


def _flat(values: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Give what is in nested mappings and lists by its place; tensors as their bytes."""
    if isinstance(values, dict | list):
        for key, each in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _flat(each, f"{name}/{key}")
    elif hasattr(values, "numpy"):
        yield name, (str(values.dtype), tuple(values.shape), values.numpy().tobytes())
    else:
        yield name, values


def _of_parquet(path: Path) -> tuple[Any, ...]:
    from segtrust.io import read_table

    table = read_table(path)
    kept = tuple(name for name in table.columns if name not in TIMES)
    return kept, [tuple(row[name] for name in kept) for row in table.rows], _timeless(dict(table.about))


def _of_page(path: Path) -> bytes:
    """Give a page without when, how long and of what files it was made."""
    return _TOLD.sub(b"", path.read_bytes())
