"""A map that is cut in pieces, which others read: the same numbers, to the last bit."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import segtrust.engine.chunks as chunks
from benchmarks.files import make_zarr
from segtrust.confidence import get_estimators
from segtrust.engine.chunks import is_huge, spread_over_dask, spread_over_processes
from segtrust.engine.run import Engine
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import WorkerError
from segtrust.io import ArrayRef, CaseFiles, find_cases
from segtrust.io.formats import _common
from tests.engine.dask_parts import small_cluster

ALL = ("sdc", "idc", "amsp", "apc", "ane", "mmmc", "pla")


def square(number):
    return number**2


def fail_at_forty(number):
    if number == 40:
        raise ValueError("forty is too many")
    return number


def test_results_come_in_the_order_of_the_pieces():
    with spread_over_processes(2) as spread:
        assert list(spread(square, range(100))) == [number**2 for number in range(100)]
        assert list(spread(square, [])) == []
        assert list(spread(square, [7])) == [49]


def test_a_fault_in_a_piece_is_raised_here():
    with spread_over_processes(2) as spread, pytest.raises(ValueError, match="forty is too many"):
        list(spread(fail_at_forty, range(100)))


def die(number):
    import os

    os._exit(3)


def test_a_process_that_dies_is_told():
    with spread_over_processes(2) as spread, pytest.raises(WorkerError, match="exit code 3"):
        list(spread(die, range(100)))


@pytest.fixture
def small_is_huge(monkeypatch):
    monkeypatch.setattr(chunks, "_HUGE", 1 << 16)
    monkeypatch.setattr(_common, "_AT_ONCE", 1 << 16)


@pytest.mark.needs("zarr")
class TestZarr:
    def test_what_is_huge(self, tmp_path, small_is_huge):
        make_zarr(tmp_path / "large.zarr", side=40)
        make_zarr(tmp_path / "small.zarr", side=8)
        np.save(tmp_path / "large.npy", np.zeros((100, 1000), np.float32))
        found = {
            name: is_huge(CaseFiles("a", ArrayRef(tmp_path / name)))
            for name in ("large.zarr", "small.zarr", "large.npy", "none.zarr")
        }
        assert found == {"large.zarr": True, "small.zarr": False, "large.npy": False, "none.zarr": False}
        masked = CaseFiles("a", ArrayRef(tmp_path / "large.zarr"), mask=ArrayRef(tmp_path / "large.npy"))
        assert not is_huge(masked), "its mask would be sent with each piece"

    @pytest.mark.parametrize("with_mask", [False, True])
    def test_two_processes_give_what_one_gives(self, tmp_path, small_is_huge, with_mask):
        import zarr

        p = make_zarr(tmp_path / "p.zarr", side=96)
        case = CaseFiles("p", ArrayRef(tmp_path / "p.zarr"))
        if with_mask:
            mask = zarr.create_array(
                store=str(tmp_path / "mask.zarr"), shape=p.shape, chunks=(32, 48, 96), dtype="uint8"
            )
            mask[:] = (np.asarray(p[:]) > 0.3).astype(np.uint8)
            case = replace(case, mask=ArrayRef(tmp_path / "mask.zarr"))
        job = ScoreJob(tuple(get_estimators(ALL)))
        rows = []
        for engine in (Engine(1), Engine(2)):
            ((_, outcome),) = engine.run(job, [case])
            assert outcome.failure is None, outcome.failure
            rows.append({name: value for name, value in outcome.rows[0].items() if name != "seconds"})
        assert rows[0] == rows[1]
        assert (rows[0]["mask_difference"] is None) != with_mask

    def test_huge_and_small_cases_in_one_run(self, tmp_path, small_is_huge):
        make_zarr(tmp_path / "p.zarr", side=40)
        np.save(tmp_path / "q.npy", np.full((4, 5), 0.25))
        job = ScoreJob(tuple(get_estimators(["sdc", "amsp"])))
        outcomes = dict(Engine(2).run(job, find_cases([tmp_path]).cases))
        assert {case.id: outcome.failure for case, outcome in outcomes.items()} == {"p": None, "q": None}

    def test_a_broken_chunk_is_a_failure_that_names_the_file(self, tmp_path, small_is_huge):
        make_zarr(tmp_path / "p.zarr", side=96)
        (piece, *_) = (each for each in (tmp_path / "p.zarr/c").rglob("*") if each.is_file())
        piece.write_bytes(b"nothing")
        job = ScoreJob(tuple(get_estimators(["sdc"])))
        ((_, outcome),) = Engine(2).run(job, [CaseFiles("p", ArrayRef(tmp_path / "p.zarr"))])
        assert "p.zarr" in outcome.failure.reason


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_on_a_dask_cluster(tmp_path):
    import distributed

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        assert list(spread_over_dask(client)(square, range(50))) == [number**2 for number in range(50)]


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_a_cluster_without_workers_is_told(monkeypatch, caplog):
    monkeypatch.setattr("segtrust.engine.absence._SILENCE_S", 0.2)
    monkeypatch.setattr("segtrust.engine.chunks._LOOK_S", 0.1)
    with small_cluster(workers=0) as (cluster, client):
        late = threading.Timer(1.0, cluster.scale, [1])
        late.start()
        assert list(spread_over_dask(client)(square, range(50))) == [number**2 for number in range(50)]
        late.join()
    assert f"the scheduler {cluster.scheduler_address} has had no worker" in caplog.text
