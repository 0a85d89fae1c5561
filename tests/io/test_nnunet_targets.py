"""What is meant by a number, a name or a folder."""

import pytest

from segtrust.errors import ParameterError
from segtrust.io.nnunet_layout import ModelChoice, Roots
from segtrust.io.nnunet_targets import find_target
from tests.nnunet.fixtures import kept_run
from tests.nnunet.layout import lay_out


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
