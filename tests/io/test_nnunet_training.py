"""Which cases a model was trained with, as far as nnU-Net's folders tell."""

import json

import pytest

from segtrust.io.cases import CaseFiles
from segtrust.io.nnunet_training import doubt_of
from segtrust.io.places import Place

SPLITS = [{"train": ["a"], "val": ["b"]}]


@pytest.fixture
def doubt(tmp_path, monkeypatch):
    """What is said of a case, for a file of splits."""
    folder = tmp_path / "Dataset001_Tiny"
    folder.mkdir()
    monkeypatch.setenv("nnUNet_preprocessed", str(tmp_path))

    def said(text, case):
        (folder / "splits_final.json").write_text(text)
        return doubt_of([CaseFiles(case, Place.of(f"{case}.npz"))], "Dataset001_Tiny", ["0"], None)

    return said


def test_cases_that_a_fold_was_trained_with_are_told(doubt):
    assert doubt(json.dumps(SPLITS), "a").startswith("1 of the calibration cases are among those")
    assert doubt(json.dumps(SPLITS), "b") == ""


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}", "[" * 100_000])
def test_what_cannot_be_read_tells_nothing(doubt, text):
    assert doubt(text, "a") == ""
