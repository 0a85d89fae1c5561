"""Labels of nnU-Net's ``dataset.json``, and the channels that belong to them."""

import json
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import ReadError, WrongContentError
from segtrust.io.formats.nnunet import open_nnunet
from segtrust.io.structures import check_channels, find_dataset_json, find_scheme, read_scheme
from tests.io.formats.test_nnunet import P, of_cases


def label(folder, **described):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "dataset.json"
    path.write_text(json.dumps(described))
    return path


@pytest.mark.parametrize(
    ("described", "labels", "is_regions"),
    [
        ({"labels": {"background": 0, "a": 1, "b": 2}}, (("a", (1,)), ("b", (2,))), False),
        ({"labels": {"b": 2, "background": 0, "a": 1}}, (("a", (1,)), ("b", (2,))), False),
        ({"labels": {"0": "background", "2": "b", "1": "a"}}, (("a", (1,)), ("b", (2,))), False),
        ({"labels": {"background": 0, "a": 1, "ignore": 2}}, (("a", (1,)),), False),
        ({"labels": {"rest": 0, "a": [1], "b": 2}}, (("a", (1,)), ("b", (2,))), False),
        ({"labels": {"background": 0, "a": 1.0}}, (("a", (1,)),), False),
        (
            {"labels": {"background": 0, "core": [2, 3], "whole": [1, 2, 3], "x": 3, "ignore": 4}},
            (("core", (2, 3)), ("whole", (1, 2, 3)), ("x", (3,))),
            True,
        ),
        ({"labels": {"background": [0], "whole": [1, 2]}}, (("whole", (1, 2)),), True),
    ],
)
def test_labels_are_read_in_the_order_of_the_channels(tmp_path, described, labels, is_regions):
    scheme = read_scheme(label(tmp_path, **described))
    assert (scheme.labels, scheme.is_regions) == (labels, is_regions)


@pytest.mark.parametrize(
    "described",
    [
        {},
        {"labels": {}},
        {"labels": []},
        {"labels": None},
        {"labels": {"background": 0}},
        {"labels": {"background": 0, "ignore": 1}},
        {"labels": {"a": "b"}},
        {"labels": {"a": None}},
        {"labels": {"a": 1.5}},
        {"labels": {"a": float("inf")}},
        {"labels": {"a": [[1], 2]}},
        {"labels": {"a": {"b": 1}}},
    ],
)
def test_labels_that_are_none_are_told(tmp_path, described):
    path = label(tmp_path, **described)
    with pytest.raises(WrongContentError, match=f"^{path}: expected"):
        read_scheme(path)


@pytest.mark.parametrize("content", [b"", b"words", b"[1, 2]", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_description_is_told(tmp_path, content):
    path = tmp_path / "dataset.json"
    path.write_bytes(content)
    with pytest.raises(WrongContentError, match=f"^{path}: expected"):
        read_scheme(path)


def test_a_description_is_found_above(tmp_path, monkeypatch):
    wanted = label(tmp_path / "model", labels={"background": 0, "a": 1})
    folder = tmp_path / "model/fold_0/validation"
    folder.mkdir(parents=True)
    assert find_dataset_json(folder / "case.npz") == wanted
    assert find_scheme(folder / "case.npz").labels == (("a", (1,)),)
    monkeypatch.chdir(folder)
    assert find_dataset_json(Path("case.npz")) == wanted
    nearer = label(folder, labels={"background": 0, "b": 1})
    assert find_dataset_json(folder / "case.npz") == nearer
    assert find_dataset_json(tmp_path / "case.npz") is None
    assert find_scheme(tmp_path / "case.npz") is None


def test_a_description_far_above_is_of_something_else(tmp_path):
    label(tmp_path, labels={"background": 0, "a": 1})
    assert find_dataset_json(tmp_path / "a/b/c/case.npz") is not None
    assert find_dataset_json(tmp_path / "a/b/c/d/case.npz") is None


@of_cases
def test_fixtures_have_the_channels_of_their_description(path):
    model = path.parents[1] / "predictions/dataset.json"
    check_channels(open_nnunet(path), read_scheme(model))


def test_channels_of_another_model_are_told(tmp_path):
    np.savez_compressed(tmp_path / "case.npz", probabilities=P)
    volume = open_nnunet(tmp_path / "case.npz")
    regions = read_scheme(label(tmp_path / "a", labels={"background": 0, "whole": [1, 2], "core": 2}))
    with pytest.raises(
        WrongContentError,
        match=rf"^{volume.path}: expected 2 channels, for the regions .*\(whole, core\), got 3",
    ):
        check_channels(volume, regions)
    plain = read_scheme(label(tmp_path / "b", labels={"background": 0, "x": 1}))
    with pytest.raises(ReadError, match=r"expected 2 channels, for the labels and background .*\(x\), got 3"):
        check_channels(volume, plain)
