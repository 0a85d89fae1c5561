"""A disk that is full or read-only is told, and costs nothing."""

import os
import sqlite3

import numpy as np
import pytest

from segtrust.engine.run_log import RunLog
from segtrust.io import write_mask
from tests.commands import segtrust
from tools.reliability.disks import TRIALS, can_mount, read_only, small_disk, try_disk, write_data

SMALL = [each for each in TRIALS if each.name == "calibrate"]
LARGE = [each for each in TRIALS if each not in SMALL]

pytestmark = [
    pytest.mark.skipif(not can_mount(), reason="to mount a small disk takes root on Linux"),
    pytest.mark.needs("PIL"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disks")
    try:
        with small_disk(folder / "probe", size_mb=1):
            pass
    except OSError as error:
        pytest.skip(f"no small disk can be mounted here: {error}")
    write_data(folder, segtrust)
    return folder


@pytest.mark.parametrize("trial", SMALL, ids=lambda trial: trial.name)
def test_nothing_is_lost_on_a_full_or_read_only_disk(trial, data, tmp_path):
    found = try_disk(trial, data, tmp_path / "disk", segtrust, rooms=2)
    assert found.faults == []
    assert found.refused >= 2


@pytest.mark.slow
@pytest.mark.needs("matplotlib", "pyarrow", "torch")
@pytest.mark.parametrize("trial", LARGE, ids=lambda trial: trial.name)
def test_nothing_is_lost_where_more_is_written(trial, data, tmp_path):
    found = try_disk(trial, data, tmp_path / "disk", segtrust, rooms=1)
    assert found.faults == []
    assert found.refused >= 2


def fill(disk):
    """Take all the room of a disk; give the file that does."""
    path = disk / "filler"
    free = os.statvfs(disk)
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
    return path


@pytest.mark.needs("SimpleITK")
@pytest.mark.parametrize("ending", [".mha", ".nrrd"])
def test_a_mask_that_cannot_be_written_is_told_as_an_error_of_the_system(tmp_path, ending):
    mask = np.random.default_rng(0).random((64, 64, 64)) < 0.5
    with small_disk(tmp_path / "disk", size_mb=1) as disk:
        fill(disk)
        with pytest.raises(OSError, match="could not be written"):
            write_mask(disk / f"a{ending}", mask, None)
        assert [path.name for path in disk.iterdir()] == ["filler"]


def test_a_log_that_cannot_be_begun_is_named(tmp_path):
    with small_disk(tmp_path / "disk", size_mb=1) as disk:
        fill(disk)
        with pytest.raises(OSError, match=r"No space left on device: '.*/\.scores\.csv\.log'"):
            RunLog(disk / ".scores.csv.log", {}).__enter__()


@pytest.mark.needs("sqlalchemy", "fastapi", "httpx", "nibabel")
def test_the_desk_says_that_a_verdict_was_not_kept_and_takes_it_when_there_is_room(data, tmp_path):
    from tests.review.desks import desk_on

    given = {"verdict": "accept", "comment": "x" * 900, "reviewer": "ann"}
    with small_disk(tmp_path / "disk", size_mb=1) as disk:
        database = disk / "verdicts.sqlite"
        with desk_on(data / "judged.csv", database=f"sqlite:///{database}") as (_, client):
            filler = fill(disk)
            answers = [client.post("/api/verdicts", json={"number": number, **given}) for number in range(30)]
            filler.unlink()
            refused = [each for each in answers if each.status_code != 200]
            assert {each.status_code for each in refused} == {503}
            assert all("Nothing was kept: " in each.json()["detail"] for each in refused)
            assert client.post("/api/verdicts", json={"number": 0, **given}).status_code == 200
        with sqlite3.connect(database) as connection:
            count = connection.execute("SELECT count(*) FROM segtrust_verdicts").fetchone()
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        assert count == (len(answers) - len(refused) + 1,)


@pytest.mark.needs("sqlalchemy")
def test_a_log_on_a_read_only_disk_is_refused(tmp_path):
    from segtrust.errors import SavedStateError
    from segtrust.review.store import Store

    with small_disk(tmp_path / "disk", size_mb=1) as disk:
        Store.open(disk / "verdicts.sqlite").close()
        before = (disk / "verdicts.sqlite").read_bytes()
        with (
            read_only(disk),
            pytest.raises(SavedStateError, match=r"sqlite: .*can it be written to.*Choose another"),
        ):
            Store.open(disk / "verdicts.sqlite")
        assert (disk / "verdicts.sqlite").read_bytes() == before
        Store.open(disk / "verdicts.sqlite").close()
