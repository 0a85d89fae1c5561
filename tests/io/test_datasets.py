"""Which files belong together, and what is told of those that do not."""

import numpy as np
import pytest

from segtrust.errors import PairingError, UnsafeFileError, WrongContentError
from segtrust.io.datasets import different_names, find_cases
from segtrust.io.folders import FolderFile
from segtrust.io.names import Pattern
from segtrust.io.pairing import only_with_truth, with_masks, with_truths
from segtrust.io.places import Place
from segtrust.io.readers import open_volume
from segtrust.io.roles import roles_of
from segtrust.io.search import Search
from tests.io.data_sets import masks_of, told


def test_output_of_nnunet(folder):
    found = find_cases([folder("a.npz", "a.pkl", "a.nii.gz", "b.npz", "b.pkl", "b.nii.gz", "dataset.json")])
    assert masks_of(found) == {"a": "a.nii.gz", "b": "b.nii.gz"}
    assert not found.unpaired


def test_output_of_monai(folder):
    found = find_cases([folder("a_prob.nii.gz", "a_seg.nii.gz", "b_prob.nii.gz")])
    assert masks_of(found) == {"a": "a_seg.nii.gz", "b": None}


def test_images_of_ultrasound(folder):
    found = find_cases([folder("benign (1).png", "benign (2).png")])
    truths = folder("benign (1)_mask.png", "benign (2)_mask.png", "benign (2)_mask_1.png", inside="masks")
    judged = with_truths(found, truths)
    assert [case.id for case in judged.cases] == ["benign (1)"]
    reason = told(judged)["benign (2)"]
    assert reason.startswith(
        f"expected one truth, got {truths}/benign (2)_mask.png, {truths}/benign (2)_mask_1"
    )
    assert reason.endswith("Say which: --truth, --truth-pattern, or a manifest")


def test_a_folder_of_masks_alone_may_be_maps(folder):
    assert masks_of(find_cases([folder("a_mask.png", "b_mask.png")])) == {"a": None, "b": None}


@pytest.mark.parametrize("beside", ["predict_from_raw_data_args.json", "plans.json", "summary.json"])
def test_masks_of_nnunet_are_no_maps(folder, beside):
    """Labels 0, 1 and 2 as bytes would be probabilities of 0, 1/255 and 2/255."""
    found = find_cases([folder("a.nii.gz", "b.nii.gz", beside)])
    assert not found.cases
    assert set(told(found)) == {"a", "b"}
    assert "--save_probabilities" in told(found)["a"]


def test_masks_without_maps_are_told(folder):
    found = find_cases([folder("a.npz", "a.nii.gz", "b.nii.gz")])
    assert masks_of(found) == {"a": "a.nii.gz"}
    assert told(found) == {
        "b": "a mask without a probability map: a.nii.gz beside a.npz makes all of that ending masks. If "
        "they are maps, keep the two formats apart, or say which are meant: --pattern"
    }


def test_two_masks_of_a_case_are_told(folder, tmp_path):
    found = find_cases([folder("a.npz", "a.nii.gz", "a.mha", "b.npz")])
    assert masks_of(found) == {"b": None}
    assert told(found)["a"].startswith(
        f"expected one mask, got {tmp_path}/maps/a.mha, {tmp_path}/maps/a.nii.gz"
    )


def test_two_maps_of_a_case_are_told(folder):
    maps = folder("a_prob.npy", "a_pred.npy", "b_prob.npy")
    found = find_cases([maps])
    assert set(masks_of(found)) == {"b"}
    assert told(found)["a"] == f"expected one map of the case 'a', got {maps}/a_pred.npy, {maps}/a_prob.npy"
    assert find_cases([maps, maps / "b_prob.npy"]) == found


def test_truths_and_maps_without_each_other_are_told(folder):
    found = find_cases([folder("a.npy", "b.npy")])
    truths = folder("b_gt.png", "c.png", inside="truths")
    judged = with_truths(found, truths)
    assert [(case.id, case.truth and case.truth.path.name) for case in judged.cases] == [
        ("a", None),
        ("b", "b_gt.png"),
    ]
    assert [case.id for case in only_with_truth(judged).cases] == ["b"]
    assert (
        told(only_with_truth(judged))
        == told(judged)
        == {
            "a": f"expected its truth in {truths}, got no file of that name",
            "c": "a truth without a probability map",
        }
    )


def test_masks_of_another_folder(folder):
    found = find_cases([folder("a.npy", "b.npy")])
    masked = with_masks(found, folder("a.png", "c.png", inside="masks"))
    assert masks_of(masked) == {"a": "a.png"}
    reasons = told(masked)
    assert reasons.pop("c") == "a mask without a probability map"
    assert reasons["b"].startswith("expected its mask in")


def test_a_folder_that_is_none_is_told(folder, tmp_path):
    found = find_cases([folder("a.npy")])
    for add in (with_masks, with_truths):
        with pytest.raises(PairingError, match=f"^{tmp_path}/absent: expected a folder of .*s, got none"):
            add(found, tmp_path / "absent")


