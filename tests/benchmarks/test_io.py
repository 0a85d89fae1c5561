"""The benchmark of files, on small ones."""

import sys

import pytest

from benchmarks.io import (
    compare_nifti,
    compare_reading,
    compare_workers,
    measure_log,
    measure_memory,
    measure_start,
)


@pytest.mark.needs("nibabel")
def test_reading_is_held_against_numpy(tmp_path):
    lines = list(compare_reading(tmp_path, rounds=1, shape=(10, 12, 14)))
    assert [line.target for line in lines] == ["<= 0.5", "<= 0.5", "", ""]
    assert all(line.ratio > 0 for line in lines)


@pytest.mark.needs("nibabel")
def test_reading_is_held_against_nibabel(tmp_path):
    (line,) = compare_nifti(tmp_path, rounds=1, shape=(10, 12, 14))
    assert (line.against, line.map) == ("nibabel", "map.nii.gz")
    assert line.ratio > 0


@pytest.mark.slow
def test_workers(tmp_path):
    lines = list(compare_workers(tmp_path, rounds=1, count=12))
    assert [line.target for line in lines] == [">= 1.7", ""]


@pytest.mark.slow
@pytest.mark.needs("zarr")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory(tmp_path):
    readings = {each.what: each.value for each in measure_memory(tmp_path, count=200, side=70)}
    first, whole, early, late, large = readings.values()
    assert 0 < first < whole
    assert all(50 < mib < 1000 for mib in (early, late, large))


@pytest.mark.slow
@pytest.mark.needs("PIL")
def test_start_and_log(tmp_path):
    starts = list(measure_start(tmp_path, rounds=1))
    per_case_us, mib = measure_log(tmp_path, count=500)
    assert len(starts) == 2
    assert all(start.value > 0 for start in starts)
    assert per_case_us.value > 0
    assert mib.value < 20
