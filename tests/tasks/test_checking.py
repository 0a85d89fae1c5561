"""All that can be wrong with data is listed at once, with what to do."""

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.tasks import get_task
from segtrust.tasks.checking import check_data, find_samples
from tests.tasks import miniatures

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
    assert "expected the values 0, 1, 255, got 7 as well" in problems["benign (5)"]
    assert "cannot be read" in problems["benign (6)"]
    assert "benign (7)_mask.png" in problems["benign (7)"]
    remedies = ("Add", "Save", "Fetch", "Is it of another", "remove", "saved")
    assert all(any(word in reason for word in remedies) for reason in list(problems.values())[:5])


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
