"""What tells that a case has changed: its files, and those that belong to them."""

import numpy as np
import pytest

from segtrust.io.cases import CaseFiles
from segtrust.io.places import Place
from segtrust.io.stamps import stamps_of


def stamp(path):
    return stamps_of([CaseFiles("a", Place(path))])["a"]


@pytest.mark.needs("nibabel")
@pytest.mark.parametrize(("given", "changed"), [("a.hdr", "a.img"), ("a.img", "a.hdr")])
def test_either_file_of_a_nifti_pair(tmp_path, given, changed):
    import nibabel

    image = nibabel.Nifti1Pair(np.zeros((4, 5, 6), np.float32), np.eye(4))
    nibabel.save(image, tmp_path / "a.hdr")
    before = stamp(tmp_path / given)
    assert stamp(tmp_path / given) == before
    with (tmp_path / changed).open("ab") as file:
        file.write(b"more")
    assert stamp(tmp_path / given) != before


def test_a_file_whose_partner_is_not_there(tmp_path):
    (tmp_path / "a.hdr").write_bytes(b"header")
    assert stamp(tmp_path / "a.hdr")["files"][0][1] == 6
