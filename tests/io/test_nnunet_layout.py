"""Data sets and models by nnU-Net's names and variables."""

import pytest

from segtrust.errors import PairingError, ParameterError
from segtrust.io.nnunet_layout import Model, ModelChoice, Roots, chosen_model, find_folders, model_at
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import MODEL, lay_out


@pytest.fixture
def roots(tmp_path, monkeypatch):
    made = lay_out(tmp_path, kept_run("plain"), "plain", folds=(0, 1))
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return Roots.from_environment()


@pytest.mark.parametrize("text", ["1", "001", "Dataset001_Plain"])
def test_a_data_set_is_found_by_number_and_name(roots, text):
    found = find_folders(text, roots)
    assert found.name == "Dataset001_Plain"
    assert (found.raw, found.results) == (roots.raw / found.name, roots.results / found.name)
    assert found.truths == roots.preprocessed / found.name / "gt_segmentations"
    assert [model.folder.name for model in found.models] == [MODEL]
    assert found.described == roots.raw / found.name / "dataset.json"


def test_a_folder_will_do_where_no_variable_is_set(roots):
    found = find_folders(str(roots.results / "Dataset001_Plain"), Roots())
    assert [list(model.folds) for model in found.models] == [["0", "1"]]
    assert (found.raw, found.truths) == (None, None)
    assert find_folders(str(roots.preprocessed / "Dataset001_Plain"), Roots()).truths is not None
    assert find_folders(str(roots.raw / "Dataset001_Plain"), Roots()).raw is not None


def test_raw_labels_serve_where_nothing_was_preprocessed(roots):
    (roots.raw / "Dataset001_Plain/labelsTr").mkdir()
    found = find_folders("1", Roots(roots.raw, None, roots.results))
    assert found.truths == roots.raw / "Dataset001_Plain/labelsTr"


def test_what_is_not_there_is_told_with_the_variables(roots, monkeypatch):
    monkeypatch.setenv("nnUNet_raw", "nowhere")
    with pytest.raises(ParameterError, match=r"got none .nnUNet_raw names no folder, nnUNet_preprocessed /"):
        find_folders("7", Roots.from_environment())


def test_two_data_sets_of_one_number_are_told(roots):
    (roots.raw / "Dataset001_Other").mkdir()
    with pytest.raises(ParameterError, match="several: Dataset001_Other, Dataset001_Plain"):
        find_folders("1", roots)


def test_a_model_is_told_by_its_name(tmp_path):
    for name in ("a__b__c", "a__b", "__b__c", "fold_0"):
        (tmp_path / name).mkdir()
    assert [
        name for name in ("a__b__c", "a__b", "__b__c", "fold_0", "x__y__z") if model_at(tmp_path / name)
    ] == ["a__b__c"]


def test_folds_are_in_order_and_that_of_all_cases_is_the_last(tmp_path):
    for name in ("fold_all", "fold_1", "fold_0"):
        (tmp_path / MODEL / name).mkdir(parents=True)
    model = Model(tmp_path / MODEL)
    assert list(model.folds) == ["0", "1", "all"]
    assert not any(fold.is_validated for fold in model.folds.values())


def test_one_model_among_several_must_be_chosen(tmp_path):
    models = [Model(tmp_path / name) for name in ("T__P__2d", "T__P__3d_fullres", "U__P__2d")]
    assert chosen_model(models, ModelChoice("3d_fullres"), "1") == models[1]
    assert chosen_model(models, ModelChoice("2d", "U"), "1") == models[2]
    with pytest.raises(ParameterError, match=r"expected one model, got T__P__2d, U__P__2d. Say which"):
        chosen_model(models, ModelChoice("2d"), "1")
    with pytest.raises(ParameterError, match="none that fits among T__P__2d"):
        chosen_model(models, ModelChoice("3d_lowres"), "1")
    with pytest.raises(PairingError, match="nnUNet_results"):
        chosen_model([], ModelChoice(), "1")


def test_the_command_that_makes_maps_is_complete(tmp_path):
    model = Model(tmp_path / "Dataset027_ACDC/T__P__3d_fullres")
    assert model.validating("3") == "nnUNetv2_train Dataset027_ACDC 3d_fullres 3 -tr T -p P --val --npz"
