"""White matter lesions of multiple sclerosis in FLAIR volumes: the Shifts 2.0 U-Net."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.paper.tasks import (
    ID,
    OOD,
    SHIFTS_CODE,
    SHIFTS_PAPER,
    VOLUMES,
    Sample,
    Source,
    Task,
    files_in,
    paired,
    unchanged,
    zscored_image,
)

_PARTS = {"train": (ID, "train"), "dev_in": (ID, "val"), "eval_in": (ID, "test"), "dev_out": (OOD, "test")}
_NUMBER = re.compile(r"^(.+)_(FLAIR|gt)(_|\.)")


def find(data: Path) -> Iterator[Sample]:
    """Find the parts, alone or in a folder for each site, of one archive or of both side by side."""
    for site in [
        data,
        *_folders_in(data),
        *(inner for each in _folders_in(data) for inner in _folders_in(each)),
    ]:
        for name, (part, split) in _PARTS.items():
            for sample in _pairs(site / name):
                known_by = f"{name}-{sample.case}" if site == data else f"{site.name}-{name}-{sample.case}"
                yield replace(sample, case=known_by, set=part, split=split)


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in _PARTS)


def _pairs(folder: Path) -> Iterator[Sample]:
    images, masks = (files_in(folder / name, VOLUMES) for name in ("flair", "gt"))
    return paired(images, masks, image_case=_number, mask_case=_number)


def _number(path: Path) -> str:
    found = _NUMBER.match(path.name)
    return found[1] if found else path.name


TASK = Task(
    name="mswml",
    title="White matter lesions of multiple sclerosis (Shifts 2.0)",
    network="shifts-unet",
    size=(96, 96, 96),
    resize="none",
    threshold=0.35,
    find=find,
    preprocess=zscored_image,
    normalise=unchanged,
    split={"train": 33, "val": 7, "test": 33},
    sets={ID: 33 + 7 + 33, OOD: 25},
    recipes={"paper": SHIFTS_PAPER, "code": SHIFTS_CODE},
    source=Source(
        url="https://zenodo.org/records/7051658 and https://zenodo.org/records/7051692",
        licence="CC BY-NC-SA 4.0; the first archive under OFSEP's data usage agreement",
        citation="Malinin et al., Shifts 2.0: extending the dataset of real distributional shifts, 2022",
        layout="folders 'train', 'dev_in', 'eval_in' and 'dev_out', alone or in a folder for each site, of "
        "one archive or both, with 'flair/1_FLAIR_isovox.nii.gz' and 'gt/1_gt_isovox.nii.gz'; 'fg_mask' may "
        "be there.",
    ),
)
