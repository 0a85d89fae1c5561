"""The hippocampus in MR volumes, with the Shifts U-Net."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.paper.tasks import (
    SHIFTS_PAPER,
    VOLUMES,
    Labels,
    Sample,
    Source,
    Task,
    files_in,
    paired,
    unchanged,
    volume_changed,
    zscored_image,
)


def find(data: Path) -> Iterator[Sample]:
    """Find volumes and labels, as in the archive (imagesTr, labelsTr) or with shorter names of folders."""
    for images, labels in (("imagesTr", "labelsTr"), ("images", "labels")):
        yield from paired(files_in(data / images, VOLUMES), files_in(data / labels, VOLUMES))


TASK = Task(
    name="hippocampus",
    title="Hippocampus in MR volumes (Medical Segmentation Decathlon)",
    network="shifts-unet",
    options={"window": (48, 64, 48)},
    size=(48, 64, 48),
    resize="none",
    find=find,
    labels=Labels({0: 0, 1: 1, 2: 1}),
    preprocess=zscored_image,
    normalise=unchanged,
    recipes={
        "usual": replace(
            SHIFTS_PAPER, epochs=100, iterations=0, patches=1, batch=4, augment=volume_changed, loss=""
        )
    },
    source=Source(
        url="http://medicaldecathlon.com (Task04_Hippocampus)",
        licence="CC BY-SA 4.0",
        citation="Antonelli et al., The Medical Segmentation Decathlon, Nature Communications 13, 2022",
        layout="folders 'imagesTr' and 'labelsTr' (or 'images' and 'labels') with hippocampus_001.nii.gz, …; "
        "labels 1 (anterior) and 2 (posterior) are united.",
    ),
)
