"""The brain tumour task in nnU-Net's layout, and through its commands where they are at hand."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import MissingExtraError, ParameterError, WorkerError
from segtrust.tasks import get_task
from segtrust.tasks.checking import find_samples
from segtrust.tasks.nnunet import NnUNet, convert, python_of
from tests.nnunet.run import TRAINER, TRAINERS
from tests.tasks import miniatures

pytestmark = pytest.mark.needs("nibabel")


@pytest.fixture
def run(tmp_path):
    task = get_task("brain-tumor")
    options = {**task.options, "trainer": TRAINER}
    return NnUNet(replace(task, options=options, split={"train": 5, "test": 2}), tmp_path / "out", "cpu")


@pytest.fixture
def converted(run, tmp_path):
    assert convert(run, find_samples(run.task, miniatures.brats(tmp_path / "data"))) == []
    return run


def test_cases_are_in_the_raw_layout(converted):
    import nibabel

    raw = converted.raw
    assert raw.name == "Dataset520_BrainTumor"
    assert len(list((raw / "imagesTr").iterdir())) == 20
    assert len(list((raw / "imagesTs").iterdir())) == 8
    about = json.loads((raw / "dataset.json").read_text())
    assert about["labels"]["whole_tumor"] == [1, 2, 3]
    assert about["regions_class_order"] == [1, 2, 3]
    assert about["numTraining"] == 5
    for path in sorted((raw / "labelsTr").iterdir()):
        labels = nibabel.load(path)
        image = nibabel.load(raw / "imagesTr" / path.name.replace(".nii.gz", "_0003.nii.gz"))
        assert labels.shape == image.shape
        assert np.array_equal(labels.affine, image.affine)
        assert set(np.unique(labels.dataobj)) == {0, 1, 2, 3}


def test_converted_again_keeps_what_is_there(converted, tmp_path):
    times = {path: path.stat().st_mtime_ns for path in converted.raw.glob("labels*/*")}
    assert convert(converted, find_samples(converted.task, tmp_path / "data")) == []
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())


def test_case_that_cannot_be_read_is_a_problem(run, tmp_path):
    data = miniatures.brats(tmp_path / "data")
    next(data.glob("*/BraTS20_Training_003/*_seg.nii.gz")).write_bytes(b"")
    assert [each.case for each in convert(run, find_samples(run.task, data))] == ["BraTS20_Training_003"]


def test_interpreter(monkeypatch, tmp_path):
    from importlib.util import find_spec

    monkeypatch.setenv("SEGTRUST_NNUNET_PYTHON", str(tmp_path / "nowhere"))
    with pytest.raises(ParameterError, match="nowhere"):
        python_of()
    monkeypatch.delenv("SEGTRUST_NNUNET_PYTHON")
    if find_spec("nnunetv2") is None:
        with pytest.raises(MissingExtraError, match=r"segtrust\[nnunet\]"):
            python_of()


def test_command_that_fails_is_told(converted, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setenv("SEGTRUST_NNUNET_PYTHON", str(python))
    with pytest.raises(WorkerError, match="nnUNetv2_plan_and_preprocess ended with 3"):
        converted.train()


@pytest.mark.slow
@pytest.mark.needs("nnunet", "pyarrow", "matplotlib", "SimpleITK")
def test_through_the_commands_to_an_evaluation(converted, tool, monkeypatch, tmp_path):
    from segtrust.cli.task_steps import evaluate_maps

    monkeypatch.setenv("SEGTRUST_NNUNET_PYTHON", tool("nnunet"))
    monkeypatch.setenv("nnUNet_extTrainer", str(TRAINERS))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(tool("nnunet")).parent), os.environ["PATH"]]))
    converted.train()
    found = converted.predict()
    assert found.cases == 2
    evaluate_maps(converted.task, found, tmp_path / "out")
    with (tmp_path / "out/evaluation/tables/sets.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["structure"] == "whole_tumor"
    assert row["cases"] == "2"
