"""Maps and truths in folders of images."""

import numpy as np
import pytest

from segtrust.errors import EmptyArrayError, ParameterError
from segtrust.experiments.pairs import labelled_pairs

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


def test_several_folders_follow_each_other(folder):
    assert len(labelled_pairs([folder, folder], "maps")) == 4


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
    with pytest.raises(EmptyArrayError, match="expected cases with a truth, got none"):
        labelled_pairs([folder], "maps")
