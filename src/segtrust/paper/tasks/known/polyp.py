"""Polyps in colonoscopy: Polyp-PVT, or the maps that its authors publish."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.paper.tasks import (
    ID,
    OOD,
    POLYP_PVT_CODE,
    Labels,
    Sample,
    Source,
    Task,
    files_in,
    imagenet,
    paired,
)

_TESTED = {
    "Kvasir": ID,
    "CVC-ClinicDB": ID,
    "CVC-300": OOD,
    "CVC-ColonDB": OOD,
    "ETIS-LaribPolypDB": OOD,
}


def find(data: Path) -> Iterator[Sample]:
    """Find the training set, and the five test sets, of which two are in distribution."""
    train, test = data / "TrainDataset", data / "TestDataset"
    for sample in _pairs(train):
        yield replace(sample, case=f"train/{sample.case}", split="train")
    for name, part in _TESTED.items():
        for sample in _pairs((test if test.is_dir() else data) / name):
            yield replace(sample, case=f"{name}/{sample.case}", set=part, split="test")


def _pairs(folder: Path) -> Iterator[Sample]:
    images, masks = ([*files_in(folder / name), *files_in(folder / f"{name}s")] for name in ("image", "mask"))
    return paired(images, masks)


TASK = Task(
    name="polyp",
    title="Polyps in colonoscopy (Kvasir-SEG, CVC-ClinicDB, ETIS, ColonDB, EndoScene)",
    network="polyp-pvt",
    size=(352, 352),
    find=find,
    labels=Labels(at_least=128),
    normalise=imagenet,
    resize="antialiased",
    split={"train": 1},
    sets={ID: 1448 + 162, OOD: 636},
    recipes={"code": POLYP_PVT_CODE},
    source=Source(
        url="https://github.com/DengPingFan/Polyp-PVT (training and test sets, published maps)",
        licence="each set has its own: Kvasir-SEG is for research and education; the others ask to be cited",
        citation="Dong et al., Polyp-PVT: polyp segmentation with pyramid vision transformers, 2023",
        layout="'TrainDataset' with 'image' and 'mask', and 'TestDataset' with a folder for each of Kvasir, "
        "CVC-ClinicDB, CVC-300, CVC-ColonDB and ETIS-LaribPolypDB, which hold 'images' and 'masks'.",
    ),
)
