"""The images that cases were segmented from, found by name; only people look at them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from segtrust.errors import PairingError
from segtrust.io.cases import CaseFiles, DataSet
from segtrust.io.names import case_of, is_data_file, stem_of
from segtrust.io.pictures import read_case_image  # moved
from segtrust.io.places import Place

__all__ = ["read_case_image", "with_images"]

_FIRST_CHANNEL = re.compile(r"_0000$")
"""What nnU-Net adds to the name of a case; the others (``_0001`` …) are further channels."""
_ROLE = re.compile(r"(?<=.)[_\-. ](?:image|img|scan)$", re.IGNORECASE)


def with_images(found: DataSet, folder: Path) -> DataSet:
    """Give each case the image of its name in a folder; a case without one stays as it is.

    Images in folders below are those of cases in folders of the same name. Of several of one name none is
    taken: which it is could not be told.
    """
    if not folder.is_dir():
        raise PairingError(f"{folder}: expected a folder of images, got none.")
    images: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_data_file(path):
            for name in _names_of(path, folder):
                images.setdefault(name, []).append(path)
    return DataSet(tuple(_with_image(case, images) for case in found.cases), found.unpaired)


def _names_of(path: Path, folder: Path) -> Iterator[str]:
    """Give the cases that an image may be of, by its name, with and without the folder that it is in."""
    stem = stem_of(path)
    names = dict.fromkeys((stem, _FIRST_CHANNEL.sub("", stem), _ROLE.sub("", stem), case_of(path)))
    below = path.parent.relative_to(folder).as_posix()
    for name in names:
        yield name
        if below != ".":
            yield f"{below}/{name}"


def _with_image(case: CaseFiles, images: Mapping[str, list[Path]]) -> CaseFiles:
    if case.image is not None:
        return case
    for name in (f"{case.folder}/{case.name}" if case.folder else case.name, case.name):
        if len(images.get(name, ())) == 1:
            return replace(case, image=Place(images[name][0]))
    return case
