"""Tasks for nnU-Net: its raw layout, its own commands, and manifests of what it predicts.

nnU-Net runs in an environment of its own where ``SEGTRUST_NNUNET_PYTHON`` names its interpreter.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path
from typing import Any

import numpy as np

from segtrust._files import atomic_write, write_json
from segtrust._optional import require
from segtrust.errors import MissingExtraError, ParameterError, SegtrustError, WorkerError
from segtrust.paper.tasks.checking import Problem
from segtrust.paper.tasks.predicting import Predictions, Row, write_manifests
from segtrust.paper.tasks.preparing import choose_split, keep_split
from segtrust.paper.tasks.reading import read_sample
from segtrust.paper.tasks.task import Sample, Task

__all__ = ["NnUNet", "convert", "is_nnunet", "python_of"]

_ENDING = ".nii.gz"
_VARIABLE = "SEGTRUST_NNUNET_PYTHON"
_CONVERTED, _PREPROCESSED = "converted.json", "segtrust_preprocessed.json"
_PARTS = {"test": "Ts", "": ""}
"""Parts of nnU-Net's raw layout by split; all others are trained on."""

Converted = dict[str, list[Any]]
"""The part of each case, and what tells its files."""


def is_nnunet(task: Task) -> bool:
    """Tell whether a task is trained by nnU-Net's own commands."""
    return task.network == "nnunet"


def python_of() -> Path:
    """Give the interpreter of nnU-Net's environment."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ParameterError(f"{_VARIABLE}: expected the interpreter of an environment, got {named!r}.")
        return Path(named).absolute()
    if find_spec("nnunetv2") is None:
        raise MissingExtraError(
            "This needs 'nnunetv2': pip install 'segtrust[nnunet]', or in a checkout '.[nnunet]'; or name an "
            f"environment that has it: {_VARIABLE}."
        )
    return Path(sys.executable).absolute()


@dataclass(frozen=True)
class NnUNet:
    """The commands of nnU-Net for a task, with all that they read and write below one folder.

    Attributes
    ----------
    task
        Its options are ``number``, ``title``, ``configuration``, ``trainer``, ``folds``, ``channels`` and
        ``regions``.
    out
        Folder of the run.
    device
        ``"cuda"``, one of several as ``"cuda:1"``, ``"mps"`` or ``"cpu"``.
    """

    task: Task
    out: Path
    device: str = "cuda"

    @property
    def folder(self) -> Path:
        """Of raw, preprocessed and results."""
        return (self.out / "nnunet").absolute()

    @property
    def name(self) -> str:
        """Of the data set, as nnU-Net wants it."""
        return f"Dataset{self.task.options['number']:03}_{self.task.options['title']}"

    @property
    def raw(self) -> Path:
        """Of images and labels."""
        return self.folder / "raw" / self.name

    @property
    def _model(self) -> tuple[object, ...]:
        options = self.task.options
        return ("-tr", options["trainer"], "-device", self.device.partition(":")[0])

    def train(self) -> None:
        """Plan and preprocess where that was not done, and train each fold; goes on where it was stopped."""
        number, configuration = self.task.options["number"], self.task.options["configuration"]
        done = self.folder / "preprocessed" / self.name / _PREPROCESSED
        if not done.exists():  # its own folder is there from the first case on
            checked = ("-d", number, "-c", configuration, "--verify_dataset_integrity")
            self._run("nnUNetv2_plan_and_preprocess", *checked, *self._processes("-np", "-npfp"))
            write_json(done, {"configuration": configuration, "cases": len(self.converted())})
        for fold in self.task.options["folds"]:
            at = self._results / f"fold_{fold}"
            if not (at / "checkpoint_final.pth").exists():
                again = ("--c",) if (at / "checkpoint_latest.pth").exists() else ()
                self._run("nnUNetv2_train", number, configuration, fold, *self._model, "--npz", *again)

    @property
    def _results(self) -> Path:
        options = self.task.options
        return (
            self.folder
            / "results"
            / self.name
            / f"{options['trainer']}__nnUNetPlans__{options['configuration']}"
        )

    def predict(self) -> Predictions:
        """Predict the test cases with all folds, keep probabilities, and write the manifests."""
        options = self.task.options
        maps = self.out / "predictions" / "maps"
        self._open_maps(maps)
        model = (
            "-d",
            options["number"],
            "-c",
            options["configuration"],
            "-f",
            *options["folds"],
            *self._model,
        )
        paths = ("-i", self.raw / "imagesTs", "-o", maps.absolute())
        kept = ("--save_probabilities", "--continue_prediction")
        self._run("nnUNetv2_predict", *paths, *model, *kept, *self._processes("-npp", "-nps"))
        return write_manifests(self.out / "predictions", list(self._rows(maps)))

    def _open_maps(self, maps: Path) -> None:
        """Make the folder of maps ready; those of other weights or of other files are removed."""
        weights = [
            self._results / f"fold_{fold}" / "checkpoint_final.pth" for fold in self.task.options["folds"]
        ]
        cases = {name: each for name, each in self.converted().items() if each[0] == "Ts"}
        absent = [path for path in weights if not path.exists()]
        if absent:
            raise ParameterError(f"{absent[0]}: expected the weights of this fold, got none. Train first.")
        made_with = {"weights": [_stamp(path) for path in weights], "cases": cases}
        path = maps.parent / "made_with.json"
        if not (path.exists() and json.loads(path.read_text(encoding="utf-8")) == made_with):
            shutil.rmtree(maps, ignore_errors=True)
        maps.mkdir(parents=True, exist_ok=True)
        write_json(path, made_with)

    def converted(self) -> Converted:
        """Give the part of each case that was converted, and of what files."""
        path = self.folder / _CONVERTED
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def _rows(self, maps: Path) -> Iterator[Row]:
        folder = maps.parent
        sets = json.loads((self.folder / "sets.json").read_text(encoding="utf-8"))
        for case, part in sets.items():
            yield {
                "case": case,
                "probabilities": relpath(maps / f"{case}.npz", folder),
                "mask": relpath(maps / f"{case}{_ENDING}", folder),
                "truth": relpath(self.raw / "labelsTs" / f"{case}{_ENDING}", folder),
                "image": relpath(self.raw / "imagesTs" / f"{case}_0000{_ENDING}", folder),
                "group": "",
                "split": "test",
                "set": part,
            }

    def _processes(self, *flags: str) -> list[object]:
        """Give few processes on a CPU, and nnU-Net's own choice elsewhere."""
        return [each for flag in flags for each in (flag, 1)] if self.device == "cpu" else []

    def _run(self, command: str, *arguments: object) -> None:
        python = python_of()
        done = subprocess.run(
            [python, python.with_name(command), *map(str, arguments)],
            env=self._environment(),
            cwd=self.folder,
            check=False,
            stdout=sys.stderr,
        )
        if done.returncode:
            raise WorkerError(f"{command} ended with {done.returncode}; what it said is above.")

    def _environment(self) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        folders = {f"nnUNet_{name}": str(self.folder / name) for name in ("raw", "preprocessed", "results")}
        alone = {"nnUNet_n_proc_DA": "1", "nnUNet_def_n_proc": "1", "nnUNet_compile": "f"}
        _, _, number = self.device.partition(":")  # nnU-Net knows devices by their kind alone
        chosen = {"CUDA_VISIBLE_DEVICES": number} if number else {}
        return {**(alone if self.device == "cpu" else {}), **inherited, **chosen, **folders}


