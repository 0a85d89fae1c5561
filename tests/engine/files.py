"""Maps on disk, as many as a test wants."""

from pathlib import Path

import numpy as np

from segtrust.io import ArrayRef, CaseFiles
from tests.commands import segtrust_process as segtrust
from tests.tuning_cases import blob

__all__ = ["NNUNET", "files_of", "segtrust", "write_maps"]

NNUNET = Path(__file__).parents[1] / "fixtures/nnunet"


def write_maps(folder, count, first=0, truths=None):
    """Write blobs, with their truths into another folder if wanted; give them as cases in memory."""
    made = [blob(first + number) for number in range(count)]
    for path in (folder, truths):
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(made):
        np.save(folder / f"case_{number:03d}.npy", case.prediction.probabilities)
        if truths is not None:
            np.save(truths / f"case_{number:03d}.npy", case.truth.astype(np.uint8))
    return made


def files_of(path, name="a", **more):
    """The files of one case; paths become places."""
    places = {key: ArrayRef(value) if isinstance(value, Path) else value for key, value in more.items()}
    return CaseFiles(name, ArrayRef(path), **places)
