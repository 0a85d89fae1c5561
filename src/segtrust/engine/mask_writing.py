"""The masks of a score table as files: each map is opened again and cut as it was scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import remove_stale_drafts
from segtrust.engine.outcomes import Failure, Row
from segtrust.engine.reopening import reopen_case
from segtrust.errors import SegtrustError
from segtrust.io.mask_files import mask_path, write_mask
from segtrust.io.places import Place
from segtrust.io.structures import FOREGROUND
from segtrust.kernels import threshold_map
from segtrust.maps import Prediction

__all__ = ["write_masks"]


def write_masks(
    folder: Path,
    rows: Sequence[Row],
    about: Mapping[str, Any],
    advance: Callable[[int], object] = lambda done: None,
) -> list[Failure]:
    """Write the mask that each row was scored with; give those that could not be, and why.

    Parameters
    ----------
    folder
        Files are named by their case, and by their structure where that has a name.
    rows, about
        Of a score table, and what it says of itself.
    advance
        Told of each row that is done.
    """
    remove_stale_drafts(folder)
    failures = []
    for row in rows:
        try:
            _write(folder, row, about)
        except (SegtrustError, OSError) as error:
            file = str(row.get("file", ""))
            failures.append(Failure(str(row["case"]), file, type(error).__name__, str(error)))
        advance(1)
    return failures


def _write(folder: Path, row: Row, about: Mapping[str, Any]) -> None:
    loaded = reopen_case(row, about)
    structure = "" if loaded.structure == FOREGROUND else f"_{loaded.structure}".replace("/", "_")
    source = Place.of(str(row["file"])).path
    path = mask_path(folder, f"{row['case']}{structure}", source, loaded.grid)
    write_mask(path, _mask_of(loaded.prediction), loaded.grid)


def _mask_of(prediction: Prediction) -> Any:
    if prediction.mask is not None:
        return np.asarray(prediction.mask) != 0
    return threshold_map(prediction.probabilities, threshold=prediction.threshold, source=prediction.source)
