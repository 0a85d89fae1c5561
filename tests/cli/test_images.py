"""Folders of images: how many cases have found one is always said, and none is a warning."""

import json

import numpy as np
import pytest

from tests.commands import segtrust
from tests.engine.files import write_maps
from tests.report.runs import QUICK, run, write_manifest

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Three maps with truths, a folder with the image of one, and one with other files."""
    folder = tmp_path_factory.mktemp("data")
    write_maps(folder / "id/predictions", 3)
    for kind in ("id/masks", "one", "others"):
        (folder / kind).mkdir()
    maps = sorted((folder / "id/predictions").iterdir())
    for path in maps:
        np.save(folder / "id/masks" / path.name, np.load(path) > 0.5)
    np.save(folder / "one" / maps[0].name, np.load(maps[0]))
    np.save(folder / "others/holiday.npy", np.load(maps[0]))
    return folder


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policy")
    run("evaluate", write_manifest(folder / "data", "id", 60), "-o", folder / "run", *QUICK)
    run("calibrate", folder / "run/scores.parquet", "-o", folder / "policy.json", "--target-risk", 0.7)
    return folder / "policy.json"


@pytest.fixture(params=["score", "evaluate", "triage"])
def command(request, data, tmp_path):
    more = {
        "score": ("-o", tmp_path / "scores.csv"),
        "evaluate": ("-o", tmp_path / "run", *QUICK),
        "triage": ("-o", tmp_path / "triage"),
    }
    policy = ("--policy", request.getfixturevalue("policy")) if request.param == "triage" else ()
    return (request.param, data / "id", *more[request.param], *policy)


def test_how_many_have_an_image_is_said(command, data):
    done = segtrust(*command, "--image-dir", data / "one")
    assert "images 1 of 3 (`one/*.npy`)" in done.stdout
    assert "Expected" not in done.stderr


def test_none_is_a_warning(command, data):
    done = segtrust(*command, "--image-dir", data / "others")
    assert f"0 of 3 cases have an image in {data / 'others'}. Expected one file named as each" in done.stderr


def test_machines_are_told_too(command, data):
    told = json.loads(segtrust(*command, "--image-dir", data / "others", "--json").stdout)
    assert told["images"] == [{"folder": str(data / "others"), "cases": 3, "found": 0}]
    assert any("0 of 3 cases have an image" in each for each in told["warnings"])


def test_each_set_has_its_own(data, tmp_path):
    ood = ("--ood", f"far={data / 'id'}", "--ood-image-dir", f"far={data / 'others'}")
    done = segtrust("evaluate", data / "id", "--image-dir", data / "one", *ood, "-o", tmp_path, *QUICK)
    assert "ID: 3 maps" in done.stdout
    assert "images 1 of 3 (`one/*.npy`)" in done.stdout
    assert f"0 of 3 cases have an image in {data / 'others'}." in done.stderr
