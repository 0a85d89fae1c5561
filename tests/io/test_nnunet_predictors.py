"""Which model made predictions, as far as it is written down."""

import json

import pytest

from segtrust.errors import ParameterError, WrongContentError
from segtrust.io.nnunet_layout import ModelChoice
from segtrust.io.nnunet_predictors import PredictionFolder, keep_predictor, parse_folds, predictor_name
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import MODEL, lay_out

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
    keep_predictor(predictions.folder, "mine")
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
