"""The folders of nnU-Net: data sets, models, predictions."""

import json

import pytest

from segtrust.errors import PairingError, ParameterError, WrongContentError
from segtrust.io.nnunet_folders import (
    Model,
    ModelChoice,
    PredictionFolder,
    Roots,
    choose_model,
    find_folders,
    find_target,
    model_at,
    parse_folds,
    predictor_name,
    write_predictor,
)
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
    assert choose_model(models, ModelChoice("3d_fullres"), "1") == models[1]
    assert choose_model(models, ModelChoice("2d", "U"), "1") == models[2]
    with pytest.raises(ParameterError, match=r"expected one model, got T__P__2d, U__P__2d. Say which"):
        choose_model(models, ModelChoice("2d"), "1")
    with pytest.raises(ParameterError, match="none that fits among T__P__2d"):
        choose_model(models, ModelChoice("3d_lowres"), "1")
    with pytest.raises(PairingError, match="nnUNet_results"):
        choose_model([], ModelChoice(), "1")


def test_the_command_that_makes_maps_is_complete(tmp_path):
    model = Model(tmp_path / "Dataset027_ACDC/T__P__3d_fullres")
    assert (
        model.validation_command("3") == "nnUNetv2_train Dataset027_ACDC 3d_fullres 3 -tr T -p P --val --npz"
    )


FULL = ModelChoice("3d_fullres")


@pytest.fixture
def predictions(tmp_path):
    return PredictionFolder(lay_out(tmp_path, kept_run("plain"), "plain").predictions)


@pytest.mark.parametrize("text", ["x", "0,all", "-1"])
def test_what_is_no_fold_is_refused(text):
    with pytest.raises(ParameterError, match="fold: expected numbers"):
        parse_folds(text)


def test_folds_are_named_alike_in_any_order():
    assert parse_folds("fold_1 0,1") == ("0", "1")
    assert parse_folds("10,9") == ("9", "10")
    assert predictor_name("m", parse_folds("1,0")) == predictor_name("m", parse_folds("0 1"))


def test_what_nnunet_notes_is_found(predictions, tmp_path):
    assert predictions.images == tmp_path / "raw/Dataset001_Plain/imagesTs"
    assert predictions.truths == tmp_path / "raw/Dataset001_Plain/labelsTs"
    assert predictions.kept_name == ""


def test_the_options_of_nnunet_name_the_predictor(predictions):
    assert predictions.name_of(FULL, ("0",)) == f"Dataset001_Plain/{MODEL}/fold_0"
    assert predictions.name_of(FULL, ()) == f"Dataset001_Plain/{MODEL}/ensemble of folds 0,1,2,3,4"
    assert predictions.name_of(ModelChoice("3d_fullres", "T"), ("0",)).split("/")[1].startswith("T__")


def test_without_the_configuration_nothing_is_named(predictions):
    assert predictions.name_of(ModelChoice(), ()) == ""
    with pytest.raises(ParameterError, match="also -c"):
        predictions.name_of(ModelChoice(), ("0",))


def test_options_that_the_plans_contradict_are_refused(predictions):
    with pytest.raises(ParameterError, match="expected its own plans, nnUNetPlans, got Others"):
        predictions.name_of(ModelChoice("3d_fullres", plans="Others"), ("0",))
    with pytest.raises(ParameterError, match=r"expected a configuration of its plans .*got '4d'"):
        predictions.name_of(ModelChoice("4d"), ("0",))


def test_a_name_that_was_kept_needs_no_options(predictions):
    write_predictor(predictions.folder, "mine")
    assert predictions.name_of(ModelChoice(), ()) == "mine"
    with pytest.raises(ParameterError, match="was predicted by mine, not by"):
        predictions.name_of(FULL, ("0",))


def test_a_folder_of_somebody_else_tells_nothing(tmp_path):
    found = PredictionFolder(tmp_path)
    assert (found.images, found.truths, found.kept_name) == (None, None, "")
    with pytest.raises(WrongContentError, match="--predictor"):
        found.name_of(FULL, ("0",))


@pytest.mark.parametrize("noted", [[["a_0000.nii.gz"]], "nowhere", None])
def test_lists_of_images_and_folders_that_are_gone_are_no_folder(tmp_path, noted):
    values = {"list_of_lists_or_source_folder": noted}
    (tmp_path / "predict_from_raw_data_args.json").write_text(json.dumps(values))
    assert PredictionFolder(tmp_path).images is None


@pytest.fixture
def made(tmp_path):
    return lay_out(tmp_path, kept_run("plain"), "plain")


@pytest.mark.parametrize("text", ["1", "Dataset001_Plain", "results/Dataset001_Plain"])
def test_a_data_set(made, text, monkeypatch):
    monkeypatch.chdir(made.root)
    found = find_target(text, Roots(made.root / "raw", None, made.root / "results"))
    assert found.folders.name == "Dataset001_Plain"
    assert found.predictions is found.model is None
    assert found.chosen_model(ModelChoice()).folder == made.model


def test_a_model_and_its_folds(made):
    found = [
        find_target(str(each), Roots()) for each in (made.model, made.fold(0), made.fold(0) / "validation")
    ]
    assert [each.fold for each in found] == ["", "0", "0"]
    assert {each.chosen_model(ModelChoice()).folder for each in found} == {made.model}
    assert {each.folders.name for each in found} == {"Dataset001_Plain"}


def test_predictions_are_told_by_what_lies_beside_them_whatever_their_folder_is_called(made):
    assert find_target(str(made.predictions), Roots()).predictions.folder == made.predictions
    renamed = made.predictions.rename(made.root / "Dataset001_Plain")
    assert find_target(str(renamed), Roots()).predictions.folder == renamed


def test_any_other_folder_may_hold_predictions(tmp_path):
    assert find_target(str(tmp_path), Roots()).predictions is not None


def test_what_is_nowhere_is_refused():
    with pytest.raises(ParameterError, match="nowhere: expected the number or name of a data set"):
        find_target("nowhere", Roots())
