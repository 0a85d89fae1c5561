"""The brain tumour task in nnU-Net's layout, and through its commands where they are at hand."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import MissingExtraError, ParameterError, WorkerError
from segtrust.paper.tasks import get_task
from segtrust.paper.tasks.checking import find_samples
from segtrust.paper.tasks.nnunet import NnUNet, convert, python_of
from tests.nnunet.run import TRAINER, TRAINERS
from tests.paper.tasks import miniatures

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
    from segtrust.paper.commands.task_steps import evaluate_maps

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


def names_in(run, part):
    return {path.name.removesuffix(".nii.gz") for path in (run.raw / f"labels{part}").glob("*.nii.gz")}


def write_split(path, run, tested):
    cases = sorted(names_in(run, "Tr") | names_in(run, "Ts"))
    rows = [f"{case},{'test' if at in tested else 'train'}\n" for at, case in enumerate(cases)]
    path.write_text("case,split\n" + "".join(rows))
    return path


def test_another_split_moves_cases_and_leaves_none_in_both_parts(converted, tmp_path):
    samples = find_samples(converted.task, tmp_path / "data")
    split = write_split(tmp_path / "split.csv", converted, tested=(0, 3, 5))
    assert convert(converted, samples, split=split) == []
    assert len(names_in(converted, "Tr")) == 4
    assert len(names_in(converted, "Ts")) == 3
    assert not names_in(converted, "Tr") & names_in(converted, "Ts")
    assert len(list((converted.raw / "imagesTr").iterdir())) == 16
    assert json.loads((converted.raw / "dataset.json").read_text())["numTraining"] == 4


def test_training_cases_that_nnunet_has_seen_are_not_changed(converted, tmp_path):
    samples = find_samples(converted.task, tmp_path / "data")
    (converted.folder / "preprocessed" / converted.name).mkdir(parents=True)
    assert convert(converted, samples) == []
    split = write_split(tmp_path / "split.csv", converted, tested=(0, 3, 5))
    before = names_in(converted, "Tr")
    with pytest.raises(ParameterError, match="expected the training cases that nnU-Net has seen here"):
        convert(converted, samples, split=split)
    assert names_in(converted, "Tr") == before


def test_a_mask_that_has_changed_is_written_anew(converted, tmp_path):
    import nibabel

    samples = find_samples(converted.task, tmp_path / "data")
    source = nibabel.load(samples[0].masks[0])
    nibabel.save(nibabel.Nifti1Image(np.zeros(source.shape, np.uint8), source.affine), samples[0].masks[0])
    assert convert(converted, samples) == []
    (target,) = converted.raw.glob(f"labels*/{samples[0].case}.nii.gz")
    assert not np.asarray(nibabel.load(target).dataobj).any()


def test_preprocessing_that_was_broken_off_is_done_again(converted, monkeypatch):
    called = []
    monkeypatch.setattr(NnUNet, "_run", lambda self, command, *arguments: called.append(command))
    (converted.folder / "preprocessed" / converted.name / "nnUNetPlans_3d_fullres").mkdir(parents=True)
    converted.train()
    converted.train()
    assert called == ["nnUNetv2_plan_and_preprocess", "nnUNetv2_train", "nnUNetv2_train"]


def test_maps_of_other_weights_are_removed(converted, monkeypatch):
    monkeypatch.setattr(NnUNet, "_run", lambda self, command, *arguments: None)
    maps = converted.out / "predictions" / "maps"
    weights = converted._results / "fold_0" / "checkpoint_final.pth"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"first")
    converted.predict()
    (maps / "a.npz").write_bytes(b"map")
    converted.predict()
    assert (maps / "a.npz").exists()
    weights.write_bytes(b"second weights")
    converted.predict()
    assert not (maps / "a.npz").exists()


def test_one_of_several_devices_is_chosen_by_the_environment(converted):
    other = replace(converted, device="cuda:1")
    assert other._environment()["CUDA_VISIBLE_DEVICES"] == "1"
    assert other._model[-1] == "cuda"


def test_a_refusal_leaves_the_split_as_it_was(converted, tmp_path):
    samples = find_samples(converted.task, tmp_path / "data")
    (converted.folder / "results" / converted.name).mkdir(parents=True)
    before = (converted.out / "split.csv").read_text()
    split = write_split(tmp_path / "split.csv", converted, tested=(0, 3, 5))
    with pytest.raises(ParameterError, match="has seen here"):
        convert(converted, samples, split=split)
    assert (converted.out / "split.csv").read_text() == before


def test_data_that_were_moved_or_fetched_again_are_the_same(converted, tmp_path):
    (converted.folder / "preprocessed" / converted.name).mkdir(parents=True)
    (tmp_path / "data").rename(tmp_path / "moved")
    for path in (tmp_path / "moved").rglob("*.nii*"):
        os.utime(path, (1e9, 1e9))
    assert convert(converted, find_samples(converted.task, tmp_path / "moved")) == []
    links = list(converted.raw.glob("images*/*.nii.gz"))
    assert len(links) == 28
    assert all(link.exists() for link in links)


def test_maps_are_kept_where_the_weights_are_away(converted):
    maps = converted.out / "predictions" / "maps"
    maps.mkdir(parents=True)
    (maps / "a.npz").write_bytes(b"map")
    with pytest.raises(ParameterError, match=r"checkpoint_final\.pth: expected the weights of this fold"):
        converted.predict()
    assert (maps / "a.npz").exists()
