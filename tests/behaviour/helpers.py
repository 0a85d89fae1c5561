"""Comparison of what segtrust produces with values recorded earlier.

Decisions, counts, ids and text must be equal; floats must agree to a relative 1e-12, because kernels
vectorise differently from one processor to the next. ``SEGTRUST_RECORD=1`` rewrites the values before
it compares them: a commit that does so must quote the line of an issue that requires the change.
"""

import csv
import json
import math
import os
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "golden"
RELATIVE = 1e-12
_recorded = set()  # a value that is compared twice is recorded once
RECORDING = os.environ.get("SEGTRUST_RECORD") == "1"


def plain(value):
    """Return a value as JSON can hold it: dicts with string keys, lists, text, numbers, bool and None.

    Floats that JSON does not know become the text "nan", "inf" or "-inf".
    """
    if isinstance(value, Enum):
        value = value.value
    elif isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif isinstance(value, Path):
        value = value.as_posix()
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    raise TypeError(f"no JSON for {type(value).__name__}: {value!r}")


def differences(actual, expected, *, rel=RELATIVE, abs_tol=0.0, at=""):
    """Return one line per difference between two nested values, with its place.

    Everything must be equal, also the order of lists; only two numbers of which at least one is a float may
    differ, by a relative ``rel`` or an absolute ``abs_tol``. A bool is not a number.
    """
    actual, expected = plain(actual), plain(expected)
    if isinstance(actual, dict) and isinstance(expected, dict):
        keys = [*expected, *(key for key in actual if key not in expected)]
        lines = []
        for key in keys:
            here = f"{at}.{key}" if at else key
            if key not in actual:
                lines.append(f"{here}: missing, expected {expected[key]!r}")
            elif key not in expected:
                lines.append(f"{here}: unexpected {actual[key]!r}")
            else:
                lines += differences(actual[key], expected[key], rel=rel, abs_tol=abs_tol, at=here)
        return lines
    if isinstance(actual, list) and isinstance(expected, list):
        if len(actual) != len(expected):
            return [f"{at}: {len(actual)} items, expected {len(expected)}: {actual!r} and {expected!r}"]
        pairs = enumerate(zip(actual, expected, strict=True))
        return [
            line
            for index, (one, other) in pairs
            for line in differences(one, other, rel=rel, abs_tol=abs_tol, at=f"{at}[{index}]")
        ]
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (actual, expected))
    if numbers and (isinstance(actual, float) or isinstance(expected, float)):
        equal = math.isclose(actual, expected, rel_tol=rel, abs_tol=abs_tol)
    else:
        equal = type(actual) is type(expected) and actual == expected
    return [] if equal else [f"{at}: {actual!r}, expected {expected!r}"]


def assert_same(actual, expected, *, rel=RELATIVE, abs_tol=0.0):
    """Fail with every difference between two nested values."""
    lines = differences(actual, expected, rel=rel, abs_tol=abs_tol)
    assert not lines, "\n".join([f"{len(lines)} differences", *lines[:40]])


def golden(name):
    """Return the recorded value ``tests/behaviour/golden/<name>.json``."""
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def assert_golden(name, actual, *, key=None, rel=RELATIVE, abs_tol=0.0):
    """Compare a value with the recorded one, or record it if ``SEGTRUST_RECORD=1``.

    With ``key`` the file holds a dict of several recorded values, and this is the one under that key; record
    those with one process (``-n0``).
    """
    path = GOLDEN / f"{name}.json"
    if RECORDING and (name, key) not in _recorded:
        _recorded.add((name, key))
        content = plain(actual)
        if key is not None:
            content = {**(golden(name) if path.exists() else {}), key: content}
            content = dict(sorted(content.items()))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(format_golden(content), "utf-8")
    recorded = golden(name)
    assert_same(actual, recorded if key is None else recorded[key], rel=rel, abs_tol=abs_tol)


def assert_golden_table(name, rows, *, key=None):
    """Compare rows (dicts) with those recorded, their columns and the order of these included.

    ``relative_error`` is a difference from 1, so its last digits are those of 1: an absolute 1e-15 is
    allowed, which matters for no other column.
    """
    columns = list(rows[0]) if rows else []
    assert all(list(row) == columns for row in rows)
    values = {"columns": columns, "rows": [list(row.values()) for row in rows]}
    assert_golden(name, values, key=key, abs_tol=1e-15)


def format_golden(content, width=110, indent=""):
    """Return JSON with as many values per line as fit."""
    text = json.dumps(content, ensure_ascii=False)
    if len(indent) + len(text) <= width or not isinstance(content, dict | list) or not content:
        return text if indent else text + "\n"
    deeper = indent + " "
    is_dict = isinstance(content, dict)
    values = list(content.values()) if is_dict else content
    names = [f"{json.dumps(name, ensure_ascii=False)}: " if is_dict else "" for name in content]
    items = [name + format_golden(value, width, deeper) for name, value in zip(names, values, strict=True)]
    if not any(isinstance(value, dict | list) for value in values):
        items = fill(items, width - len(deeper) - 1)
    opening, closing = "{}" if is_dict else "[]"
    lines = ",\n".join(deeper + item for item in items)
    return f"{opening}\n{lines}\n{indent}{closing}" + ("" if indent else "\n")


def fill(items, width):
    """Return lines of several items each."""
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) + 2 <= width:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return lines


def number_or_text(text):
    """Return the int or float that a CSV field holds, or its text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_csv(path, *, without=()):
    """Return the rows of a CSV table as dicts, numbers as numbers, without the columns in ``without``."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{key: number_or_text(text) for key, text in row.items() if key not in without} for row in rows]


def read_columns(path):
    """Return the header of a CSV table."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))
