"""Manifests: tables with one row per case and the paths of its files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from segtrust.errors import PairingError, SegtrustError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import UNPAIRED, CaseFiles, Dataset, Failure
from segtrust.io.names import case_of
from segtrust.io.table import read_csv_rows, read_parquet_rows

__all__ = ["COLUMNS", "is_manifest", "read_manifest"]

COLUMNS = ("case", "probabilities", "members", "mask", "truth", "image", "group", "split")
"""Columns of a manifest, of which only ``probabilities`` is required. Others are ignored, unless they seem to
be misspelled.

The maps of the other members of an ensemble are in ``members``, separated by semicolons.
"""
MEMBER_SEPARATOR = ";"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def is_manifest(path: Path) -> bool:
    """Return whether a file is a manifest, by its ending."""
    return path.suffix.lower() in (*_DELIMITERS, ".parquet")


def read_manifest(path: Path) -> Dataset:
    r"""Read the cases of a manifest; relative paths start at its own folder.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cases.csv"
    >>> _ = path.write_text("case,probabilities,truth\na,maps/a.npy,truth/a.png\n")
    >>> read_manifest(path).cases[0].truth.path.name
    'a.png'
    """
    rows = [{str(name).strip().lower(): value for name, value in row.items()} for row in _read_rows(path)]
    if not rows:
        raise PairingError(f"{path}: expected a row for each case, got none.")
    if "probabilities" not in rows[0]:
        raise PairingError(
            f"{path}: expected a column 'probabilities', and perhaps {', '.join(COLUMNS)}; got "
            f"{', '.join(map(str, rows[0]))}. Columns are separated by commas in .csv and by tabs in .tsv."
        )
    for name in rows[0]:
        meant = next((known for known in COLUMNS if name.rstrip("s") == known.rstrip("s")), name)
        if name != meant and meant not in rows[0]:
            raise PairingError(f"{path}: unknown column {name!r}. Did you mean {meant!r}?")
    cases, failures = [], []
    for number, row in enumerate(rows, 1):
        texts = {name: _cell_text(value) for name, value in row.items()}
        if not any(texts.values()):
            continue
        if not texts["probabilities"]:
            reason = f"expected probabilities in row {number}, got none"
            failures.append(Failure(texts.get("case") or f"row {number}", str(path), UNPAIRED, reason))
            continue
        refs = {
            name: ArrayRef.parse(texts[name], path.parent) if texts.get(name) else None
            for name in ("mask", "truth", "image")
        }
        members = (text.strip() for text in texts.get("members", "").split(MEMBER_SEPARATOR))
        cases.append(
            CaseFiles(
                texts.get("case") or case_of(ArrayRef.parse(texts["probabilities"]).path),
                ArrayRef.parse(texts["probabilities"], path.parent),
                mask=refs["mask"],
                truth=refs["truth"],
                image=refs["image"],
                group=texts.get("group", ""),
                split=texts.get("split", ""),
                members=tuple(ArrayRef.parse(text, path.parent) for text in members if text),
            )
        )
    return Dataset(tuple(cases), tuple(failures))


def _read_rows(path: Path) -> Sequence[Mapping[str, Any]]:
    if not path.is_file():
        raise PairingError(f"{path}: no such manifest.")
    try:
        if path.suffix.lower() == ".parquet":
            return read_parquet_rows(path)[1]
        with path.open(newline="", encoding="utf-8-sig") as file:
            delimiter = _DELIMITERS[path.suffix.lower()]
            return list(read_csv_rows(path, file, delimiter=delimiter, skipinitialspace=True)[1])
    except SegtrustError:
        raise
    except (ValueError, NotImplementedError, OSError, csv.Error) as error:
        raise PairingError(f"{path}: expected a table (text in UTF-8, or Parquet), got {error}.") from None


def _cell_text(value: Any) -> str:
    """Return the text of a cell; empty for None, and for NaN, by which pandas marks missing values."""
    if value is None or value != value:
        return ""
    is_whole = isinstance(value, float) and value.is_integer()  # pandas turns integers with gaps into floats
    return str(int(value) if is_whole else value).strip()
