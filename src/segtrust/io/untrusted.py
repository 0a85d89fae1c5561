"""Pickles whose author one trusts: to load them runs whatever code is in them.

Nothing here is called unless a person has said so (``--allow-pickle``); `segtrust.io.pickles` reads plain
data without that danger.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from segtrust.errors import DamagedFileError, WrongContentError
from segtrust.io.places import Place
from segtrust.io.volumes import Volume

__all__ = ["LISTED", "is_pickle", "open_unpickled", "unpickled"]

LISTED = "listed"
"""What the arrays are called of a pickle that is a mere list of them."""
_ENDINGS = (".pkl", ".pickle")


def is_pickle(path: Path) -> bool:
    """Tell by its ending."""
    return path.suffix.lower() in _ENDINGS


def unpickled(path: Path) -> Mapping[str, Any]:
    """Load the arrays of a pickle, or of an archive that holds pickled ones, by name; code in it is run."""
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)  # maps and truths may be two files, which are read in turns
def _loaded(path: Path, changed: int) -> Mapping[str, Any]:
    try:
        if is_pickle(path):
            found = pickle.loads(path.read_bytes())  # nosec B301  # allowed by --allow-pickle, and only then
        else:
            with np.load(path, allow_pickle=True) as archive:
                found = dict(archive)
    except Exception as error:  # noqa: BLE001 - damaged pickles raise nearly everything
        raise DamagedFileError(
            f"{path}: expected a pickle, got one that cannot be read ({error!r})."
        ) from None
    if isinstance(found, list):
        return {LISTED: found}
    if not isinstance(found, Mapping):
        raise WrongContentError(
            f"{path}: expected arrays by name, such as p_hat, got {type(found).__name__}."
        )
    return found


def open_unpickled(place: Place) -> Volume:
    """Give one of the cases of a pickle, which may differ in shape."""
    arrays = unpickled(place.path)
    if place.key is None or place.key not in arrays:
        raise WrongContentError(f"{place.path}: expected {place.key!r}, got {', '.join(map(str, arrays))}.")
    values = np.asarray(arrays[place.key][place.index or 0])

    def load(channel: int | None) -> Any:
        return values if channel is None else values[channel]

    return Volume(str(place), values.shape, values.dtype, load)
