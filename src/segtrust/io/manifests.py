"""Manifests: a table with a row for each case and the paths of its files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust.errors import PairingError, SegtrustError
from segtrust.io.cases import CaseFiles, DataSet, Unpaired
from segtrust.io.members import SEPARATOR
from segtrust.io.names import case_of
from segtrust.io.places import Place
from segtrust.io.rows import csv_rows, read_parquet

__all__ = ["COLUMNS", "is_manifest", "read_manifest"]

COLUMNS = ("case", "probabilities", "members", "mask", "truth", "image", "group", "split")
"""What a manifest may say; only ``probabilities`` must be there. Other columns are not looked at.

The maps of the other members of an ensemble are in ``members``, separated by semicolons.
"""
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def is_manifest(path: Path) -> bool:
    """Tell by its ending."""
    return path.suffix.lower() in (*_SEPARATORS, ".parquet")


def read_manifest(path: Path) -> DataSet:
    r"""Read the cases of a manifest; paths are taken from its own folder on.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cases.csv"
    >>> _ = path.write_text("case,probabilities,truth\na,maps/a.npy,truths/a.png\n")
    >>> read_manifest(path).cases[0].truth.path.name
    'a.png'
    """
    rows = [{str(name).strip().lower(): value for name, value in row.items()} for row in _rows(path)]
    if not rows:
        raise PairingError(f"{path}: expected a row for each case, got none.")
    if "probabilities" not in rows[0]:
        raise PairingError(
            f"{path}: expected a column 'probabilities', and perhaps {', '.join(COLUMNS)}; got "
            f"{', '.join(map(str, rows[0]))}. Columns are told apart by commas in .csv, by tabs in .tsv."
        )
    numbered = [(number, row) for number, row in enumerate(rows, 1) if any(map(_text, row.values()))]
    return DataSet(
        tuple(_case(row, path) for _, row in numbered if _text(row["probabilities"])),
        tuple(_without_map(row, at, path) for at, row in numbered if not _text(row["probabilities"])),
    )


def _without_map(row: Mapping[str, Any], number: int, path: Path) -> Unpaired:
    name = _text(row.get("case")) or f"row {number}"
    return Unpaired(name, str(path), f"expected probabilities in row {number}, got none")


def _rows(path: Path) -> Sequence[Mapping[str, Any]]:
    if not path.is_file():
        raise PairingError(f"{path}: expected a manifest, got no file of this name.")
    try:
        if path.suffix.lower() == ".parquet":
            return read_parquet(path)[1]
        with path.open(newline="", encoding="utf-8-sig") as file:
            separator = _SEPARATORS[path.suffix.lower()]
            return list(csv_rows(path, file, delimiter=separator, skipinitialspace=True)[1])
    except SegtrustError:
        raise
    except (ValueError, NotImplementedError, OSError, csv.Error) as error:
        raise PairingError(f"{path}: expected a table (text in UTF-8, or Parquet), got {error}.") from None


def _case(row: Mapping[str, Any], path: Path) -> CaseFiles:
    places = {name: _place(row.get(name), path) for name in ("probabilities", "mask", "truth", "image")}
    texts = {name: _text(row.get(name)) for name in ("case", "group", "split")}
    name = texts.pop("case") or case_of(Place.of(_text(row["probabilities"])).path)
    return CaseFiles(name, **places, **texts, members=_members(row, path))  # type: ignore[arg-type]


def _members(row: Mapping[str, Any], path: Path) -> tuple[Place, ...]:
    texts = [text.strip() for text in _text(row.get("members")).split(SEPARATOR)]
    return tuple(Place.of(text, path.parent) for text in texts if text)


def _place(value: Any, path: Path) -> Place | None:
    text = _text(value)
    return Place.of(text, path.parent) if text else None


def _text(value: Any) -> str:
    """Give what a cell says; nothing for None, and for NaN, by which pandas marks what is missing."""
    if value is None or value != value:
        return ""
    is_whole = isinstance(value, float) and value.is_integer()  # as pandas keeps numbers beside gaps
    return str(int(value) if is_whole else value).strip()
