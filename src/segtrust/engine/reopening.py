"""Cases of a score table, opened again to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from segtrust.calibration import Scaling
from segtrust.engine.decoding import as_scored
from segtrust.engine.outcomes import Row
from segtrust.engine.score_table import FOLDER
from segtrust.errors import WrongContentError
from segtrust.io.cases import CaseFiles
from segtrust.io.loading import LoadedCase, ReadOptions, load_case
from segtrust.io.members import SEPARATOR
from segtrust.io.places import Place
from segtrust.io.structures import LabelScheme

__all__ = ["files_of_row", "read_options_of", "reopen_case"]


def files_of_row(row: Row, about: Mapping[str, Any]) -> CaseFiles:
    """Give the files of a row of a score table; ``about`` is what the table says of itself.

    Examples
    --------
    >>> row = {"case": "a", "file": "maps/a.npy", "mask_file": "", "truth_file": "truths/a.npy"}
    >>> files = files_of_row(row, {"folder": "/data"})
    >>> files.probabilities.path.as_posix(), files.truth.path.as_posix(), files.mask
    ('/data/maps/a.npy', '/data/truths/a.npy', None)
    """
    base = Path(str(about.get(FOLDER) or "."))
    mask, truth, image = (_place(row.get(f"{role}_file"), base) for role in ("mask", "truth", "image"))
    return CaseFiles(
        str(row["case"]),
        Place.of(str(row["file"]), base),
        mask=mask,
        truth=truth,
        image=image,
        group=str(row.get("group") or ""),
        set=str(row.get("set") or ""),
        members=tuple(Place.of(text, base) for text in _listed(row.get("member_files"))),
    )


def _listed(text: Any) -> list[str]:
    return str(text).split(SEPARATOR) if text else []


def _place(text: Any, base: Path) -> Place | None:
    return Place.of(str(text), base) if text else None


def read_options_of(about: Mapping[str, Any]) -> ReadOptions:
    """Give the options that the cases of a table were read with."""
    saved = dict(about.get("read") or {})
    scheme = saved.pop("scheme", None)
    for name in ("regions", "labels"):
        if saved.get(name) is not None:
            saved[name] = tuple(saved[name])
    return ReadOptions(**saved, scheme=None if scheme is None else _scheme(scheme))


def _scheme(saved: Mapping[str, Any]) -> LabelScheme:
    labels = tuple((str(name), tuple(values)) for name, values in saved["labels"])
    others, undelivered = (tuple(saved.get(name) or ()) for name in ("others", "undelivered"))
    return LabelScheme(labels, bool(saved["is_regions"]), others, undelivered)


def reopen_case(row: Row, about: Mapping[str, Any]) -> LoadedCase:
    """Load the structure of a case that a row tells of, with the map as it was scored.

    Raises
    ------
    SegtrustError
        If a file is gone, or is no longer what it was.
    """
    files = files_of_row(row, about)
    gone = next((place for place in files.maps if not place.path.exists()), None)
    if gone is not None:
        raise WrongContentError(
            f"{gone}: expected the map of the case {files.id}, got no such file. Put it back, or score the "
            "cases again where they are now."
        )
    options, saved = read_options_of(about), about.get("scaling")
    scaling = None if saved is None else Scaling.from_dict(saved)
    for loaded in load_case(files, options, digest=None):
        if loaded.structure == row["structure"]:
            return replace(loaded, prediction=as_scored(loaded.prediction, options, scaling))
    raise WrongContentError(
        f"{files.probabilities}: expected the structure {row['structure']!r}, got no such structure."
    )
