"""Maps that are named one by one are the cases that their folder would have given."""

import pytest

from segtrust.io.datasets import find_cases
from segtrust.io.names import Pattern
from segtrust.io.search import Search
from tests.engine.files import NNUNET

PATTERNS = Search(
    maps=Pattern("{case}_prob.npy"), masks=Pattern("{case}_seg.npy"), truths=Pattern("{case}_gt.npy")
)


def test_output_of_nnunet_has_its_masks():
    whole = find_cases([NNUNET / "plain/predictions"]).cases
    assert all(case.mask is not None for case in whole)
    assert find_cases([case.probabilities.path for case in whole]).cases == whole


@pytest.mark.parametrize("search", [Search(), PATTERNS])
def test_masks_and_truths_by_names_and_by_patterns(folder, search):
    place = folder("a_prob.npy", "a_seg.npy", "a_gt.npy", "b_prob.npy")
    whole = find_cases([place], search).cases
    for case in whole:
        alone = find_cases([case.probabilities.path], search)
        assert (alone.cases, alone.unpaired) == ((case,), ())
    assert [bool(case.mask) for case in whole] == [True, False]
    assert [bool(case.truth) for case in whole] == [True, False]


def test_two_masks_are_told_as_of_the_folder(folder):
    place = folder("a.npz", "a.nii.gz", "a_seg.nii.gz")
    assert find_cases([place / "a.npz"]) == find_cases([place])


@pytest.mark.parametrize(
    "names",
    [
        ("a.npz", "a.png", "b_prob.npz", "b.png"),
        ("a.npz", "a_mask.npz", "b_prob.npz"),
        ("a.npz", "a.nii.gz", "b.npz", "b.nii.gz", "c.nii.gz"),
    ],
)
def test_what_the_whole_folder_tells_of_its_files_counts(folder, names):
    place = folder(*names)
    whole = find_cases([place]).cases
    assert find_cases(sorted(place.glob("*.npz"))).cases == whole


def test_patterns_that_no_file_fits_are_told(folder):
    place = folder("a_prob.npy", "a_seg.npy", "b_prob.npy")
    search = Search(maps=Pattern("{case}_prob.npy"), masks=Pattern("{case}_typo.npy"))
    alone = find_cases(sorted(place.glob("*_prob.npy")), search)
    assert [each.reason for each in alone.unpaired] == ["expected a mask of this pattern, got none that fits"]
    assert alone.unpaired == find_cases([place], search).unpaired


def test_what_is_named_as_a_map_is_one_whatever_lies_beside_it(folder):
    (case,) = find_cases([folder("a.npz", "a.nii.gz") / "a.nii.gz"]).cases
    assert (case.probabilities.path.name, case.mask) == ("a.nii.gz", None)


def test_masks_in_a_folder_of_their_own_win(folder):
    place = folder("a.npz", "a.nii.gz")
    masks = folder("a.nii.gz", inside="masks")
    (case,) = find_cases([place / "a.npz"], Search(mask_folder=masks)).cases
    assert case.mask.path.parent == masks
