"""The cases of a score table, read again from their files: for pictures, and to write their masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import remove_stale_drafts
from segtrust.calibration import Scaling
from segtrust.engine.executors import Sandbox
from segtrust.engine.score_table import FOLDER
from segtrust.engine.scoring import prepare_for_scoring
from segtrust.errors import SegtrustError, WrongContentError
from segtrust.io import (
    FOREGROUND,
    MEMBER_SEPARATOR,
    ArrayRef,
    CaseFiles,
    Failure,
    LabelScheme,
    LoadedCase,
    ReadOptions,
    ScoreRow,
    load_case,
    mask_path,
    write_mask,
)
from segtrust.kernels import threshold_map

__all__ = ["files_of_row", "read_options_of", "reopen_case", "write_masks"]


def files_of_row(row: ScoreRow, about: Mapping[str, Any]) -> CaseFiles:
    """Return the files of a row of a score table; ``about`` is what the table says of itself.

    Examples
    --------
    >>> row = {"case": "a", "file": "maps/a.npy", "mask_file": "", "truth_file": "truths/a.npy"}
    >>> files = files_of_row(row, {"folder": "/data"})
    >>> files.probabilities.path.as_posix(), files.truth.path.as_posix(), files.mask
    ('/data/maps/a.npy', '/data/truths/a.npy', None)
    """
    folder = Path(str(about.get(FOLDER) or "."))
    mask, truth, image = (
        ArrayRef.parse(str(row[column]), folder) if row.get(column) else None
        for column in ("mask_file", "truth_file", "image_file")
    )
    members = str(row["member_files"]).split(MEMBER_SEPARATOR) if row.get("member_files") else []
    return CaseFiles(
        str(row["case"]),
        ArrayRef.parse(str(row["file"]), folder),
        mask=mask,
        truth=truth,
        image=image,
        group=str(row.get("group") or ""),
        set=str(row.get("set") or ""),
        members=tuple(ArrayRef.parse(text, folder) for text in members),
    )


def read_options_of(about: Mapping[str, Any]) -> ReadOptions:
    """Return the options that the cases of a table were read with."""
    saved = dict(about.get("read") or {})
    scheme = saved.pop("scheme", None)
    for name in ("regions", "labels"):
        if saved.get(name) is not None:
            saved[name] = tuple(saved[name])
    if scheme is not None:
        labels = tuple((str(name), tuple(values)) for name, values in scheme["labels"])
        others, undelivered = (tuple(scheme.get(name) or ()) for name in ("others", "undelivered"))
        scheme = LabelScheme(labels, bool(scheme["is_regions"]), others, undelivered)
    return ReadOptions(**saved, scheme=scheme)


def reopen_case(row: ScoreRow, about: Mapping[str, Any], files: CaseFiles | None = None) -> LoadedCase:
    """Read the structure of a case that a row describes, with the map as it was scored.

    Parameters
    ----------
    row, about
        A row of a score table, and what the table says of itself.
    files
        Files of the case; those that the row names by default. A table never allows pickles to be loaded.

    Raises
    ------
    SegtrustError
        If a file is missing, or no longer what it was.
    """
    files = files or files_of_row(row, about)
    for place in files.maps:
        if not place.path.exists():
            raise WrongContentError(
                f"{place}: expected the map of the case {files.id}, got no such file. Put it back, or score "
                "the cases again where they are now."
            )
    options, saved = read_options_of(about), about.get("scaling")
    scaling = None if saved is None else Scaling.from_dict(saved)
    for loaded in load_case(files, options, digest=None):
        if loaded.structure == row["structure"]:
            return replace(loaded, prediction=prepare_for_scoring(loaded.prediction, options, scaling))
    raise WrongContentError(
        f"{files.probabilities}: expected the structure {row['structure']!r}, got no such structure."
    )


def write_masks(
    folder: Path,
    rows: Sequence[ScoreRow],
    about: Mapping[str, Any],
    files: Mapping[str, CaseFiles],
    advance: Callable[[int], object] = lambda done: None,
) -> list[Failure]:
    """Write the mask that each row was scored with, in a worker process; return the failures.

    Parameters
    ----------
    folder
        Files are named after their case, and after their structure if that has a name.
    rows, about
        Rows of a score table, and what the table says of itself.
    files
        Files of each case, by its id.
    advance
        Called after each row.
    """
    remove_stale_drafts(folder)
    failures = []
    with Sandbox() as sandbox:
        for row in rows:
            file = str(row.get("file", ""))
            try:
                sandbox.call(_write_mask_of, folder, row, about, files.get(row["case"]), files=[file])
            except (SegtrustError, OSError) as error:
                failures.append(Failure(str(row["case"]), file, type(error).__name__, str(error)))
            advance(1)
    return failures


def _write_mask_of(folder: Path, row: ScoreRow, about: Mapping[str, Any], files: CaseFiles | None) -> None:
    loaded = reopen_case(row, about, files)
    structure = "" if loaded.structure == FOREGROUND else f"_{loaded.structure}".replace("/", "_")
    source = ArrayRef.parse(str(row["file"])).path
    path = mask_path(folder, f"{row['case']}{structure}", source, loaded.grid)
    prediction = loaded.prediction
    if prediction.mask is not None:
        mask = np.asarray(prediction.mask) != 0
    else:
        mask = threshold_map(
            prediction.probabilities, threshold=prediction.threshold, source=prediction.source
        )
    write_mask(path, mask, loaded.grid)
