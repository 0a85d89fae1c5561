"""Cases of a cross-validation, and held-out ones, with their labels."""

import shutil

import pytest

from segtrust.errors import PairingError, ParameterError
from segtrust.io.nnunet_cases import cross_validation, held_out
from segtrust.io.nnunet_layout import Model
from segtrust.io.nnunet_predictors import PredictionFolder
from tests.io.data_sets import told
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import MODEL, lay_out


@pytest.fixture
def made(tmp_path):
    return lay_out(tmp_path, kept_run("plain"), "plain", folds=(0, 1))


def names(found):
    return [case.id for case in found.cases.cases]


def test_one_fold_is_one_predictor(made):
    found = cross_validation(Model(made.model), ("1",), made.truths)
    assert names(found) == ["train_0_1_000", "train_1_1_000"]
    assert found.predictor == f"Dataset001_Plain/{MODEL}/fold_1"
    assert found.doubt == ""
    assert not found.cases.failures, "labels of other folds are no loss"
    assert {case.truth.path.parent for case in found.cases.cases} == {made.truths}
    assert {case.mask.path.parent.name for case in found.cases.cases} == {"validation"}


def test_several_folds_are_nobodys_predictor(made):
    found = cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 4
    assert {case.group for case in found.cases.cases} == {"fold_0", "fold_1"}
    assert found.predictor.endswith("cross-validation of folds 0,1")
    assert "own fold" in found.doubt


def test_the_fold_of_all_cases_is_refused_and_never_taken_by_itself(made):
    shutil.copytree(made.fold(0), made.fold("all"), symlinks=True)
    assert len(names(cross_validation(Model(made.model), (), made.truths))) == 4
    with pytest.raises(ParameterError, match="trained with the cases that it validates on"):
        cross_validation(Model(made.model), ("all",), made.truths)


def test_a_fold_that_is_not_there_is_told(made):
    with pytest.raises(ParameterError, match=r"expected one of its folds \(0, 1\), got 4"):
        cross_validation(Model(made.model), ("4",), made.truths)


def test_a_fold_without_maps_is_told_with_the_command_that_makes_them(made):
    for path in (made.fold(1) / "validation").glob("*.npz"):
        path.unlink()
    found = cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 2
    assert "nnUNetv2_train Dataset001_Plain 3d_fullres 1" in told(found.cases)["fold_1"]
    assert found.predictor.endswith("/fold_0"), "only one fold is left"


def test_no_maps_at_all_is_an_error(made):
    for path in made.model.glob("fold_*/validation/*.npz"):
        path.unlink()
    with pytest.raises(
        PairingError, match=r"got none. Make them: nnUNetv2_train .* 0 .*; nnUNetv2_train .* 1 "
    ):
        cross_validation(Model(made.model), (), made.truths)
    for path in made.model.glob("fold_*/validation"):
        shutil.rmtree(path)
    with pytest.raises(PairingError, match="Train its folds with --npz"):
        cross_validation(Model(made.model), (), made.truths)


def test_a_case_of_two_folds_is_left_out_and_told(made):
    for path in (made.fold(0) / "validation").glob("train_0_0_000.*"):
        shutil.copy(path, made.fold(1) / "validation")
    found = cross_validation(Model(made.model), (), made.truths)
    assert len(names(found)) == 3
    assert "choose one by --fold" in told(found.cases)["train_0_0_000"]


def test_a_case_without_labels_is_told(made):
    (made.truths / "train_1_0_000.nii.gz").unlink()
    found = cross_validation(Model(made.model), ("0",), made.truths)
    assert names(found) == ["train_0_0_000"]
    assert "expected its ground truth in" in told(found.cases)["train_1_0_000"]


def test_labels_are_those_that_nnunet_noted_where_nothing_else_is_known(made):
    summary = made.fold(0) / "validation/summary.json"
    kept = "/data/preprocessed/Dataset001_Plain/gt_segmentations"
    assert kept in summary.read_text()
    with pytest.raises(PairingError, match="expected the labels of the training cases"):
        cross_validation(Model(made.model), ("0",), None)
    summary.write_text(summary.read_text().replace(kept, str(made.truths)))
    assert len(names(cross_validation(Model(made.model), ("0",), None))) == 2


def test_held_out_cases_have_their_labels_beside_their_images(made):
    found = held_out(PredictionFolder(made.predictions), "mine", None)
    assert names(found) == ["test_0", "test_1"]
    assert (found.predictor, found.doubt) == ("mine", "")
    shutil.rmtree(made.root / "raw/Dataset001_Plain/imagesTs")
    with pytest.raises(PairingError, match="--truth"):
        held_out(PredictionFolder(made.predictions), "mine", None)
