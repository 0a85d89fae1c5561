"""Breast lesions in ultrasound: BUSI with UNeXt."""

from __future__ import annotations

import re
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
)

_MASK = re.compile(r"_mask(_\d+)?$")


def find(data: Path) -> Iterator[Sample]:
    """Find images and their masks, of which some have two or three."""
    files = [path for name in ("benign", "malignant") for path in files_in(data / name)]
    masks = [path for path in files if _MASK.search(path.stem)]
    images = [path for path in files if not _MASK.search(path.stem)]
    return paired(images, masks, mask_case=lambda path: _MASK.sub("", path.stem))


TASK = Task(
    name="breast-cancer",
    title="Breast lesions in ultrasound (BUSI)",
    network="unext",
    size=(256, 256),
    find=find,
    normalise=imagenet_twice_scaled,
    split={"train": 450, "val": 99, "test": 98},
    sets={ID: 647},
    recipes={"paper": UNEXT_PAPER, "code": UNEXT_CODE},
    source=Source(
        url="https://scholar.cu.edu.eg/?q=afahmy/pages/dataset",
        licence="none is stated; free for research, cite the article",
        citation="Al-Dhabyani et al., Dataset of breast ultrasound images, Data in Brief 28, 2020",
        layout="folders 'benign' and 'malignant' with 'benign (1).png', 'benign (1)_mask.png' and, for "
        "further lesions, 'benign (1)_mask_1.png'; 'normal' is left aside.",
    ),
)
