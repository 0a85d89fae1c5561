"""Files that end, stop or mislead their reader are errors of their case; the desk goes on."""

import os
from pathlib import Path

import numpy as np
import pytest

from segtrust.engine import Sandbox
from segtrust.io import ArrayRef, CaseFiles
from tests import plugged
from tests.review import desks

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="signals of Linux")

TILE = "/api/cases/{}/tiles/mask/0/0/0/0.png"


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """A run of two ordinary maps and one whose reader can be told what to do."""
    with plugged.installed(monkeypatch, plugged.trap_package(tmp_path / "packages")):
        files = tmp_path / "run"
        files.mkdir()
        plugged.write_trap(files / "c.trap", desks.blob((300, 280), 7))
        cases = [desks.picture_case(files, name, number) for number, name in enumerate("ab")]
        yield desks.score_run(files, [*cases, CaseFiles("c", ArrayRef(files / "c.trap"), set="ID")])


def check_the_others(client):
    """Check that the desk shows the other cases, and takes verdicts."""
    for number in (0, 1):
        assert client.get(f"/api/cases/{number}").json()["problem"] is None
        assert client.get(TILE.format(number)).status_code == 200
    desks.said(client, 0)
    assert client.get("/api/run").status_code == 200


def test_a_map_truncated_after_it_was_opened(tmp_path, monkeypatch):
    folder = desks.make_run(tmp_path / "run", names=["a", "b", "c"])
    map_of_c = folder / "files/2.npy"
    # As if it were truncated after the desk looked at its size, and before the map is read.
    monkeypatch.setattr("segtrust.review.desk.stamp_of_case", lambda row, *_: row["case"])
    with desks.desk_on(folder) as (_, client):
        assert client.get("/api/cases/2").json()["view"]["shape"] == [300, 280]
        os.truncate(map_of_c, 128)
        answer = client.get(TILE.format(2))
        assert answer.status_code == 409
        assert str(map_of_c) in desks.detail(answer)
        assert "the process that read them exited with code -7" in desks.detail(answer)
        check_the_others(client)
        again = client.get(TILE.format(2))  # by another process, which sees that bytes are missing
        assert (again.status_code, str(map_of_c) in desks.detail(again)) == (409, True)


def test_a_reader_that_dies(trapped):
    with desks.desk_on(trapped) as (_, client):
        assert client.get(TILE.format(2)).status_code == 200
    (trapped / "c.does").write_text("kill")
    with desks.desk_on(trapped) as (_, client):
        problem = client.get("/api/cases/2").json()["problem"]
        assert problem == (
            f"{trapped / 'c.trap'}: expected files that can be read, but the process that read them exited "
            "with code -9 (often out of memory). Check whether one is truncated or corrupt."
        )
        check_the_others(client)
        assert client.get(TILE.format(2)).status_code == 409


def test_a_reader_that_hangs(trapped):
    (trapped / "c.does").write_text("hang")
    with desks.desk_on(trapped) as (desk, client):
        desk.reader = Sandbox(seconds=3.0)
        problem = client.get("/api/cases/2").json()["problem"]
        assert f"{trapped / 'c.trap'}: expected files that can be read" in problem
        assert "took longer than 3 seconds" in problem
        check_the_others(client)
        desk.reader.close()


def test_a_reader_that_raises(trapped):
    (trapped / "c.does").write_text("raise")
    with desks.desk_on(trapped) as (_, client):
        assert "RuntimeError: bad chunk" in client.get("/api/cases/2").json()["problem"]
        answer = client.get(TILE.format(2))
        assert (answer.status_code, "RuntimeError: bad chunk" in desks.detail(answer)) == (409, True)
        check_the_others(client)


def test_a_map_that_loses_its_end_while_the_desk_is_open(tmp_path):
    folder = desks.make_run(tmp_path / "run", names=["a", "b"])
    with desks.desk_on(folder) as (_, client):
        assert client.get(TILE.format(0)).status_code == 200
        whole = np.load(folder / "files/0.npy")
        os.truncate(folder / "files/0.npy", 4096)
        answer = client.get(TILE.format(0))
        assert (answer.status_code, "no longer the one that was scored" in desks.detail(answer)) == (
            409,
            True,
        )
        np.save(folder / "files/0.npy", whole)
        assert client.get(TILE.format(0)).status_code == 200


@pytest.mark.needs("h5py")
def test_a_file_that_hdf5_links_to_is_written_again(tmp_path):
    """Attack 9: the desk showed the new pixels under the old checksum."""
    import h5py

    def write(p):
        with h5py.File(tmp_path / "pixels.data", "w") as file:
            file["p"] = p

    write(desks.blob((300, 280), 1))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["p"] = h5py.ExternalLink("pixels.data", "p")
    cases = [CaseFiles("a", ArrayRef(tmp_path / "a.h5", "p"), set="ID")]
    with desks.desk_on(desks.score_run(tmp_path, cases)) as (_, client):
        assert client.get(TILE.format(0)).status_code == 200
        write(desks.blob((300, 280), 2))
        answer = client.get(TILE.format(0))
        assert answer.status_code == 409
        assert "no longer the one that was scored" in desks.detail(answer)
