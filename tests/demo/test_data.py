"""The embedded maps of nuclei: small, whole, and made by a command that can be repeated."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import segtrust as st
from segtrust.io import ReadOptions, find_cases, load_case

DATA = Path(st.__file__).parent / "demo" / "data"
WEIGHTS = Path(__file__).parents[2] / "weights" / "unext-nuclei.pth"
LARGEST = 4_000_000
TOOL = Path(__file__).parents[2] / "tools" / "demo_data.py"


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_fits_into_the_wheel():
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < LARGEST


def test_it_says_where_it_is_from_and_that_it_is_free():
    about = (DATA / "README.txt").read_text(encoding="utf-8")
    assert "BBBC038" in about
    assert "CC0 1.0" in about
    assert about in TOOL.read_text(encoding="utf-8")


def test_manifests_list_both_sets():
    assert len(find_cases([DATA / "id.csv"]).cases) == 60
    assert len(find_cases([DATA / "ood-bright.csv"]).cases) == 40
    assert not find_cases([DATA / "manifest.csv"]).failures


@pytest.mark.needs("PIL")
def test_maps_truths_and_images_are_what_they_are_said_to_be():
    from PIL import Image

    for case in find_cases([DATA / "manifest.csv"]).cases:
        (loaded,) = load_case(case, ReadOptions())
        assert loaded.prediction.probabilities.dtype == np.uint8
        assert loaded.prediction.shape == loaded.truth.shape == (256, 256)
        with Image.open(case.truth.path) as truth, Image.open(case.image.path) as image:
            assert truth.mode == "1"
            assert (image.format, image.size) == ("WEBP", (256, 256))


@pytest.mark.needs("PIL")
def test_scores_of_all_test_cases_agree_with_the_maps_that_are_shipped():
    scores = {row["case"]: row for row in rows_of(DATA / "scores.csv")}
    assert len(scores) == 81 + 123
    for case in find_cases([DATA / "manifest.csv"]).cases[::7]:
        (loaded,) = load_case(case, ReadOptions())
        row = scores[case.id]
        p = loaded.prediction.probabilities
        assert st.soft_dice_confidence(p) == pytest.approx(float(row["sdc"]), abs=2e-3)
        assert st.dice(loaded.truth, p >= 128) == pytest.approx(float(row["dice"]), abs=2e-3)


@pytest.mark.needs("torch", "PIL", "data:nuclei")
def test_weights_that_are_kept_give_the_maps_that_are_shipped(nuclei_images):
    import torch

    from segtrust.paper.networks import create
    from segtrust.paper.tasks import get_task
    from segtrust.paper.tasks.reading import read_picture
    from segtrust.paper.tasks.resizing import resized

    task, model = get_task("nuclei"), create("unext", weights=WEIGHTS)
    for case in find_cases([DATA / "manifest.csv"]).cases[::25]:
        name = case.id.rsplit("/", 1)[-1]
        image = resized(read_picture(nuclei_images / f"{name}.png"), task.size, task.resize)
        p = model.probabilities(torch.from_numpy(task.normalise(np.stack([image])))).numpy()[0]
        (loaded,) = load_case(case, ReadOptions())
        assert np.abs(np.rint(255 * p) - loaded.prediction.probabilities).max() <= 1


@pytest.fixture
def nuclei_images():
    return Path(os.environ["SEGTRUST_TEST_DATA"]) / "nuclei" / "images"


@pytest.mark.needs("PIL")
def test_the_command_that_makes_them(tmp_path):
    from PIL import Image

    predictions = tmp_path / "run" / "predictions"
    rng = np.random.default_rng(0)
    rows = []
    for case, part in [(f"a{at:03}", "id") for at in range(70)] + [(f"b{at}", "bright") for at in range(3)]:
        p, truth = rng.random((16, 16), np.float32), rng.random((16, 16)) < 0.5
        for kind in ("maps", "truths", "images"):
            (predictions / kind).mkdir(parents=True, exist_ok=True)
        np.save(predictions / "maps" / f"{case}.npy", p)
        Image.fromarray(255 * truth.astype(np.uint8)).save(predictions / "truths" / f"{case}.png")
        Image.fromarray((255 * p).astype(np.uint8)).save(predictions / "images" / f"{case}.png")
        places = {"probabilities": f"maps/{case}.npy", "truth": f"truths/{case}.png"}
        name = {"id": "ID"}.get(part, part)
        rows.append(
            {"case": case if name == "ID" else f"{name}/{case}", **places, "mask": "", "group": ""}
            | {"image": f"images/{case}.png", "split": "test", "set": name}
        )
    with (predictions / "manifest.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (predictions / "made_with.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path / "run"), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1])["cases"] == 63
    assert len(rows_of(tmp_path / "out" / "scores.csv")) == 73
    assert len(rows_of(tmp_path / "out" / "id.csv")) == 60
    assert len(rows_of(tmp_path / "out" / "ood-bright.csv")) == 3
