"""Brain tumours in MR volumes: BraTS 2020 with nnU-Net, trained on regions, judged on the whole tumour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from segtrust.paper.tasks import (
    ID,
    VOLUMES,
    Labels,
    Recipe,
    Sample,
    Source,
    Task,
    files_in,
    stem_of,
    unchanged,
)

_SEQUENCES = ("t1", "t1ce", "t2", "flair")


def find(data: Path) -> Iterator[Sample]:
    """Find the folder of each patient, alone or below that of the archive."""
    inner = data / "MICCAI_BraTS2020_TrainingData"
    folders = sorted((inner if inner.is_dir() else data).glob("BraTS20_Training_*"))
    for folder in (each for each in folders if each.is_dir()):
        files = {stem_of(path).removeprefix(f"{folder.name}_"): path for path in files_in(folder, VOLUMES)}
        others = [path for name, path in files.items() if name not in (*_SEQUENCES, "seg")]
        if "seg" not in files and len(others) == 1:  # one patient's mask has a name of its own
            files["seg"] = others[0]
        absent = [name for name in (*_SEQUENCES, "seg") if name not in files]
        lacks = f"{folder} lacks {', '.join(absent)}. Fetch it again, or remove the folder." if absent else ""
        images = tuple(files[name] for name in _SEQUENCES if name in files)
        yield Sample(
            folder.name, images, tuple(files[name] for name in ("seg",) if name in files), lacks=lacks
        )


TASK = Task(
    name="brain-tumor",
    title="Brain tumours in MR volumes (BraTS 2020)",
    network="nnunet",
    size=(155, 240, 240),
    resize="none",
    find=find,
    labels=Labels({0: 0, 1: 2, 2: 1, 4: 3}),
    normalise=unchanged,
    split={"train": 296, "test": 73},
    sets={ID: 369},
    recipes={"paper": Recipe(epochs=1000, batch=2)},
    options={
        "number": 520,
        "title": "BrainTumor",
        "configuration": "3d_fullres",
        "trainer": "nnUNetTrainer",
        "folds": (0,),
        "channels": ("T1", "T1ce", "T2", "FLAIR"),
        "regions": {"whole_tumor": (1, 2, 3), "tumor_core": (2, 3), "enhancing_tumor": (3,)},
    },
    source=Source(
        url="https://www.med.upenn.edu/cbica/brats2020/data.html",
        licence="for research, after registration",
        citation="Menze et al., IEEE TMI 34, 2015; Bakas et al., Scientific Data 4, 2017; Bakas et al., 2018",
        layout="'MICCAI_BraTS2020_TrainingData' (or its content) with a folder for each patient, as "
        "BraTS20_Training_001 with BraTS20_Training_001_flair.nii.gz (or .nii), _t1, _t1ce, _t2 and _seg.",
    ),
)
