"""Skin lesions in 512×512 cut-outs, with UNeXt: a stress set, some of whose masks are full or empty."""

from __future__ import annotations

from pathlib import Path

from segtrust.paper.tasks import UNEXT_PAPER, Source, Task, files_in, imagenet_twice_scaled, paired

TASK = Task(
    name="skin",
    title="Skin lesions in cut-outs (ISIC 2016)",
    network="unext",
    size=(256, 256),
    find=lambda data: paired(files_in(Path(data, "images")), files_in(Path(data, "masks"))),
    normalise=imagenet_twice_scaled,
    recipes={"usual": UNEXT_PAPER},
    source=Source(
        url="https://challenge.isic-archive.com/data/#2016",
        licence="CC0 1.0",
        citation="Gutman et al., Skin lesion analysis toward melanoma detection, arXiv:1605.01397, 2016",
        layout="folders 'images' and 'masks' with files of the same names.",
    ),
)
