"""Make the small run that ``docs/how-to/nnunet.md`` shows: drawn images, two folds, one epoch each.

Run it with ``python -m docs.results.scripts.nnunet_example FOLDER PYTHON``, the interpreter of ``make
.venv-nnunet/.ready``. Images are nests of ellipsoids with more noise in some than in others, so that some are
harder; nobody was imaged, and the numbers of a network that was trained for seconds mean nothing beyond this
example.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.nnunet.data import VARIANTS, Variant, describe, draw_geometry, draw_labels, inner_box, save
from tests.nnunet.run import Runner, simplify

SHELLS = replace(VARIANTS["plain"], number=3, title="Shells")
TRAINING, TEST = 200, 60
FOLDS = 2
NOISE = (10.0, 600.0)  # of a brightness that differs by 80 from shell to shell


def write_images(raw: Path, variant: Variant, *, seed: int = 0) -> Path:
    """Write images and labels of training and test cases; the folder of the data set."""
    folder, rng = raw / variant.name, np.random.default_rng(seed)
    for part, count in (("Tr", TRAINING), ("Ts", TEST)):
        for name in (f"images{part}", f"labels{part}"):
            (folder / name).mkdir(parents=True)
        for number in range(count):
            write_image(folder, part, f"case_{part}{number:03}", variant, rng)
    description = describe(variant) | {"numTraining": TRAINING}
    (folder / "dataset.json").write_text(json.dumps(description, indent=4))
    return folder


def write_image(folder: Path, part: str, case: str, variant: Variant, rng: np.random.Generator) -> None:
    """Write one image, with noise of its own, and its labels."""
    geometry = draw_geometry(rng, variant, number=0)
    labels = draw_labels(rng, geometry.shape, variant.shells)
    brightness = 100.0 + 80.0 * labels + rng.normal(0, np.exp(rng.uniform(*np.log(NOISE))), labels.shape)
    image = (brightness * inner_box(geometry.shape)).astype(np.float32)
    save(folder / f"images{part}" / f"{case}_0000.nii.gz", image, geometry)
    save(folder / f"labels{part}" / f"{case}.nii.gz", labels, geometry)


def split(preprocessed: Path) -> None:
    """Choose the cases of each fold: every second one is validated by the other's network."""
    names = sorted(
        path.name.removesuffix(".nii.gz") for path in (preprocessed / "gt_segmentations").iterdir()
    )
    parts = [names[fold::FOLDS] for fold in range(FOLDS)]
    splits = [{"train": [each for each in names if each not in part], "val": part} for part in parts]
    (preprocessed / "splits_final.json").write_text(json.dumps(splits))


def main(folder: Path, python: Path) -> None:
    """Take the data through nnU-Net, up to the maps of the cross-validation and of the test cases."""
    dataset = write_images(folder / "raw", SHELLS)
    runner = Runner(python.absolute(), folder.absolute())
    runner.plan(SHELLS)
    simplify(folder / "preprocessed" / SHELLS.name)
    split(folder / "preprocessed" / SHELLS.name)
    for fold in range(FOLDS):
        runner.train(SHELLS, fold)
    runner.predict(SHELLS, dataset / "imagesTs", folder / "predictions")
    sys.stderr.write(f"{runner.seconds}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
