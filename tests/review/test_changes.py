"""A verdict is about the map and the mask that were shown, which are those that were scored."""

import shutil

import numpy as np
import pytest

from segtrust.confidence import SoftDice
from segtrust.engine import ScoreJob, ScoreRun, make_executor, score_cases
from segtrust.io import ReadOptions, find_cases
from segtrust.review import run as run_module
from tests.review import desks

SHOWN, OTHER = np.zeros((2, 32, 32), np.uint8)
SHOWN[4:20, 4:20], OTHER[4:20, 4:8] = 1, 1
MAP = np.linspace(0.3, 0.9, 32 * 32, dtype=np.float32).reshape(32, 32)


def write_map(folder, p=MAP):
    folder.mkdir(exist_ok=True)
    np.savez(folder / "a.npz", probabilities=p)


def score(folder, **how):
    job = ScoreJob((SoftDice(),), ReadOptions(**how))
    run = ScoreRun(folder / "scores.csv", make_executor(), resume=False, overwrite=True)
    assert not score_cases(find_cases([folder / "maps"]), job, run).failures
    return desks.desk_on(folder / "scores.csv")


def problem_in(client):
    return client.get("/api/cases/0").json()["problem"]


def verdict_in(client):
    return client.get("/api/cases/0").json()["verdict"]


def test_a_verdict_is_about_the_mask_that_was_seen_too(tmp_path):
    write_map(tmp_path / "maps")
    for mask, verdict in ((SHOWN, "accept"), (SHOWN, "accept"), (OTHER, None), (SHOWN, "accept")):
        np.save(tmp_path / "maps/a.npy", mask)
        with score(tmp_path) as (_, client):
            if not client.get("/api/verdicts").json():
                desks.said(client, 0)
            assert verdict_in(client) == verdict


def test_a_verdict_is_about_the_cut_that_was_seen(tmp_path):
    write_map(tmp_path / "maps")
    with score(tmp_path) as (_, client):
        desks.said(client, 0)
    for threshold, verdict in ((0.8, None), (0.5, "accept")):
        with score(tmp_path, threshold=threshold) as (_, client):
            assert verdict_in(client) == verdict


@pytest.mark.needs("zarr")
def test_a_verdict_on_a_store_without_a_fingerprint_is_about_what_it_held(tmp_path):
    import zarr

    store = tmp_path / "maps/a.zarr"
    for p, verdict in ((MAP, "accept"), (MAP**2, None), (MAP, "accept")):
        shutil.rmtree(store, ignore_errors=True)
        zarr.save_array(str(store), p)
        with score(tmp_path) as (_, client):
            if not client.get("/api/verdicts").json():
                desks.said(client, 0)
            assert verdict_in(client) == verdict


def test_a_desk_that_stays_open_follows_masks_that_are_scored_anew_or_put_back(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_BREATH_S", 0.0)
    monkeypatch.setattr(run_module, "_PATIENCE", 0.0)
    write_map(tmp_path / "maps")
    np.save(tmp_path / "maps/a.npy", SHOWN)
    shutil.copy2(tmp_path / "maps/a.npy", tmp_path / "kept.npy")
    with score(tmp_path) as (_, client):
        assert problem_in(client) is None
        np.save(tmp_path / "maps/a.npy", OTHER)
        assert "Score it again" in problem_in(client)
        score(tmp_path)
        assert problem_in(client) is None
        shutil.copy2(tmp_path / "kept.npy", tmp_path / "maps/a.npy")  # with its size and time of before
        assert "Score it again" in problem_in(client)


@pytest.mark.parametrize("what", ["map", "mask"])
def test_files_that_are_no_longer_those_that_were_scored_are_not_shown_and_not_decided_on(tmp_path, what):
    write_map(tmp_path / "maps")
    np.save(tmp_path / "maps/a.npy", SHOWN)
    tile = "/api/cases/0/tiles/mask/0/0/0/0.png"
    with score(tmp_path) as (_, client):
        row = client.get("/api/cases/0").json()
        assert (row["problem"], client.get(tile).status_code) == (None, 200)
        if what == "map":
            write_map(tmp_path / "maps", MAP**2)
        else:
            np.save(tmp_path / "maps/a.npy", OTHER)
        assert f"the {what} of this case is no longer the one" in client.get("/api/cases/0").json()["problem"]
        assert client.get(tile).status_code == 409
        body = {"number": 0, "verdict": "accept", "reviewer": "ann", "digest": row["digest"]}
        answer = client.post("/api/verdicts", json=body)
        assert (answer.status_code, "Score it again" in desks.detail(answer)) == (409, True)
        write_map(tmp_path / "maps")
        np.save(tmp_path / "maps/a.npy", SHOWN)
        assert (desks.said(client, 0)["verdict"], verdict_in(client)) == ("accept", "accept")
