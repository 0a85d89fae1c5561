"""The optic cup in fundus photographs, with UNeXt, cut to a square about the disc: Drishti-GS."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from segtrust.errors import SegtrustError
from segtrust.paper.tasks import (
    ID,
    UNEXT_PAPER,
    Labels,
    Sample,
    Source,
    Task,
    box_about,
    cut_to_box,
    files_in,
    imagenet_twice_scaled,
    paired,
    read_picture,
)

_HALF = 128
"""Half of the annotators, in 8-bit soft maps."""


def find(data: Path) -> Iterator[Sample]:
    """Find photographs, soft maps of the cup, the box about the disc, and the published test cases."""
    tested = _tested(data / "split.csv")
    for sample in paired(files_in(data / "images"), files_in(data / "softmaps_cup")):
        box, said = _box(data / "softmaps_disc" / f"{sample.case}.png")
        split = "test" if sample.case in tested else ""
        yield replace(sample, box=box, split=split, lacks=sample.lacks or said)


def _tested(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with path.open(newline="", encoding="utf-8-sig") as file:
        return {Path(row[1]).stem for row in csv.reader(file) if len(row) > 1 and row[0].lower() == "test"}


def _box(path: Path) -> tuple[tuple[int, int, int, int] | None, str]:
    """Give the box about a disc, or what is wrong with its map."""
    if not path.is_file():
        return None, f"expected the map of the disc, got no {path}. Add it, or remove the case."
    try:
        return box_about(read_picture(path)[0] >= _HALF, times=2.0), ""
    except SegtrustError as error:
        return None, str(error)


TASK = Task(
    name="fundus",
    title="Optic cup in fundus photographs (Drishti-GS)",
    network="unext",
    size=(256, 256),
    find=find,
    labels=Labels(at_least=_HALF),
    preprocess=cut_to_box,
    normalise=imagenet_twice_scaled,
    split={"train": 80, "val": 20},
    sets={ID: 101},
    recipes={"usual": UNEXT_PAPER},
    source=Source(
        url="https://cvit.iiit.ac.in/projects/mip/drishti-gs/mip-dataset2/Home.php",
        licence="for research; ask its owners for other uses",
        citation="Sivaswamy et al., Drishti-GS: retinal image dataset for ONH segmentation, ISBI 2014",
        layout="'images' with photographs, 'softmaps_cup' and 'softmaps_disc' with 8-bit maps of the "
        "annotators' agreement of the same names, and 'split.csv' without header: Training or Test, file.",
    ),
)
