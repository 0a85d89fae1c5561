"""A real run of nnU-Net on a tiny data set: plan, preprocess, train for one epoch, validate, predict."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.nnunet.data import TRAINING_CASES, VALIDATION_CASES, VARIANTS, Variant, write_dataset

TRAINERS = Path(__file__).with_name("trainers")
TRAINER, PLANS, CONFIGURATION = "OneEpochTrainer", "nnUNetPlans", "3d_fullres"
MODEL = f"{TRAINER}__{PLANS}__{CONFIGURATION}"  # the name that nnU-Net gives to its folder
FEATURES = 8  # of the first stage
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class NnunetRun:
    """What a run has left behind, and how long each command took.

    ``labels`` holds the truth of the cases in ``predictions``, ``validation_labels`` that of those in
    ``validation``; ``images`` are those that were predicted.
    """

    predictions: Path
    labels: Path
    validation: Path
    validation_labels: Path
    images: Path
    dataset_json: Path
    seconds: dict[str, float]


@dataclass(frozen=True)
class Runner:
    """Calls the commands of nnU-Net, with everything they read and write below one folder."""

    python: Path
    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    def plan(self, variant: Variant) -> None:
        """Choose a network for the data, and bring the data to one spacing and scale."""
        processes = ("-np", 1, "-npfp", 1)
        model = ("-d", variant.number, "-c", CONFIGURATION)
        self.run("nnUNetv2_plan_and_preprocess", *model, *processes, "--verify_dataset_integrity")

    def train(self, variant: Variant, fold: int = 0) -> None:
        """Train a fold and predict its validation cases."""
        model = (variant.number, CONFIGURATION, fold, "-tr", TRAINER)
        self.run("nnUNetv2_train", *model, "-device", "cpu", "--npz")

    def predict(self, variant: Variant, images: Path, predictions: Path) -> None:
        """Predict new cases with the network of fold 0."""
        processes = ("-npp", 1, "-nps", 1, "-device", "cpu")
        model = ("-d", variant.number, "-c", CONFIGURATION, "-f", 0, "-tr", TRAINER)
        paths = ("-i", images, "-o", predictions)
        self.run("nnUNetv2_predict", *paths, *model, *processes, "--save_probabilities")

    def run(self, command: str, *arguments: object) -> None:
        """Run one command, such as ``nnUNetv2_train``; its output is shown if it fails."""
        start = time.perf_counter()
        done = subprocess.run(
            [self.python, self.python.with_name(command), *map(str, arguments)],
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        self.seconds[command] = time.perf_counter() - start
        assert done.returncode == 0, f"{command} failed with {done.returncode}:\n{done.stdout}"

    def environment(self) -> dict[str, str]:
        """Variables of nnU-Net: its folders, one process for each task, no compilation."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        folders = {f"nnUNet_{name}": str(self.folder / name) for name in ("raw", "preprocessed", "results")}
        alone = {"nnUNet_n_proc_DA": "1", "nnUNet_def_n_proc": "1", "nnUNet_compile": "f"}
        return inherited | folders | alone | {"nnUNet_extTrainer": str(TRAINERS)}


def run_nnunet(folder: Path, python: Path, labels: str = "plain") -> NnunetRun:
    """Make a data set below ``folder`` and take it through nnU-Net.

    Parameters
    ----------
    folder
        An empty folder; everything is written below it.
    python
        The interpreter of an environment with nnU-Net.
    labels
        ``"plain"``: each voxel is background, organ or lesion; ``"regions"``: three regions, nested.
    """
    variant = VARIANTS[labels]
    dataset = write_dataset(folder / "raw", variant)
    preprocessed = folder / "preprocessed" / variant.name
    runner = Runner(Path(python).absolute(), folder)
    runner.plan(variant)
    simplify(preprocessed)
    runner.train(variant)
    runner.predict(variant, dataset / "imagesTs", folder / "predictions")
    return NnunetRun(
        predictions=folder / "predictions",
        labels=dataset / "labelsTs",
        validation=folder / "results" / variant.name / MODEL / "fold_0/validation",
        validation_labels=preprocessed / "gt_segmentations",
        images=dataset / "imagesTs",
        dataset_json=dataset / "dataset.json",
        seconds=runner.seconds,
    )


def simplify(preprocessed: Path) -> None:
    """Make the planned network thin, and choose the cases of fold 0."""
    with edited_json(preprocessed / f"{PLANS}.json") as plans:
        network = plans["configurations"][CONFIGURATION]["architecture"]["arch_kwargs"]
        network["features_per_stage"] = [FEATURES * 2**i for i in range(network["n_stages"])]
    training = [case for case in TRAINING_CASES if case not in VALIDATION_CASES]
    splits = [{"train": training, "val": list(VALIDATION_CASES)}]
    (preprocessed / "splits_final.json").write_text(json.dumps(splits))


@contextmanager
def edited_json(path: Path) -> Iterator[dict]:
    """The content of a file, written back at the end."""
    content = json.loads(path.read_text())
    yield content
    path.write_text(json.dumps(content, indent=4))