def test_hidden_and_other_files_are_not_looked_at(folder):
    found = find_cases([folder("a.npy", ".b.npy", "._a.npy", "notes.txt", "a.pkl", "scores.csv")])
    assert masks_of(found) == {"a": None}
    assert not found.unpaired


def test_stores_are_files(folder, tmp_path):
    maps = folder("a.zarr/zarr.json", "b.ome.zarr/.zattrs")
    assert masks_of(find_cases([maps])) == {"a": None, "b": None}
    (case,) = find_cases([maps / "a.zarr"]).cases
    assert (case.id, case.probabilities) == ("a", Place(maps / "a.zarr"))


def test_files_are_cases_of_their_own(folder):
    maps = folder("a_prob.npy", "b.nii.gz")
    assert masks_of(find_cases([maps / "a_prob.npy", maps / "b.nii.gz"])) == {"a": None, "b": None}


def test_nothing_is_told(folder, tmp_path):
    with pytest.raises(PairingError, match=f"^{tmp_path}/maps: expected probability maps, got none"):
        find_cases([folder("notes.txt")])
    with pytest.raises(PairingError, match=f"^{tmp_path}/absent: expected a file or a folder, got none"):
        find_cases([tmp_path / "absent"])


def test_folds_are_groups(folder, tmp_path):
    folder("a.npz", "a.nii.gz", "summary.json", inside="model/fold_0/validation")
    folder("b.npz", "b.nii.gz", "summary.json", inside="model/fold_1/validation")
    folder("c.npz", inside="model")
    folder("d.npz", inside="model/fold_2")
    found = find_cases([tmp_path / "model"])
    assert {case.id: case.group for case in found.cases} == {"a": "fold_0", "b": "fold_1"}
    assert masks_of(found) == {"a": "a.nii.gz", "b": "b.nii.gz"}
    assert told(found) == {
        "c": "a file beside the folds, which was not looked at",
        "fold_2": "a fold without the folder 'validation': validate with --npz",
    }


def test_manifests_are_read_and_doubles_in_them_told(tmp_path):
    (tmp_path / "cases.csv").write_text("case,probabilities\na,x.npy\na,y.npy\nb,z.npy\n")
    found = find_cases([tmp_path / "cases.csv"])
    assert [case.id for case in found.cases] == ["b"]
    assert told(found)["a"].startswith("expected one map of the case 'a', got")


def pattern(text):
    return None if text is None else Pattern(text)


@pytest.mark.parametrize(
    ("maps", "masks", "found"),
    [
        ("{case}_liver.nii.gz", None, {"a": None, "b": None}),
        ("{case}_liver.nii.gz", "{case}_final.nii.gz", {"a": "a_final.nii.gz", "b": None}),
        (None, "{case}_final.nii.gz", {"a_liver": None, "b_liver": None, "a": "a_final.nii.gz"}),
        ("{case}.nii.gz", "{case}_final.nii.gz", {"a": "a_final.nii.gz", "a_liver": None, "b_liver": None}),
        ("{case}_liver.nii.gz", "{case}.nii.gz", {"a": "a.nii.gz", "b": None}),
    ],
)
def test_patterns_tell_maps_from_masks(folder, maps, masks, found):
    maps_folder = folder("a_liver.nii.gz", "b_liver.nii.gz", "a_final.nii.gz", "a.nii.gz")
    chosen = Search(pattern(maps), pattern(masks))
    assert masks_of(find_cases([maps_folder], chosen)) == found


def test_patterns_of_other_folders(folder):
    found = find_cases([folder("p1_map.npy")], Search(Pattern("{case}_map.npy")))
    masks = folder("seg_p1.png", "seg_p2.png", "p1.png", inside="masks")
    masked = with_masks(found, masks, Pattern("seg_{case}.png"))
    assert masks_of(masked) == {"p1": "seg_p1.png"}
    assert told(masked) == {"p2": "a mask without a probability map"}
    truths = folder("p1.reader1.png", "p1.reader2.png", inside="truths")
    judged = with_truths(found, truths, Pattern("{case}.reader1.png"))
    assert judged.cases[0].truth.path.name == "p1.reader1.png"


def test_a_stack_is_many_cases(tmp_path):
    path = tmp_path / "polyp.npz"
    maps = np.random.default_rng(0).random((3, 4, 5))
    np.savez(path, p_hat=maps, y=maps > 0.6, y_hat=maps > 0.4)
    found = find_cases([path])
    assert [case.id for case in found.cases] == ["polyp[0]", "polyp[1]", "polyp[2]"]
    second = found.cases[1]
    assert second.probabilities == Place(path, "p_hat", 1)
    assert (open_volume(second.mask).read() == (maps[1] > 0.4)).all()
    assert (open_volume(second.truth).read() == (maps[1] > 0.6)).all()
    np.savez(path, p_hat=maps)
    assert find_cases([tmp_path]).cases[2].truth is None


