"""Files of a run that are kept for the fast tests; ``python -m tools.nnunet_fixtures`` makes them."""

import shutil
from pathlib import Path

from tests.nnunet.data import TEST_CASES, VALIDATION_CASES
from tests.nnunet.run import NnunetRun

FIXTURES = Path(__file__).parents[1] / "fixtures/nnunet"
KEPT_ROOT = "/data"  # stands for the folder in which the run was made
DESCRIPTIONS = ("dataset.json", "plans.json", "predict_from_raw_data_args.json")


def kept_run(labels: str) -> NnunetRun:
    """The kept files of one variant; its images are not among them."""
    folder = FIXTURES / labels
    return NnunetRun(
        predictions=folder / "predictions",
        labels=folder / "labels",
        validation=folder / "validation",
        validation_labels=folder / "validation_labels",
        images=folder / "images",
        dataset_json=folder / "predictions/dataset.json",
        seconds={},
    )


def keep(made: NnunetRun, labels: str, root: Path) -> None:
    """Replace the kept files of one variant by those of a run that was made below ``root``."""
    kept = kept_run(labels)
    shutil.rmtree(FIXTURES / labels, ignore_errors=True)
    for case in TEST_CASES:
        copy(made.predictions, kept.predictions, f"{case}.npz", f"{case}.pkl", f"{case}.nii.gz")
        copy(made.labels, kept.labels, f"{case}.nii.gz")
    for case in VALIDATION_CASES:
        copy(made.validation, kept.validation, f"{case}.npz", f"{case}.pkl", f"{case}.nii.gz")
        copy(made.validation_labels, kept.validation_labels, f"{case}.nii.gz")
    copy_text(made.predictions, kept.predictions, root, *DESCRIPTIONS)
    copy_text(made.validation, kept.validation, root, "summary.json")


def copy(source: Path, target: Path, *names: str) -> None:
    """Copy files byte for byte."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(source / name, target / name)


def copy_text(source: Path, target: Path, root: Path, *names: str) -> None:
    """Copy files with ``root`` replaced by ``/data``."""
    for name in names:
        (target / name).write_text((source / name).read_text().replace(str(root), KEPT_ROOT))
