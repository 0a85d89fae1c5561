"""A package that is not installed is told once: before the work begins, or as one line that counts cases."""

import sys

import numpy as np
import pytest

from segtrust.engine.executors import InProcessExecutor
from segtrust.engine.score_table import check_packages
from segtrust.errors import MissingExtraError
from segtrust.io import ArrayRef, find_cases, open_volume
from segtrust.io.volume import READERS
from tests.commands import segtrust
from tests.engine.files import write_maps

P = np.random.default_rng(0).random((8, 8, 8)).astype(np.float32)


def hide(monkeypatch, package):
    """Let a package be not installed; parts of it that are loaded go too."""
    for name in [each for each in sys.modules if each.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("segtrust.workflows.make_executor", lambda *_: InProcessExecutor())


def write_nifti(path):
    import nibabel

    nibabel.save(nibabel.Nifti1Image(P, np.eye(4)), path)


def write_hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["p"] = P


def write_zarr(path):
    import zarr

    zarr.save_array(str(path), P)


def write_tiff(path):
    import tifffile

    tifffile.imwrite(path, P)


def write_picture(path):
    import PIL.Image

    PIL.Image.fromarray((255 * P[0]).astype(np.uint8)).save(path)


def write_itk(path):
    import SimpleITK

    SimpleITK.WriteImage(SimpleITK.GetImageFromArray(P), str(path))


FORMATS = {
    "nibabel": ("a.nii.gz", write_nifti),
    "h5py": ("a.h5", write_hdf5),
    "zarr": ("a.zarr", write_zarr),
    "tifffile": ("a.tif", write_tiff),
    "PIL": ("a.png", write_picture),
    "SimpleITK": ("a.mha", write_itk),
}


@pytest.mark.parametrize("package", [pytest.param(name, marks=pytest.mark.needs(name)) for name in FORMATS])
def test_what_a_format_needs_is_known_before_it_is_opened(tmp_path, monkeypatch, package):
    name, write = FORMATS[package]
    write(tmp_path / name)
    cases = find_cases([tmp_path]).cases
    open_volume(ArrayRef(tmp_path / name))
    check_packages(cases)
    hide(monkeypatch, package)
    with pytest.raises(MissingExtraError, match=package):
        open_volume(ArrayRef(tmp_path / name))
    with pytest.raises(MissingExtraError, match=rf"got 1 without '{package}', and no others.*segtrust\[io\]"):
        check_packages(cases)


def test_each_format_that_needs_a_package_is_tried():
    assert {reader.needs for reader in READERS} == {*FORMATS, "pydicom", ""}


@pytest.mark.needs("nibabel")
class TestCommand:
    @pytest.mark.parametrize("more", [(), ("--workers", 2)])
    def test_where_no_case_can_be_read_nothing_is_begun(self, tmp_path, monkeypatch, more):
        (tmp_path / "maps").mkdir()
        for number in range(3):
            write_nifti(tmp_path / f"maps/{number}.nii.gz")
        hide(monkeypatch, "nibabel")
        done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv", *more)
        assert done.returncode == 2
        assert "got 3 without 'nibabel', and no others. Run pip install 'segtrust[io]'" in done.stderr
        assert done.stderr.count("nibabel") == 1
        assert not (tmp_path / "scores.csv").exists()
        monkeypatch.undo()
        assert segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv").returncode == 0
        hide(monkeypatch, "nibabel")  # all is in the log, and nothing has to be read
        assert segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv").returncode == 0

    def test_where_some_can_the_others_are_counted_in_one_line(self, tmp_path, monkeypatch):
        write_maps(tmp_path / "maps", 2)
        (tmp_path / "maps/broken.npy").write_bytes(b"no map")
        for number in range(7):
            write_nifti(tmp_path / f"maps/{number}.nii.gz")
        hide(monkeypatch, "nibabel")
        done = segtrust("score", tmp_path / "maps", "-o", tmp_path / "scores.csv")
        assert done.returncode == 1
        assert "  7 cases, for example 0: " in done.stderr
        assert "This needs 'nibabel': pip install 'segtrust[io]'" in done.stderr
        assert done.stderr.count("nibabel") == 1
        assert "  broken: " in done.stderr
        assert done.stderr.startswith("8 failures; ")
