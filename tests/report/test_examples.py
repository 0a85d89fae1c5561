"""The example figure: two cases that the SDC ranks right and the aMSP wrong."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.evaluation import FileCase
from segtrust.io import ArrayRef, CaseFiles, ReadOptions
from segtrust.report.examples import (
    FALSE,
    MISSED,
    RIGHT,
    Example,
    choose_pair,
    draw_examples,
    load_example,
    overlay,
)


def row(loss, sdc, amsp):
    return {"case": str(loss), "loss": loss, "dice": 1.0 - loss, "sdc": sdc, "amsp": amsp}


def test_the_pair_is_the_one_farthest_apart():
    rows = [row(0.1, 0.9, 0.7), row(0.3, 0.8, 0.9), row(0.6, 0.5, 0.8), row(0.9, 0.1, 0.6)]
    good, bad = choose_pair(rows)
    assert (good["loss"], bad["loss"]) == (0.1, 0.6)
    agreeing = [row(0.1, 0.9, 0.9), row(0.6, 0.5, 0.5)]
    assert choose_pair(agreeing) is None


def test_pixels_are_coloured_by_what_is_wrong():
    mask = np.array([[True, True], [False, False]])
    truth = np.array([[True, False], [True, False]])
    shown = overlay(Example({}, np.zeros((2, 2, 3)), mask * 1.0, mask, truth))
    assert np.allclose(shown[0, 0], 0.6 * np.array(RIGHT))
    assert np.allclose(shown[0, 1], 0.6 * np.array(FALSE))
    assert np.allclose(shown[1, 0], 0.6 * np.array(MISSED))
    assert not shown[1, 1].any()


def files(tmp_path, p, image):
    np.save(tmp_path / "p.npy", p)
    np.save(tmp_path / "truth.npy", p > 0.4)
    places = {name: ArrayRef(tmp_path / f"{name}.npy") for name in ("p", "truth")}
    return CaseFiles(
        "a", places["p"], truth=places["truth"], image=None if image is None else ArrayRef(image)
    )


@pytest.mark.needs("PIL", "matplotlib")
def test_pictures_and_volumes_are_drawn(tmp_path):
    from PIL import Image

    p = np.linspace(0, 1, 48).reshape(6, 8)
    Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(tmp_path / "image.png")
    flat = load_example(
        row(0.1, 0.9, 0.7), FileCase(files(tmp_path, p, tmp_path / "image.png"), ReadOptions(), "foreground")
    )
    assert flat.image.shape == (6, 8, 3)
    folder = tmp_path / "volume"
    folder.mkdir()
    np.save(folder / "image.npy", np.random.default_rng(0).random((5, 6, 8)))
    volume = np.zeros((5, 6, 8))
    volume[3, 2:5, 2:5] = 0.9
    deep = load_example(
        row(0.5, 0.4, 0.9), FileCase(files(folder, volume, folder / "image.npy"), ReadOptions(), "foreground")
    )
    assert deep.probabilities.shape == (6, 8)
    assert deep.probabilities.max() == 0.9
    figure = draw_examples([flat, deep])
    assert len(figure.axes) == 8
    assert "SDC 0.900\naMSP 0.700\nDice 0.900" in [text.get_text() for ax in figure.axes for text in ax.texts]


def test_cases_without_image_or_with_one_of_another_size_have_no_picture(tmp_path):
    p = np.linspace(0, 1, 48).reshape(6, 8)
    assert load_example(row(0, 1, 1), FileCase(files(tmp_path, p, None), ReadOptions(), "foreground")) is None
    np.save(tmp_path / "other.npy", np.zeros((3, 4)))
    case = FileCase(files(tmp_path, p, tmp_path / "other.npy"), ReadOptions(), "foreground")
    assert load_example(row(0, 1, 1), case) is None
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY")
    torn = FileCase(files(tmp_path, p, tmp_path / "torn.npy"), ReadOptions(), "foreground")
    assert load_example(row(0, 1, 1), torn) is None
    unknown = replace(files(tmp_path, p, tmp_path / "other.npy"), truth=None)
    assert load_example(row(0, 1, 1), FileCase(unknown, ReadOptions(), "foreground")) is None
