"""Skin lesions in dermoscopy: ISIC 2018 with UNeXt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from segtrust.paper.tasks import (
    ID,
    UNEXT_CODE,
    UNEXT_PAPER,
    Sample,
    Source,
    Task,
    files_in,
    imagenet_twice_scaled,
    paired,
    stem_of,
)

_PARTS = ("Training", "Validation", "Test")


def find(data: Path) -> Iterator[Sample]:
    """Find the images and masks of all three published parts, which are one set here."""
    images = [path for part in _PARTS for path in files_in(data / f"ISIC2018_Task1-2_{part}_Input")]
    masks = [path for part in _PARTS for path in files_in(data / f"ISIC2018_Task1_{part}_GroundTruth")]
    return paired(images, masks, mask_case=lambda path: stem_of(path).removesuffix("_segmentation"))


TASK = Task(
    name="skin-cancer",
    title="Skin lesions in dermoscopy (ISIC 2018)",
    network="unext",
    size=(512, 512),
    find=find,
    normalise=imagenet_twice_scaled,
    split={"train": 2155, "val": 539, "test": 1000},
    sets={ID: 3694},
    recipes={"paper": UNEXT_PAPER, "code": UNEXT_CODE},
    source=Source(
        url="https://challenge.isic-archive.com/data/#2018",
        licence="CC BY-NC 4.0",
        citation="Codella et al., Skin lesion analysis toward melanoma detection 2018, arXiv:1902.03368",
        layout="'ISIC2018_Task1-2_Training_Input' with ISIC_0000000.jpg, 'ISIC2018_Task1_Training_"
        "GroundTruth' with ISIC_0000000_segmentation.png, and the same for Validation and Test.",
    ),
)
