"""Maps and truths in folders of images."""

import os
import shutil

import numpy as np
import pytest

from segtrust.errors import EmptyArrayError, ParameterError, ReadError
from segtrust.paper.pairs import labelled_pairs

pytestmark = pytest.mark.needs("PIL")


def write(path, array):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("b", "a", "normal"):
        write(tmp_path / "set/maps" / f"{name}.png", rng.integers(0, 256, (5, 6), np.uint8))
        truth = np.zeros((5, 6), np.uint8)
        truth[1:3, 2:4] = 0 if name == "normal" else 255
        truth[4, 5] = 127  # still background
        write(tmp_path / "set/masks" / f"{name}.png", truth)
    return tmp_path / "set"


def test_cases_with_a_truth_are_found_in_order(folder):
    pairs = labelled_pairs([folder], "maps")
    assert [pair.id for pair in pairs] == ["set/a", "set/b"]
    case = pairs[0]()
    assert case.id == "set/a"
    assert case.prediction.probabilities.dtype == np.uint8
    assert case.truth.dtype == bool
    assert case.truth.sum() == 4


def test_several_folders_follow_each_other(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "other")
    assert len(labelled_pairs([folder, tmp_path / "other"], "maps")) == 4
    with pytest.raises(ParameterError, match="set: expected each folder once, got it 2 times"):
        labelled_pairs([folder, folder / "."], "maps")


def test_a_mask_without_map_is_named(folder):
    (folder / "maps/b.png").unlink()
    with pytest.raises(ParameterError, match=r"maps/b\.png: expected a map for each of the masks"):
        labelled_pairs([folder], "maps")


def test_maps_of_16_bits_and_masks_of_one(folder):
    levels = np.arange(30, dtype=np.uint16).reshape(5, 6) * 2000
    write(folder / "maps/a.png", levels)
    write(folder / "masks/a.png", np.eye(5, 6, dtype=bool))
    write(folder / "masks/b.png", np.eye(5, 6, dtype=np.uint8))
    first, second = (pair() for pair in labelled_pairs([folder], "maps"))
    assert first.prediction.probabilities.dtype == np.uint16
    assert (first.prediction.probabilities == levels).all()
    assert first.truth.sum() == second.truth.sum() == 5


def test_colours_and_damaged_files_are_named(folder):
    write(folder / "masks/a.png", np.arange(90, dtype=np.uint8).reshape(5, 6, 3))
    with pytest.raises(ReadError, match=r"masks/a\.png: expected a grey image, got one in colours"):
        labelled_pairs([folder], "maps")
    (folder / "masks/a.png").write_bytes((folder / "masks/b.png").read_bytes()[:40])
    with pytest.raises(ReadError, match=r"masks/a\.png: expected"):
        labelled_pairs([folder], "maps")


def test_a_changed_file_changes_the_fingerprint(folder):
    (before, *_) = labelled_pairs([folder], "maps")
    kept = before.fingerprint
    os.utime(before.prediction, ns=(1, 1))
    assert before.fingerprint != kept


def test_a_map_without_truth_is_named(folder):
    (folder / "masks/b.png").unlink()
    with pytest.raises(ParameterError, match=r"masks/b\.png: expected the truth of .*maps/b\.png"):
        labelled_pairs([folder], "maps")


def test_a_folder_without_maps_is_named(folder):
    with pytest.raises(ParameterError, match=r"predictions: expected PNG files, got none\. Give a folder"):
        labelled_pairs([folder])


def test_empty_truths_alone_are_no_data(folder):
    for name in ("a", "b"):
        (folder / f"maps/{name}.png").unlink()
        (folder / f"masks/{name}.png").unlink()
    with pytest.raises(EmptyArrayError, match="expected cases with a truth, got none"):
        labelled_pairs([folder], "maps")