def test_a_stack_that_cannot_be_read_is_told_when_it_is(tmp_path):
    path = tmp_path / "polyp.npz"
    np.savez(path, p_hat=np.array([np.zeros((2, 2)), np.zeros((3, 3))], object), y=np.zeros(2))
    (case,) = find_cases([path]).cases
    with pytest.raises(UnsafeFileError, match=f"^{path}: expected an array of numbers, got .*pickle"):
        open_volume(case.probabilities)
    path.write_bytes(b"PK\3\4 words")
    assert [case.id for case in find_cases([path]).cases] == ["polyp"]
    np.savez(path, p_hat=np.float32(0.5), y=np.zeros(2))
    assert find_cases([path]).cases[0].probabilities == Place(path, "p_hat")


def test_a_number_beyond_the_stack_is_told(tmp_path):
    path = tmp_path / "polyp.npz"
    np.savez(path, p_hat=np.zeros((3, 4, 5)))
    with pytest.raises(WrongContentError, match=r"polyp\.npz::p_hat\[3\]: expected .* one of 3 cases, got 3"):
        open_volume(Place(path, "p_hat", 3))
    np.savez(path, p_hat=np.float64(0.5))
    with pytest.raises(WrongContentError, match="one of 0 cases"):
        open_volume(Place(path, "p_hat", 0))


def test_many_files_do_not_take_long(tmp_path):
    paths = sorted(tmp_path / f"case_{i:05}{ending}" for i in range(20_000) for ending in (".npz", ".nii.gz"))
    roles = roles_of([FolderFile(path, "", path) for path in paths], Search())
    assert (len(roles.maps), len(roles.masks), len(roles.truths)) == (20_000, 20_000, 0)


def test_layouts_are_told_by_the_names_of_folders(folder, tmp_path):
    folder("a.npy", inside="data/predictions")
    folder("a.png", "c.png", inside="data/labelsTs")
    folder("a_0000.png", inside="data/imagesTs")
    found = find_cases([tmp_path / "data"])
    assert [(case.id, case.mask, case.truth.path.name) for case in found.cases] == [("a", None, "a.png")]
    assert told(found) == {"c": "a truth without a probability map"}


def test_a_folder_of_truths_that_is_named_wins_over_the_layout(folder, tmp_path):
    folder("a.npy", inside="data/predictions")
    folder("a.png", "c.png", inside="data/labels")
    found = find_cases([tmp_path / "data"], Search(truth_folder=folder("a.png", inside="second reader")))
    assert found.cases[0].truth == Place(tmp_path / "second reader/a.png")
    assert not found.unpaired


def test_names_are_put_in_front(folder):
    found = find_cases([folder("a.npz", "a.nii.gz", "b.nii.gz")]).below("site 1")
    assert [case.id for case in found.cases] == ["site 1/a"]
    assert [each.case for each in found.unpaired] == ["site 1/b"]


def test_folders_get_different_names(tmp_path):
    folders = [tmp_path / "a/x/maps", tmp_path / "b/x/maps", tmp_path / "b/y/maps"]
    assert different_names(folders) == ["a/x/maps", "b/x/maps", "b/y/maps"]
    assert different_names([tmp_path / "a"]) == ["a"]


def test_a_folder_for_each_case_is_looked_into(tmp_path):
    """As MONAI saves by default: ``case/case_trans.nii.gz``."""
    for case in ("a", "b"):
        (tmp_path / case).mkdir()
        np.save(tmp_path / case / f"{case}_trans.npy", np.full((3, 4), 0.5))
    (tmp_path / "empty").mkdir()
    assert [case.id for case in find_cases([tmp_path]).cases] == ["a", "b"]


def test_numbers_after_words_tell_cases_apart(folder):
    for word in ("pred", "output", "seg", "frame"):
        names = [f"{word}_a_{word}_{i}.npy" for i in range(3)] + [f"{word}_0000.npy"]
        found = find_cases([folder(*names, inside=word)])
        assert len(found.cases) == 4, found.unpaired


def test_a_folder_that_is_given_twice_counts_once(folder):
    here = folder("a.npy", "b.npy")
    assert len(find_cases([here, here]).cases) == 2


def test_a_folder_of_masks_counts_alone(folder):
    """Also where nnU-Net has left masks beside the maps: whoever names a folder means that one."""
    here = folder("a.nii.gz", "b.nii.gz", inside="maps")
    for case in ("a", "b"):
        np.savez(here / f"{case}.npz", probabilities=np.zeros((2, 3, 4, 5), np.float32))
    found = find_cases([here])
    assert masks_of(found) == {"a": "a.nii.gz", "b": "b.nii.gz"}
    masked = with_masks(found, folder("a.png", inside="masks"))
    assert masks_of(masked) == {"a": "a.png"}
    assert told(masked)["b"].startswith("expected its mask in")


def test_a_folder_without_maps_beside_others_is_told_unless_they_may_come(tmp_path):
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "full/a.npy", np.full((4, 4), 0.5))
    folders = [tmp_path / "full", tmp_path / "empty"]
    found = find_cases(folders)
    assert [case.id for case in found.cases] == ["full/a"]
    (told,) = found.unpaired
    assert (told.file, "expected probability maps, got none" in told.reason) == (str(folders[1]), True)
    assert find_cases(folders, Search(may_be_empty=True)).unpaired == ()
    assert find_cases([tmp_path / "full/a.npy", tmp_path / "full"]).unpaired == ()
