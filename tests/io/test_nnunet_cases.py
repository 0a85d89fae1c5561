"""Labelled cases of nnU-Net, and whether the model was trained with them."""

import json
import shutil

import pytest

from segtrust.errors import PairingError, ParameterError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles
from segtrust.io.nnunet_cases import find_cross_validation, find_held_out, training_overlap
from segtrust.io.nnunet_folders import Model, PredictionFolder
from tests.io.data_sets import told
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import MODEL, lay_out


@pytest.fixture
def made(tmp_path):
    return lay_out(tmp_path, kept_run("plain"), "plain", folds=(0, 1))


def names(found):
    return [case.id for case in found.cases.cases]


def test_one_fold_is_one_predictor(made):
    found = find_cross_validation(Model(made.model), ("1",), made.truths)
    assert names(found) == ["train_0_1_000", "train_1_1_000"]
    assert found.predictor == f"Dataset001_Plain/{MODEL}/fold_1"
    assert found.doubt == ""
    assert not found.cases.failures, "labels of other folds are no loss"
    assert {case.truth.path.parent for case in found.cases.cases} == {made.truths}
    assert {case.mask.path.parent.name for case in found.cases.cases} == {"validation"}


def test_several_folds_are_nobodys_predictor(made):
    found = find_cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 4
    assert {case.group for case in found.cases.cases} == {"fold_0", "fold_1"}
    assert found.predictor.endswith("cross-validation of folds 0,1")
    assert "own fold" in found.doubt


def test_the_fold_of_all_cases_is_refused_and_never_taken_by_itself(made):
    shutil.copytree(made.fold(0), made.fold("all"), symlinks=True)
    assert len(names(find_cross_validation(Model(made.model), (), made.truths))) == 4
    with pytest.raises(ParameterError, match="trained with the cases that it validates on"):
        find_cross_validation(Model(made.model), ("all",), made.truths)


def test_a_fold_that_is_not_there_is_told(made):
    with pytest.raises(ParameterError, match=r"expected one of its folds \(0, 1\), got 4"):
        find_cross_validation(Model(made.model), ("4",), made.truths)


def test_a_fold_without_maps_is_told_with_the_command_that_makes_them(made):
    for path in (made.fold(1) / "validation").glob("*.npz"):
        path.unlink()
    found = find_cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 2
    assert "nnUNetv2_train Dataset001_Plain 3d_fullres 1" in told(found.cases)["fold_1"]
    assert found.predictor.endswith("/fold_0"), "only one fold is left"


def test_no_maps_at_all_is_an_error(made):
    for path in made.model.glob("fold_*/validation/*.npz"):
        path.unlink()
    with pytest.raises(
        PairingError, match=r"got none. Make them: nnUNetv2_train .* 0 .*; nnUNetv2_train .* 1 "
    ):
        find_cross_validation(Model(made.model), (), made.truths)
    for path in made.model.glob("fold_*/validation"):
        shutil.rmtree(path)
    with pytest.raises(PairingError, match="Train its folds with --npz"):
        find_cross_validation(Model(made.model), (), made.truths)


def test_a_case_of_two_folds_is_left_out_and_told(made):
    for path in (made.fold(0) / "validation").glob("train_0_0_000.*"):
        shutil.copy(path, made.fold(1) / "validation")
    found = find_cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 3
    assert "choose one by --fold" in told(found.cases)["train_0_0_000"]


def test_a_case_without_labels_is_told(made):
    (made.truths / "train_1_0_000.nii.gz").unlink()
    found = find_cross_validation(Model(made.model), ("0",), made.truths)
    assert names(found) == ["train_0_0_000"]
    assert "expected its ground truth in" in told(found.cases)["train_1_0_000"]


def test_labels_are_those_that_nnunet_noted_where_nothing_else_is_known(made):
    summary = made.fold(0) / "validation/summary.json"
    kept = "/data/preprocessed/Dataset001_Plain/gt_segmentations"
    assert kept in summary.read_text()
    with pytest.raises(PairingError, match="expected the labels of the training cases"):
        find_cross_validation(Model(made.model), ("0",), None)
    summary.write_text(summary.read_text().replace(kept, str(made.truths)))
    assert len(names(find_cross_validation(Model(made.model), ("0",), None))) == 2


def test_held_out_cases_have_their_labels_beside_their_images(made):
    found = find_held_out(PredictionFolder(made.predictions), "mine", None)
    assert names(found) == ["test_0", "test_1"]
    assert (found.predictor, found.doubt) == ("mine", "")
    shutil.rmtree(made.root / "raw/Dataset001_Plain/imagesTs")
    with pytest.raises(PairingError, match="--truth"):
        find_held_out(PredictionFolder(made.predictions), "mine", None)


SPLITS = [{"train": ["a"], "val": ["b"]}]


@pytest.fixture
def doubt(tmp_path, monkeypatch):
    """What is said of a case, for a file of splits."""
    folder = tmp_path / "Dataset001_Tiny"
    folder.mkdir()
    monkeypatch.setenv("nnUNet_preprocessed", str(tmp_path))

    def said(text, case):
        (folder / "splits_final.json").write_text(text)
        return training_overlap(
            [CaseFiles(case, ArrayRef.parse(f"{case}.npz"))], "Dataset001_Tiny", ["0"], None
        )

    return said


def test_cases_that_a_fold_was_trained_with_are_told(doubt):
    assert doubt(json.dumps(SPLITS), "a").startswith("1 of the calibration cases are among those")
    assert doubt(json.dumps(SPLITS), "b") == ""


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", "[" * 100_000])
def test_what_cannot_be_read_tells_nothing(doubt, text):
    assert doubt(text, "a") == ""
