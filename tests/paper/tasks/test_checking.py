"""All that can be wrong with data is listed at once, with what to do."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.errors import ParameterError, WrongContentError
from segtrust.paper.tasks import get_task, read_picture
from segtrust.paper.tasks.checking import check_data, find_samples
from tests.paper.tasks import miniatures

pytestmark = pytest.mark.needs("PIL", "nibabel")


@pytest.fixture
def spoiled(tmp_path):
    """BUSI with one fault of each kind."""
    data = miniatures.busi(tmp_path)
    benign = data / "benign"
    (benign / "benign (2)_mask.png").unlink()
    (benign / "benign (3).png").unlink()
    miniatures.save(benign / "benign (4)_mask.png", np.zeros((5, 7), np.uint8))
    miniatures.save(benign / "benign (5)_mask.png", np.full((48, 56), 7, np.uint8))
    picture = benign / "benign (6).png"
    picture.write_bytes(picture.read_bytes()[:200])
    (benign / "benign (7)_mask.png").write_bytes(b"no image at all")
    return data


def test_all_faults_are_listed_at_once(spoiled):
    problems = {each.case: each.reason for each in check_data(get_task("breast-cancer"), spoiled).problems}
    assert {case.removeprefix("benign ") for case in problems} == {f"({at})" for at in range(2, 8)}
    assert "an image without mask" in problems["benign (2)"]
    assert "a mask without image" in problems["benign (3)"]
    assert "of the image's size (48, 56), got (5, 7)" in problems["benign (4)"]
    assert "expected the values 0, 1, 255, 65535, got 7 as well" in problems["benign (5)"]
    assert "cannot be read" in problems["benign (6)"]
    assert "benign (7)_mask.png" in problems["benign (7)"]
    remedies = ("Add", "Save", "Copy it again", "Fetch", "Is it of another", "remove", "saved")
    for reason in list(problems.values())[:5]:
        assert any(word in reason for word in remedies), reason


def test_names_alone_show_what_is_missing(spoiled):
    problems = check_data(get_task("breast-cancer"), spoiled, quick=True).problems
    assert [each.case for each in problems] == ["benign (2)", "benign (3)"]


def test_one_case_may_have_several_faults(tmp_path):
    data = miniatures.busi(tmp_path)
    for name in ("_mask", "_mask_1"):
        miniatures.save(data / "benign" / f"benign (1){name}.png", np.full((5, 5), 9, np.uint8))
    problems = check_data(get_task("breast-cancer"), data).problems
    assert [each.case for each in problems] == ["benign (1)"] * 2


@pytest.mark.parametrize(
    "make", [lambda path: path.mkdir(), lambda path: None, lambda path: path.write_text("")]
)
def test_folder_without_cases_is_one_problem_that_tells_the_layout(tmp_path, make):
    data = tmp_path / "data"
    make(data)
    (problem,) = check_data(get_task("breast-cancer"), data).problems
    assert "benign (1)_mask.png" in problem.reason
    with pytest.raises(ParameterError, match="segtrust tasks show breast-cancer"):
        find_samples(get_task("breast-cancer"), data)


def test_missing_set_is_a_problem_and_another_number_a_note(tmp_path):
    data = miniatures.polyps(tmp_path)
    for name in ("CVC-300", "CVC-ColonDB", "ETIS-LaribPolypDB"):
        (data / "TestDataset" / name).rename(tmp_path / name)
    checked = check_data(get_task("polyp"), data)
    assert any("no case of the set 'OOD'" in each.reason for each in checked.problems)
    assert checked.notes[0] == "ID: 8 cases; the paper has 1610."


def test_volumes_with_other_values_and_axes(tmp_path):
    data = miniatures.hippocampus(tmp_path)
    miniatures.save_volume(data / "labelsTr/hippocampus_000.nii.gz", np.full((4, 4, 4), 5, np.uint8))
    miniatures.save_volume(data / "imagesTr/hippocampus_001.nii.gz", np.full((3, 4, 5), np.nan, np.float32))
    problems = {each.case: each.reason for each in check_data(get_task("hippocampus"), data).problems}
    assert "got 5 as well" in problems["hippocampus_000"]
    assert "NaN" in problems["hippocampus_001"]


def test_sequence_of_brats_that_is_missing(tmp_path):
    data = miniatures.brats(tmp_path, cases=2)
    next(data.glob("*/BraTS20_Training_002/*_t2.nii.gz")).unlink()
    (problem,) = check_data(get_task("brain-tumor"), data).problems
    assert problem.case == "BraTS20_Training_002"


def reasons(name, data, **how):
    return {each.case: each.reason for each in check_data(get_task(name), data, **how).problems}


@pytest.mark.parametrize("quick", [True, False])
def test_absent_sequences_are_named(tmp_path, quick):
    data = miniatures.brats(tmp_path)
    first, second, *_ = sorted(path for path in data.rglob("BraTS20_Training_*") if path.is_dir())
    next(first.glob("*_t2.nii*")).unlink()
    for path in second.iterdir():
        path.unlink()
    found = reasons("brain-tumor", data, quick=quick)
    assert "lacks t2. Fetch it again" in found[first.name]
    assert "lacks t1, t1ce, t2, flair, seg" in found[second.name]


def test_sequences_of_different_size_are_a_problem(tmp_path):
    data = miniatures.brats(tmp_path)
    path = next(data.rglob("*_t2.nii*"))
    miniatures.save_volume(path, np.zeros((3, 4, 5), np.float32))
    assert "_t2.nii" in reasons("brain-tumor", data)[path.parent.name]
    assert "expected the size of" in reasons("brain-tumor", data)[path.parent.name]


def test_mask_that_lies_elsewhere_is_a_problem(tmp_path):
    import nibabel

    data = miniatures.hippocampus(tmp_path)
    path = next((data / "labelsTr").iterdir())
    labels = nibabel.load(path)
    values, mirrored = np.asarray(labels.dataobj), labels.affine @ np.diag([-1.0, 1.0, 1.0, 1.0])
    nibabel.save(nibabel.Nifti1Image(values, mirrored), path)
    (said,) = reasons("hippocampus", data).values()
    assert "expected the grid of" in said
    assert "resample the mask" in said


def test_cases_without_their_disc_are_a_problem(tmp_path):
    data = miniatures.drishti(tmp_path)
    first, second, *_ = sorted((data / "softmaps_disc").iterdir())
    first.unlink()
    second.write_bytes(b"no picture")
    found = reasons("fundus", data)
    assert set(found) == {first.stem, second.stem}
    assert "expected the map of the disc" in found[first.stem]


def test_two_images_of_one_name_are_a_problem(tmp_path):
    data = miniatures.fundus_sets(tmp_path)
    image = next(path for path in sorted((data / "REFUGE").rglob("*.jpg")))
    other = data / "REFUGE" / "again" / image.name
    other.parent.mkdir()
    other.write_bytes(image.read_bytes())
    (said,) = reasons("optic-cup", data).values()
    assert "several images of this name" in said
    assert str(other) in said


def test_copies_and_hidden_files_of_photographs_are_left_aside(tmp_path):
    data = miniatures.fundus_sets(tmp_path / "masked")
    for path in [*data.rglob("*.jpg"), *data.rglob("*.png")]:
        copy = path.parent.parent / f"{path.parent.name}_Cropped" / path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes()[:50])
        path.with_name(f"._{path.name}").write_bytes(b"of a Mac")
    assert reasons("optic-cup", data) == {}


def test_table_of_boxes_must_know_all_cases(tmp_path):
    data = miniatures.fundus_sets(tmp_path)
    (data / "boxes.csv").write_text("case,top,left,bottom,right\nstranger,0,0,5,5\n")
    found = reasons("optic-cup", data)
    assert len(found) == 18
    assert all("expected its square in" in said for said in found.values())


def test_splits_that_a_data_set_should_have(tmp_path):
    import shutil

    data = miniatures.shifts(tmp_path)
    for folder in list(data.rglob("eval_in")):
        shutil.rmtree(folder)
    assert "no case of the split 'test' in distribution" in reasons("mswml", data)["test"]


def test_names_with_underscores_are_different_cases(tmp_path):
    data = miniatures.shifts(tmp_path)
    for path in [*data.rglob("*_FLAIR_*"), *data.rglob("*_gt_*")]:
        path.rename(path.with_name(f"pat_{path.name}"))
    assert check_data(get_task("mswml"), data).counts == {"ID": 9, "OOD": 3}


def test_both_archives_of_shifts_may_lie_side_by_side(tmp_path):
    miniatures.shifts(tmp_path / "both" / "part 1")
    assert check_data(get_task("mswml"), tmp_path / "both").counts == {"ID": 9, "OOD": 3}


def test_too_many_channels_are_a_problem(tmp_path):
    data = miniatures.busi(tmp_path)
    task = get_task("breast-cancer")

    def twice(folder):
        return [replace(each, images=each.images * 2) for each in task.find(folder)]

    rgb = np.zeros((48, 56, 3), np.uint8)
    for path in data.rglob("*.png"):
        if "mask" not in path.name:
            miniatures.save(path, rgb)
    problems = check_data(replace(task, find=twice), data).problems
    assert len(problems) == 12
    assert "expected an image of 1 or 3 channels, got 6" in problems[0].reason


def test_find_of_one_s_own_that_fails_is_told_with_its_line(tmp_path):
    def find(folder):
        yield {}["nothing"]

    with pytest.raises(ParameterError, match=r"KeyError\('nothing'\) in line \d+ of .*test_checking\.py"):
        find_samples(replace(get_task("breast-cancer"), find=find), tmp_path)


def test_pictures_of_twelve_bits_are_refused(tmp_path):
    miniatures.save(tmp_path / "dark.png", np.linspace(0, 4095, 256).astype(np.uint16).reshape(16, 16))
    with pytest.raises(WrongContentError, match="up to 4095, of 12 bits or fewer"):
        read_picture(tmp_path / "dark.png")


@pytest.mark.parametrize(("top", "white"), [(65535, 255), (8000, 31), (1, 0)])
def test_sixteen_bits_become_eight(tmp_path, top, white):
    ramp = np.linspace(0, top, 256).astype(np.uint16).reshape(16, 16)
    miniatures.save(tmp_path / "deep.png", ramp)
    found = read_picture(tmp_path / "deep.png")
    assert found.shape == (1, 16, 16)
    assert found.max() == white
    assert np.array_equal(found[0], np.rint(ramp / 257).astype(np.uint8))


def test_pictures_of_floats_are_refused(tmp_path):
    miniatures.save(tmp_path / "float.tif", np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4))
    with pytest.raises(WrongContentError, match="expected a picture of 8 or 16 bits, got float32"):
        read_picture(tmp_path / "float.tif")


def test_the_mask_of_one_patient_may_have_a_name_of_its_own(tmp_path):
    data = miniatures.brats(tmp_path)
    path = next(data.rglob("*_seg.nii*"))
    path.rename(path.with_name("W39_1998.09.19_Segm.nii" + (".gz" if path.name.endswith(".gz") else "")))
    next(data.rglob("BraTS20_Training_*")).parent.joinpath("BraTS20_Training_999.zip").write_bytes(b"zip")
    assert reasons("brain-tumor", data) == {}


def test_photographs_without_nerves_are_copies(tmp_path):
    data = miniatures.fundus_sets(tmp_path)
    for path in list((data / "G1020").rglob("*.jpg")):
        copy = data / "G1020" / "NerveRemoved_Images" / path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    assert reasons("optic-cup", data) == {}


def test_cases_that_would_share_a_file_are_a_problem(tmp_path):
    data = miniatures.busi(tmp_path)
    task = get_task("breast-cancer")

    def find(folder):
        first, second, *others = task.find(folder)
        return [replace(first, case="x/A"), replace(second, case="x__a"), *others]

    problems = check_data(replace(task, find=find), data).problems
    assert [each.case for each in problems] == ["x/A"]


def test_names_of_sets_that_no_file_could_have(tmp_path):
    task = get_task("breast-cancer")

    def find(folder):
        return [replace(each, set="clinic/B") for each in task.find(folder)]

    with pytest.raises(ParameterError, match="expected names of sets without"):
        find_samples(replace(task, find=find), miniatures.busi(tmp_path))


def test_nothing_to_test_on_is_a_problem(tmp_path):
    data = miniatures.drishti(tmp_path)
    (data / "split.csv").unlink()
    assert "no case to test on" in reasons("fundus", data)["test"]
