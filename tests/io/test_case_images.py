"""Images of cases, found by name."""

import pytest

from segtrust.errors import PairingError
from segtrust.io.case_images import with_images
from segtrust.io.cases import CaseFiles, DataSet
from segtrust.io.places import Place


def case(tmp_path, name, **more):
    return CaseFiles(name, Place(tmp_path / f"{name}.npy"), **more)


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def images_of(found):
    return {each.id: each.image and each.image.path.name for each in found.cases}


def test_names_of_images(tmp_path):
    folder = write(tmp_path / "images", "a.png", "b_0000.nii.gz", "b_0001.nii.gz", "c_image.jpg", "e.txt")
    found = with_images(DataSet(tuple(case(tmp_path, name) for name in "abcde")), folder)
    expected = {"a": "a.png", "b": "b_0000.nii.gz", "c": "c_image.jpg", "d": None, "e": None}
    assert images_of(found) == expected


def test_folders_tell_images_of_one_name_apart(tmp_path):
    folder = write(tmp_path / "images", "x/a.png", "y/a.png")
    cases = (case(tmp_path, "a", folder="x"), case(tmp_path, "a", folder="y"), case(tmp_path, "a"))
    found = with_images(DataSet(cases), folder)
    assert [each.image and each.image.path.parent.name for each in found.cases] == ["x", "y", None]


def test_an_image_that_is_known_stays(tmp_path):
    folder = write(tmp_path / "images", "a.png")
    known = Place(tmp_path / "other.png")
    found = with_images(DataSet((case(tmp_path, "a", image=known),)), folder)
    assert found.cases[0].image == known


def test_no_folder(tmp_path):
    with pytest.raises(PairingError, match="expected a folder of images"):
        with_images(DataSet(), tmp_path / "nowhere")
