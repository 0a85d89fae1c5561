"""The optic disc in whole fundus photographs, with UNeXt: where `optic-cup` cuts its squares."""

from __future__ import annotations

from dataclasses import replace

from segtrust.paper.tasks import UNEXT_PAPER, Task, find_fundus, imagenet_twice_scaled
from segtrust.paper.tasks.known.optic_cup import TASK as CUP

TASK = Task(
    name="optic-disc",
    title="Optic disc in fundus photographs, to cut squares for optic-cup",
    network="unext",
    size=(256, 256),
    find=find_fundus,
    labels=CUP.labels,
    normalise=imagenet_twice_scaled,
    resize="antialiased",
    split={"train": 816, "val": 144, "test": 240},
    sets=CUP.sets,
    recipes={"usual": replace(UNEXT_PAPER, epochs=50)},
    source=CUP.source,
)
