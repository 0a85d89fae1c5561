"""Nuclei in microscopy, with UNeXt: dark fluorescence images, and bright or stained ones as another set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.errors import SegtrustError
from segtrust.paper.tasks import (
    ID,
    UNEXT_PAPER,
    Sample,
    Source,
    Task,
    files_in,
    imagenet_twice_scaled,
    paired,
)
from segtrust.paper.tasks.reading import read_picture

_BRIGHT = 100.0
"""Mean of red, green and blue; none of the images lies between 57 and 135."""


def find(data: Path) -> Iterator[Sample]:
    """Find pairs in 'images' and 'masks', or folders with an image and a mask for each nucleus."""
    if (data / "images").is_dir():
        found = paired(files_in(data / "images"), files_in(data / "masks"))
    else:
        found = (
            sample for folder in sorted(data.iterdir()) if folder.is_dir() for sample in _in_folder(folder)
        )
    for sample in found:
        yield replace(sample, set="bright") if _is_bright(sample) else sample


def _in_folder(folder: Path) -> Iterator[Sample]:
    images, masks = (files_in(folder / name) for name in ("images", "masks"))
    return paired(images, masks, image_case=lambda _: folder.name, mask_case=lambda _: folder.name)


def _is_bright(sample: Sample) -> bool:
    try:
        return bool(sample.images) and bool(read_picture(sample.images[0]).mean() >= _BRIGHT)
    except SegtrustError:
        return False


TASK = Task(
    name="nuclei",
    title="Nuclei in microscopy (Data Science Bowl 2018)",
    network="unext",
    size=(256, 256),
    find=find,
    normalise=imagenet_twice_scaled,
    sets={ID: 0, "bright": 0},
    recipes={"usual": replace(UNEXT_PAPER, epochs=150)},
    source=Source(
        url="https://bbbc.broadinstitute.org/BBBC038",
        licence="CC0 1.0",
        citation="Caicedo et al., Nucleus segmentation across imaging experiments, Nature Methods 16, 2019",
        layout="folders 'images' and 'masks' with files of the same names; or, as published, a folder a case "
        "with 'images/<case>.png' and 'masks/*.png', one for each nucleus.",
    ),
)
