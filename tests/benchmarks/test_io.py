"""The benchmark of files, on small ones."""

import sys

import pytest

from benchmarks.io import compare_nifti, compare_reading, compare_workers, measure_memory


@pytest.mark.needs("nibabel")
def test_reading_is_held_against_numpy(tmp_path):
    lines = list(compare_reading(tmp_path, rounds=1, shape=(10, 12, 14)))
    assert [line.target for line in lines] == ["<= 1.1", "<= 1.1", ""]
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
    small, large = measure_memory(tmp_path, count=20, side=70)
    assert 50 < small.value < 500
    assert 50 < large.value < 500
