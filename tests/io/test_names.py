"""Names of files, as tools write them."""

from pathlib import Path

import pytest

from segtrust.errors import ParameterError
from segtrust.io.names import Pattern, case_of, image_cases, is_data_file, is_role_alone, role_of, stem_of

ENDINGS = (
    *(".nii.gz", ".nii", ".npz", ".npy", ".mha", ".nrrd", ".h5", ".hdf5", ".dcm", ".png", ".tif"),
    *(".zarr", ".ome.zarr", ".zarr.zip", ".ome.tiff"),
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_stems_have_no_ending(ending):
    assert is_data_file(Path(f"maps/case.1{ending}"))
    assert stem_of(Path(f"maps/case.1{ending}")) == "case.1"
    assert stem_of(Path(f"case.1{ending.upper()}")) == "case.1"


@pytest.mark.parametrize(
    "name", ["a.pkl", "dataset.json", "a.txt", "a.csv", "README.md", ".a.npz", "._a.nii.gz", "a"]
)
def test_other_files_are_no_data(name):
    assert not is_data_file(Path(name))


def test_an_unknown_ending_is_left_out_too():
    assert stem_of(Path("a/case.xyz")) == "case"


@pytest.mark.parametrize(
    ("name", "case"),
    [
        # nnU-Net
        ("BRATS_001.npz", "BRATS_001"),
        ("BRATS_001.nii.gz", "BRATS_001"),
        ("slice_0000.nii.gz", "slice_0000"),
        ("BRATS_001_trans.nii.gz", "BRATS_001"),
        ("case_0001.npz", "case_0001"),
        # MONAI
        ("spleen_7_seg.nii.gz", "spleen_7"),
        ("spleen_7_pred.nii.gz", "spleen_7"),
        ("spleen_7-prob.npy", "spleen_7"),
        # TotalSegmentator
        ("s0011.npz", "s0011"),
        ("s0011_seg.nii.gz", "s0011"),
        # breast ultrasound
        ("benign (1).png", "benign (1)"),
        ("benign (1)_mask.png", "benign (1)"),
        ("benign (100)_mask_1.png", "benign (100)"),
        # polyps, skin
        ("cju0qkwl35piu.png", "cju0qkwl35piu"),
        ("ISIC_0000000_segmentation.png", "ISIC_0000000"),
        ("ISIC_0000000_Prob.PNG", "ISIC_0000000"),
        ("a_ground_truth.png", "a"),
        ("a.gt.nii.gz", "a"),
        # words that are the name itself
        ("mask.png", "mask"),
        ("prob_1.png", "prob_1"),
        ("prediction.npz", "prediction"),
        ("unmasked.png", "unmasked"),
        ("imask.png", "imask"),
    ],
)
def test_cases_are_told_from_names(name, case):
    assert case_of(Path("folder_mask") / name) == case


@pytest.mark.parametrize(
    ("stem", "role"),
    [
        *((stem, "mask") for stem in ("a_seg", "a_Mask", "a_mask_1", "x-mask")),
        *((stem, "truth") for stem in ("a_gt", "a_Label", "a.ground_truth")),
        *((stem, "map") for stem in ("a_pred", "a_prob", "x-pred")),
        *((stem, "image") for stem in ("x-img", "a_image", "a scan")),
        *((stem, None) for stem in ("a", "mask", "mask_7", "gt", "x-pred_aid", "img")),
    ],
)
def test_roles_by_name(stem, role):
    assert role_of(stem)[0] == role


def test_images_may_be_of_several_names():
    assert image_cases("a_0000") == ["a_0000", "a"]
    assert image_cases("x-img") == ["x-img", "x"]
    assert image_cases("x_mask") == ["x_mask", "x"]


@pytest.mark.parametrize(
    ("name", "alone"),
    [("prob.nii.gz", True), ("Mask.png", True), ("gt.npy", True), ("a_gt.npy", False), ("a.npy", False)],
)
def test_names_that_say_no_case(name, alone):
    assert is_role_alone(stem_of(Path("p3") / name)) is alone


@pytest.mark.parametrize(
    ("text", "name", "case"),
    [
        ("{case}.npz", "a.npz", "a"),
        ("{case}.npz", "a.npz.bak", None),
        ("p_{case}_lesion.nii.gz", "p_07_lesion.nii.gz", "07"),
        ("p_{case}_lesion.nii.gz", "p__lesion.nii.gz", None),
        ("{case}_*.png", "a_x_3.png", "a_x"),
        ("scan*_{case}.png", "scan12_a.png", "a"),
        ("a.b+({case}).png", "a.b+(7).png", "7"),
        ("a.b+({case}).png", "aXb+(7).png", None),
        ("{case}", "anything at all", "anything at all"),
    ],
)
def test_patterns_have_the_case_in_its_place(text, name, case):
    assert Pattern(text).case_of(Path("folder") / name) == case


@pytest.mark.parametrize("text", ["", "a.npz", "{case}{case}", "{Case}.npz", "{case}_{case}.png"])
def test_a_pattern_without_one_case_is_refused(text):
    with pytest.raises(ParameterError, match=r"^pattern: expected \{case\} exactly once"):
        Pattern(text)


def test_a_pattern_is_a_name_without_folders():
    with pytest.raises(ParameterError, match=r"^pattern: expected the name of a file without folders"):
        Pattern("{case}/prob.npz")