def convert(
    run: NnUNet,
    samples: Sequence[Sample],
    *,
    split: Path | None = None,
    seed: int | None = None,
    advance: Callable[[int], object] = lambda done: None,
) -> list[Problem]:
    """Write cases in the raw layout of nnU-Net: those of ``test`` apart; give what could not be read.

    Images are linked where they can be, labels are written anew. What is there and has not changed is kept;
    what belongs to another part now, or to no case, is removed.

    Raises
    ------
    ParameterError
        If nnU-Net has seen other training cases already.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    splits = choose_split(run.task, samples, run.out, split=split, seed=seed)
    before, wanted = run.converted(), _wanted(samples, splits)
    _refuse_other_training(run, before, wanted)
    keep_split(run.out, splits)
    _remove_others(run, {name for name, each in wanted.items() if before.get(name) == each})
    problems: list[Problem] = []
    done: Converted = {}
    for sample in samples:
        name = sample.file_name
        try:
            if name in wanted:
                _convert_case(run, sample, wanted[name][0])
                done[name] = wanted[name]
        except (SegtrustError, OSError) as error:
            problems.append(Problem(sample.id, str(error)))
        advance(1)
    _describe(run, samples, done)
    return problems


def _wanted(samples: Sequence[Sample], splits: Mapping[str, str]) -> Converted:
    """Give the part and the files of each case that is not left out."""
    parts = {each.file_name: _PARTS.get(splits[each.id], "Tr") for each in samples}
    return {
        each.file_name: [parts[each.file_name], _stamps(each)] for each in samples if parts[each.file_name]
    }


def _describe(run: NnUNet, samples: Sequence[Sample], done: Converted) -> None:
    """Write what was converted, for nnU-Net and for those who come after it."""
    tested = [each for each in samples if done.get(each.file_name, [""])[0] == "Ts"]
    write_json(run.folder / _CONVERTED, done)
    write_json(run.folder / "sets.json", {each.file_name: each.set for each in tested})
    trained = sum(part == "Tr" for part, _ in done.values())
    write_json(run.raw / "dataset.json", _description(run.task, trained))


def _stamp(path: Path) -> list[Any]:
    about = path.stat()
    return [path.name, about.st_size, about.st_mtime_ns]


def _stamps(sample: Sample) -> list[Any]:
    """Tell the files of a case; nothing of those that are not there, which is told when they are read."""
    return [_stamp(path) for path in (*sample.images, *sample.masks) if path.exists()]


def _refuse_other_training(run: NnUNet, before: Converted, wanted: Converted) -> None:
    """Refuse to change training cases that nnU-Net has preprocessed or learned from."""
    seen = [run.folder / name / run.name for name in ("preprocessed", "results")]
    known, now = (_training_files(each) for each in (before, wanted))
    if known != now and any(path.exists() for path in seen):
        raise ParameterError(
            f"{run.folder}: expected the training cases that nnU-Net has seen here, got others: another "
            f"split, or other files. Choose another folder, or remove {seen[0]} and {seen[1]}."
        )


def _training_files(converted: Converted) -> dict[str, Any]:
    """Give names and sizes of the files of training cases; when they were fetched does not matter."""
    return {
        name: [stamp[:2] for stamp in stamps] for name, (part, stamps) in converted.items() if part == "Tr"
    }


def _remove_others(run: NnUNet, kept: Collection[str]) -> None:
    """Remove the images and labels of all cases but some."""
    for part in ("Tr", "Ts"):
        for path in (run.raw / f"images{part}").glob(f"*{_ENDING}"):
            if path.name.removesuffix(_ENDING).rpartition("_")[0] not in kept:
                path.unlink()
        for path in (run.raw / f"labels{part}").glob(f"*{_ENDING}"):
            if path.name.removesuffix(_ENDING) not in kept:
                path.unlink()


def _convert_case(run: NnUNet, sample: Sample, part: str) -> None:
    images, labels = run.raw / f"images{part}", run.raw / f"labels{part}"
    images.mkdir(parents=True, exist_ok=True)
    labels.mkdir(parents=True, exist_ok=True)
    target = labels / f"{sample.file_name}{_ENDING}"
    values = None if target.exists() else read_sample(run.task, sample)[1]
    for number, path in enumerate(sample.images):  # also of cases that are there: data may have been moved
        _link(path, images / f"{sample.file_name}_{number:04}{_ENDING}")
    if values is not None:
        _write_labels(target, values, sample.images[0])


def _link(path: Path, link: Path) -> None:
    """Link an image, or write it packed where it is not; what is there already stays."""
    is_packed = path.name.endswith(_ENDING)
    if link.exists() and (not is_packed or (link.is_symlink() and link.readlink() == path.absolute())):
        return
    link.unlink(missing_ok=True)
    if is_packed:
        link.symlink_to(path.absolute())
    else:
        nibabel = require("nibabel", extra="io")
        with atomic_write(link) as draft:
            draft.write_bytes(_packed(nibabel.load(path)))


def _packed(image: Any) -> bytes:
    import gzip

    return gzip.compress(image.to_bytes(), compresslevel=1)


def _write_labels(path: Path, values: Any, like: Path) -> None:
    """Write labels (z, y, x) as NIfTI, where the image lies."""
    nibabel = require("nibabel", extra="io")
    affine = nibabel.load(like).affine
    image = nibabel.Nifti1Image(np.ascontiguousarray(values.T, np.uint8), affine)
    with atomic_write(path) as draft:
        draft.write_bytes(_packed(image))


def _description(task: Task, trained: int) -> dict[str, Any]:
    """Give the content of ``dataset.json``."""
    regions = dict(task.options["regions"])
    return {
        "channel_names": {str(at): name for at, name in enumerate(task.options["channels"])},
        "labels": {"background": 0, **{name: list(values) for name, values in regions.items()}},
        "regions_class_order": list(range(1, len(regions) + 1)),
        "numTraining": trained,
        "file_ending": _ENDING,
    }
