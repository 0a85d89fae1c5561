"""Files of a run, laid out as by nnU-Net; each case several times, so that thresholds can be certified."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.nnunet.data import TEST_CASES, VALIDATION_CASES, VARIANTS
from tests.nnunet.run import NnunetRun

TRAINER, PLANS, CONFIGURATION = "nnUNetTrainer", "nnUNetPlans", "3d_fullres"
MODEL = f"{TRAINER}__{PLANS}__{CONFIGURATION}"
ENDINGS = (".npz", ".pkl", ".nii.gz")


@dataclass(frozen=True)
class Layout:
    """Where nnU-Net's three folders are, and one of predictions."""

    root: Path
    dataset: str

    @property
    def variables(self) -> dict[str, str]:
        return {f"nnUNet_{name}": str(self.root / name) for name in ("raw", "preprocessed", "results")}

    @property
    def model(self) -> Path:
        return self.root / "results" / self.dataset / MODEL

    @property
    def truths(self) -> Path:
        return self.root / "preprocessed" / self.dataset / "gt_segmentations"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions"

    def fold(self, key: object) -> Path:
        return self.model / f"fold_{key}"


def lay_out(root: Path, made: NnunetRun, labels: str, *, folds: tuple = (0,), copies: int = 1) -> Layout:
    """Copy the files of a run; each fold has its own, fainter copies of the validation cases."""
    found = Layout(root, VARIANTS[labels].name)
    for fold in folds:
        for number in range(copies):
            for case in VALIDATION_CASES:
                name = f"{case}_{fold}_{number:03}"
                copy(made.validation / case, found.fold(fold) / "validation" / name, ENDINGS)
                if number:
                    make_fainter(found.fold(fold) / "validation" / f"{name}.npz", 1.0 - number / 1000.0)
                copy(made.validation_labels / case, found.truths / name, (".nii.gz",))
        shutil.copy(made.validation / "summary.json", found.fold(fold) / "validation")
    for folder in (found.model, found.root / "raw" / found.dataset):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(made.dataset_json, folder / "dataset.json")
    predict(found, made)
    return found


def make_fainter(path: Path, factor: float) -> None:
    """Replace a link to a map by a map with less foreground: maps with equal checksums are one case."""
    with np.load(path) as kept:
        p = kept["probabilities"]
    fainter = p[1:] * factor
    path.unlink()
    background = 1.0 - fainter.sum(axis=0, keepdims=True)
    np.savez_compressed(path, probabilities=np.concatenate([background, fainter]).astype(p.dtype))


def predict(found: Layout, made: NnunetRun) -> None:
    """Lay out predictions, with images and labels where nnU-Net's notes say that they are."""
    raw = found.root / "raw" / found.dataset
    (raw / "imagesTs").mkdir()
    for case in TEST_CASES:
        copy(made.predictions / case, found.predictions / case, ENDINGS)
        copy(made.labels / case, raw / "labelsTs" / case, (".nii.gz",))
    for name in ("dataset.json", "plans.json"):
        shutil.copy(made.predictions / name, found.predictions)
    noted = (made.predictions / "predict_from_raw_data_args.json").read_text()
    there = str(found.root)
    (found.predictions / "predict_from_raw_data_args.json").write_text(noted.replace("/data", there))


def copy(source: Path, target: Path, endings: tuple[str, ...]) -> None:
    """Link the files of a case, or copy them where that cannot be done."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for ending in endings:
        target.with_name(target.name + ending).symlink_to(source.with_name(source.name + ending).absolute())
