"""Which files belong together, and what is reported of those that do not."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from segtrust.errors import PairingError, ParameterError, UnsafeFileError, WrongContentError
from segtrust.io.array_ref import ArrayRef
from segtrust.io.case_files import CaseFiles, Dataset, only_with_truth, without_duplicates
from segtrust.io.dataset import find_cases, short_names
from segtrust.io.folders import FolderFile, assign_roles
from segtrust.io.names import Pattern, stem_of
from segtrust.io.partners import add_files
from segtrust.io.volume import open_volume
from tests.engine.files import NNUNET


def masks_of(found):
    return {case.id: case.mask and case.mask.path.name for case in found.cases}


def truths_of(found):
    return {case.id: case.truth and case.truth.path.name for case in found.cases}


def failed(found):
    return {failure.case: failure.reason for failure in found.failures}


def left_over(found):
    return [leftover.pattern for leftover in found.leftovers]


def add_truth(found, folder, pattern=None):
    return add_files(found, "truth", folder, pattern)


def add_masks(found, folder, pattern=None):
    return add_files(found, "mask", folder, pattern)


def test_output_of_nnunet(folder):
    found = find_cases([folder("a.npz", "a.pkl", "a.nii.gz", "b.npz", "b.pkl", "b.nii.gz", "dataset.json")])
    assert masks_of(found) == {"a": "a.nii.gz", "b": "b.nii.gz"}
    assert not found.failures


def test_output_of_monai(folder):
    found = find_cases([folder("a_prob.nii.gz", "a_seg.nii.gz", "b_prob.nii.gz")])
    assert masks_of(found) == truths_of(found) == {"a": None, "b": None}
    assert left_over(found) == ["*_seg.nii.gz"]
    assert "--mask-pattern '{case}_seg.nii.gz'" in found.notes[0]


def test_images_of_ultrasound(folder):
    found = find_cases([folder("benign (1).png", "benign (2).png")])
    truths = folder("benign (1)_mask.png", "benign (2)_mask.png", "benign (2)_mask_1.png", inside="masks")
    judged = add_truth(found, truths)
    assert [case.id for case in judged.cases] == ["benign (1)"]
    reason = failed(judged)["benign (2)"]
    assert reason.startswith(
        f"expected one ground truth, got {truths}/benign (2)_mask.png, {truths}/benign (2)_mask_1"
    )
    assert reason.endswith(
        "Say which: --truth-pattern '{case}_mask.png' or --truth-pattern '{case}_mask_1.png', or a manifest"
    )
    chosen = find_cases(
        [found.cases[0].probabilities.path.parent], truth=truths, truth_pattern="{case}_mask.png"
    )
    assert len(chosen.cases) == 2
    (second,) = chosen.leftovers
    assert (second.pattern, second.reason) == ("*_mask_1.png", "not of the form {case}_mask.png")


def test_a_folder_of_masks_alone_may_be_maps(folder):
    assert masks_of(find_cases([folder("a_mask.png", "b_mask.png")])) == {"a": None, "b": None}


@pytest.mark.parametrize("beside", ["predict_from_raw_data_args.json", "plans.json", "summary.json"])
def test_masks_of_nnunet_are_no_maps(folder, beside):
    """Labels 0, 1 and 2 as bytes would be probabilities of 0, 1/255 and 2/255."""
    found = find_cases([folder("a.nii.gz", "b.nii.gz", beside)])
    assert not found.cases
    assert set(failed(found)) == {"a", "b"}
    assert "--save_probabilities" in failed(found)["a"]


def test_masks_without_maps_are_reported(folder):
    found = find_cases([folder("a.npz", "a.nii.gz", "b.nii.gz")])
    assert masks_of(found) == {"a": "a.nii.gz"}
    assert failed(found) == {
        "b": "a mask without a probability map: a.nii.gz next to a.npz makes all of that ending masks. If "
        "they are maps, keep the two formats apart, or say which are meant: --pattern"
    }


def test_two_masks_of_a_case_are_reported(folder, tmp_path):
    found = find_cases([folder("a.npz", "a.nii.gz", "a.mha", "b.npz")])
    assert masks_of(found) == {"b": None}
    assert failed(found)["a"].startswith(
        f"expected one mask, got {tmp_path}/maps/a.mha, {tmp_path}/maps/a.nii.gz"
    )


def test_two_maps_of_a_case_are_reported(folder):
    maps = folder("a_prob.npy", "a_pred.npy", "b_prob.npy")
    found = find_cases([maps])
    assert set(masks_of(found)) == {"b"}
    assert failed(found)["a"] == f"expected one map of the case 'a', got {maps}/a_pred.npy, {maps}/a_prob.npy"
    assert find_cases([maps, maps / "b_prob.npy"]) == found


def test_truths_and_maps_without_each_other_are_reported(folder):
    found = find_cases([folder("a.npy", "b.npy")])
    truths = folder("b_gt.png", "c.png", inside="truths")
    judged = add_truth(found, truths)
    assert [(case.id, case.truth and case.truth.path.name) for case in judged.cases] == [
        ("a", None),
        ("b", "b_gt.png"),
    ]
    assert [case.id for case in only_with_truth(judged).cases] == ["b"]
    expected = {"a": f"expected its ground truth in {truths}, got no file of that name"}
    assert failed(only_with_truth(judged)) == failed(judged) == expected
    assert [(each.file, each.reason) for each in judged.leftovers] == [
        (str(truths / "c.png"), "ground truth without a map")
    ]


def test_masks_of_another_folder(folder):
    found = find_cases([folder("a.npy", "b.npy")])
    masked = add_masks(found, folder("a.png", "c.png", inside="masks"))
    assert masks_of(masked) == {"a": "a.png"}
    reasons = failed(masked)
    assert reasons.pop("c") == "a mask without a probability map"
    assert reasons["b"].startswith("expected its mask in")


def test_a_folder_that_does_not_exist(folder, tmp_path):
    found = find_cases([folder("a.npy")])
    for add in (add_masks, add_truth):
        with pytest.raises(PairingError, match=f"^{tmp_path}/absent: no such folder of (masks|ground truth)"):
            add(found, tmp_path / "absent")


def test_hidden_and_other_files_are_not_looked_at(folder):
    found = find_cases([folder("a.npy", ".b.npy", "._a.npy", "notes.txt", "a.pkl", "scores.csv")])
    assert masks_of(found) == {"a": None}
    assert not found.failures


def test_stores_are_files(folder, tmp_path):
    maps = folder("a.zarr/zarr.json", "b.ome.zarr/.zattrs")
    assert masks_of(find_cases([maps])) == {"a": None, "b": None}
    (case,) = find_cases([maps / "a.zarr"]).cases
    assert (case.id, case.probabilities) == ("a", ArrayRef(maps / "a.zarr"))


def test_files_are_cases_of_their_own(folder):
    maps = folder("a_prob.npy", "b.nii.gz")
    assert masks_of(find_cases([maps / "a_prob.npy", maps / "b.nii.gz"])) == {"a": None, "b": None}


def test_nothing_is_reported(folder, tmp_path):
    with pytest.raises(PairingError, match=f"^{tmp_path}/maps: expected probability maps, got none"):
        find_cases([folder("notes.txt")])
    with pytest.raises(PairingError, match=f"^{tmp_path}/absent: no such file or folder"):
        find_cases([tmp_path / "absent"])


def test_folds_are_groups(folder, tmp_path):
    folder("a.npz", "a.nii.gz", "summary.json", inside="model/fold_0/validation")
    folder("b.npz", "b.nii.gz", "summary.json", inside="model/fold_1/validation")
    folder("c.npz", inside="model")
    folder("d.npz", inside="model/fold_2")
    found = find_cases([tmp_path / "model"])
    assert {case.id: case.group for case in found.cases} == {"a": "fold_0", "b": "fold_1"}
    assert masks_of(found) == {"a": "a.nii.gz", "b": "b.nii.gz"}
    assert failed(found) == {"fold_2": "a fold without the folder 'validation': validate with --npz"}
    assert left_over(found) == ["c.npz"]


def test_manifests_are_read_and_doubles_in_them_reported(tmp_path):
    (tmp_path / "cases.csv").write_text("case,probabilities\na,x.npy\na,y.npy\nb,z.npy\n")
    found = find_cases([tmp_path / "cases.csv"])
    assert [case.id for case in found.cases] == ["b"]
    assert failed(found)["a"].startswith("expected one map of the case 'a', got")


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
    assert masks_of(find_cases(maps_folder, pattern=maps, mask_pattern=masks)) == found


def test_patterns_of_other_folders(folder):
    found = find_cases([folder("p1_map.npy")], pattern="{case}_map.npy")
    masks = folder("seg_p1.png", "seg_p2.png", "p1.png", inside="masks")
    masked = add_masks(found, masks, Pattern("seg_{case}.png"))
    assert masks_of(masked) == {"p1": "seg_p1.png"}
    assert failed(masked) == {"p2": "a mask without a probability map"}
    truths = folder("p1.reader1.png", "p1.reader2.png", inside="truths")
    judged = add_truth(found, truths, Pattern("{case}.reader1.png"))
    assert judged.cases[0].truth.path.name == "p1.reader1.png"


def test_a_stack_is_many_cases(tmp_path):
    path = tmp_path / "polyp.npz"
    maps = np.random.default_rng(0).random((3, 4, 5))
    np.savez(path, p_hat=maps, y=maps > 0.6, y_hat=maps > 0.4)
    found = find_cases([path])
    assert [case.id for case in found.cases] == ["polyp[0]", "polyp[1]", "polyp[2]"]
    second = found.cases[1]
    assert second.probabilities == ArrayRef(path, "p_hat", 1)
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
    assert find_cases([path]).cases[0].probabilities == ArrayRef(path, "p_hat")


def test_a_number_beyond_the_stack_is_reported(tmp_path):
    path = tmp_path / "polyp.npz"
    np.savez(path, p_hat=np.zeros((3, 4, 5)))
    with pytest.raises(WrongContentError, match=r"polyp\.npz::p_hat\[3\]: expected .* one of 3 cases, got 3"):
        open_volume(ArrayRef(path, "p_hat", 3))
    np.savez(path, p_hat=np.float64(0.5))
    with pytest.raises(WrongContentError, match="one of 0 cases"):
        open_volume(ArrayRef(path, "p_hat", 0))


def test_many_files():
    """Pairing 20,000 archives with their masks is linear: a quadratic one would not end."""
    paths = sorted(Path(f"case_{i:05}{ending}") for i in range(20_000) for ending in (".npz", ".nii.gz"))
    roles = assign_roles([FolderFile(path, stem_of(path)) for path in paths], {})
    assert (len(roles.maps), len(roles.masks), len(roles.truths)) == (20_000, 20_000, 0)


def test_layouts_are_told_by_the_names_of_folders(folder, tmp_path):
    folder("a.npy", inside="data/predictions")
    folder("a.png", "c.png", inside="data/labelsTs")
    folder("a_0000.png", inside="data/imagesTs")
    found = find_cases([tmp_path / "data"])
    assert [(case.id, case.mask, case.truth.path.name) for case in found.cases] == [("a", None, "a.png")]
    assert found.cases[0].image.path.name == "a_0000.png"
    assert not found.failures
    assert [Path(each.file).name for each in found.leftovers] == ["c.png"]


def test_a_folder_of_truths_that_is_named_wins_over_the_layout(folder, tmp_path):
    folder("a.npy", inside="data/predictions")
    folder("a.png", "c.png", inside="data/labels")
    found = find_cases([tmp_path / "data"], truth=folder("a.png", inside="second reader"))
    assert found.cases[0].truth == ArrayRef(tmp_path / "second reader/a.png")
    assert not found.failures


def test_names_are_put_in_front(folder):
    found = find_cases([folder("a.npz", "a.nii.gz", "b.nii.gz")]).with_prefix("site 1")
    assert [case.id for case in found.cases] == ["site 1/a"]
    assert [each.case for each in found.failures] == ["site 1/b"]


def test_folders_get_short_names(tmp_path):
    folders = [tmp_path / "a/x/maps", tmp_path / "b/x/maps", tmp_path / "b/y/maps"]
    assert short_names(folders) == ["a/x/maps", "b/x/maps", "b/y/maps"]
    assert short_names([tmp_path / "a"]) == ["a"]


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
        assert len(found.cases) == 4, found.failures


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
    masked = add_masks(found, folder("a.png", inside="masks"))
    assert masks_of(masked) == {"a": "a.png"}
    assert failed(masked)["b"].startswith("expected its mask in")


def test_a_folder_without_maps_beside_others_is_told_unless_they_may_come(tmp_path):
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    np.save(tmp_path / "full/a.npy", np.full((4, 4), 0.5))
    folders = [tmp_path / "full", tmp_path / "empty"]
    found = find_cases(folders)
    assert [case.id for case in found.cases] == ["full/a"]
    (told,) = found.failures
    assert (told.file, "expected probability maps, got none" in told.reason) == (str(folders[1]), True)
    assert find_cases(folders, may_be_empty=True).failures == ()
    assert find_cases([tmp_path / "full/a.npy", tmp_path / "full"]).failures == ()


def test_truths_beside_maps_are_not_taken_for_delivered_masks(folder):
    found = find_cases([folder("a_prob.png", "a_gt.png", "a_seg.png", "b_prob.png", "c_label.png")])
    assert masks_of(found) == {"a": None, "b": None}
    assert truths_of(found) == {"a": "a_gt.png", "b": None}
    assert not found.failures
    assert sorted(left_over(found)) == ["*_label.png", "*_seg.png"]


def test_a_case_is_told_once_and_rightly(folder):
    """A case without a mask has a map: its truth is not one without."""
    masks, truth = folder("a.png", inside="masks"), folder("a.png", "b.png", inside="truths")
    found = find_cases(folder("a.npy", "b.npy"), masks=masks, truth=truth)
    assert [each.case for each in found.failures] == ["b"]
    assert not found.leftovers
    assert "its mask" in failed(found)["b"]


def test_several_folders_with_one_folder_of_truths(folder):
    folders = [folder("a.npy", inside="first"), folder("b.npy", inside="second")]
    found = find_cases(folders, truth=folder("a.png", "b.png", "c.png", inside="truths"))
    assert {case.id: case.truth.path.name for case in found.cases} == {
        "first/a": "a.png",
        "second/b": "b.png",
    }
    assert not found.failures
    assert [Path(each.file).name for each in found.leftovers] == ["c.png"]


def test_a_pattern_of_masks_in_a_folder_of_their_own_does_not_count_beside_the_maps(folder):
    masks = folder("a.png", inside="masks")
    found = find_cases([folder("a.png")], masks=masks, mask_pattern="{case}.png")
    assert [case.probabilities.path.parent.name for case in found.cases] == ["maps"]
    assert masks_of(found) == {"a": "a.png"}


def test_files_that_say_only_what_they_hold_are_of_the_case_of_their_folder(folder):
    names = [f"{case}/{role}.nii.gz" for case in ("c0", "c1") for role in ("prob", "seg", "gt")]
    found = find_cases([folder(*names)])
    assert masks_of(found) == {"c0": None, "c1": None}
    assert {case.truth.path.parent.name for case in found.cases} == {"c0", "c1"}
    assert not found.failures
    assert left_over(found) == ["*/seg.nii.gz"] * 2


def test_equal_names_below_are_told_apart_by_their_folders(folder):
    found = find_cases(
        [folder("site 1/p3/map.npy", "site 1/p4/map.npy", "site 2/p3/map.npy")],
        truth=folder("site 1/p3/map.png", "site 2/p3/map.png", inside="truths"),
    )
    assert {case.id: case.truth and case.truth.path.parent.parent.name for case in found.cases} == {
        "site 1/p3/map": "site 1",
        "site 1/p4/map": None,
        "site 2/p3/map": "site 2",
    }


def test_folders_beside_maps_are_reported(folder, tmp_path):
    found = find_cases([folder("a.npy", "older/b.npy", "notes/read.txt")])
    assert [case.id for case in found.cases] == ["a"]
    assert not found.failures
    (leftover,) = found.leftovers
    assert leftover.pattern == "older/"
    assert leftover.reason.startswith("a folder next to maps, not searched")


def test_results_below_maps_are_no_maps(folder):
    maps = folder("a/a.npy", "evaluation/run.json", "evaluation/figures/curve.png")
    (maps / "evaluation/run.json").write_text('{"command": "evaluate"}')
    found = find_cases([maps])
    assert [case.id for case in found.cases] == ["a"]
    assert not found.failures


def test_a_folder_that_leads_to_itself_ends(folder, tmp_path):
    (folder("a/a.npy") / "again").symlink_to(tmp_path / "maps", target_is_directory=True)
    assert [case.id for case in find_cases([tmp_path / "maps"]).cases] == ["a"]


def test_cases_without_a_truth_are_told_once(folder):
    found = only_with_truth(find_cases([folder("a.npy")]))
    assert not found.cases
    assert failed(found) == {"a": "expected its ground truth, got none. Pass its folder: --truth"}
    assert only_with_truth(found) == Dataset((), found.failures)


def test_folders_of_labels_and_images_are_no_maps_at_any_depth(folder, tmp_path):
    for site in ("siteA", "siteB"):
        folder("00.npy", inside=f"data/{site}/predictions")
        folder("00.npy", "01.npy", inside=f"data/{site}/labels")
        folder("00.png", inside=f"data/{site}/images")
    found = find_cases([tmp_path / "data"])
    assert {case.id: case.truth.path.parts[-3] for case in found.cases} == {
        "siteA/00": "siteA",
        "siteB/00": "siteB",
    }
    assert not found.failures
    assert [Path(each.file).name for each in found.leftovers] == ["01.npy", "01.npy"]
    without = find_cases([tmp_path / "data"], needs_truth=False)
    assert [case.truth for case in without.cases] == [None, None]
    assert not without.failures


def test_a_pattern_does_not_make_maps_of_labels(folder, tmp_path):
    folder("00.png", inside="data/predictions")
    folder("00.png", inside="data/masks")
    (case,) = find_cases([tmp_path / "data"], pattern="{case}.png").cases
    assert (case.probabilities.path.parent.name, case.truth.path.parent.name) == ("predictions", "masks")


def test_two_folders_that_may_be_truths_are_reported(folder, tmp_path):
    for name in ("predictions", "masks", "labels"):
        folder("00.png", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"])
    assert not found.cases
    assert "data/labels/00.png" in failed(found)["00"]
    assert "data/masks/00.png" in failed(found)["00"]


def test_a_folder_of_labels_alone_holds_no_maps(folder, tmp_path):
    folder("00.png", inside="data/labels")
    with pytest.raises(PairingError, match=r"expected probability maps, got none. Not used: .*/00\.png"):
        find_cases([tmp_path / "data"])


def test_a_truth_of_another_site_is_not_taken(folder):
    maps = folder("siteA/001.npy", "siteB/002.npy")
    judged = add_truth(find_cases([maps]), folder("siteA/002.npy", "siteB/001.npy", inside="truths"))
    assert [case.truth for case in judged.cases] == [None, None]
    assert set(failed(judged)) == {"siteA/001", "siteB/002"}
    assert len(judged.leftovers) == 2


def test_no_truth_goes_unmentioned(folder):
    maps = folder("siteA/001.npy", "siteB/001.npy")
    truths = folder("siteA/001.npy", "siteB/001.npy", "siteC/001.npy", inside="truths")
    judged = add_truth(find_cases([maps]), truths)
    assert all(case.truth for case in judged.cases)
    assert not judged.failures
    assert [Path(each.file).parent.name for each in judged.leftovers] == ["siteC"]


def test_files_of_other_formats_are_reported(folder):
    found = find_cases([folder("a.npy", "b.pt", "c.npy.gz", "d.hdr", "dataset.json", "a.pkl")])
    assert [case.id for case in found.cases] == ["a"]
    assert set(failed(found)) == {"b.pt", "c.npy.gz", "d.hdr"}
    assert "expected a format that can be read" in failed(found)["b.pt"]


def test_dicom_without_an_ending_is_found_by_its_content(folder, tmp_path):
    maps = folder("IM0001", "1.2.840.7", "README", "notes.5")
    for name in ("IM0001", "1.2.840.7"):
        (maps / name).write_bytes(bytes(128) + b"DICM")
    assert sorted(case.probabilities.path.name for case in find_cases([maps]).cases) == [
        "1.2.840.7",
        "IM0001",
    ]


def test_maps_of_their_own_beside_a_summary(folder):
    assert [case.id for case in find_cases([folder("a_prob.nii.gz", "summary.json")]).cases] == ["a"]


def test_a_single_map_is_no_stack(tmp_path):
    np.savez(tmp_path / "one.npz", p_hat=np.zeros((4, 5)))
    assert [case.id for case in find_cases([tmp_path / "one.npz"]).cases] == ["one"]


def test_pickles_are_allowed_beside_other_files(folder, tmp_path):
    maps = folder("a.npy")
    with (maps / "stack.pkl").open("wb") as file:
        pickle.dump({"p_hat": [np.zeros((4, 5)), np.zeros((3, 3))]}, file)
    for paths in ([maps], [maps / "a.npy", maps / "stack.pkl"]):
        found = find_cases(paths, allow_pickle=True)
        assert sorted(case.id for case in found.cases) == ["a", "stack[0]", "stack[1]"]
    found = find_cases([maps])
    assert [case.id for case in found.cases] == ["a"]
    assert "--allow-pickle" in failed(found)["stack.pkl"]


def test_truths_are_those_of_the_same_site_also_where_sites_are_given_one_by_one(folder, tmp_path):
    folder("site_1/a1.npy", "site_1/scan_5.npy", "site_2/a2.npy", inside="pred")
    truths = folder("site_1/a1.npy", "site_2/a2.npy", "site_2/scan_5.npy", inside="lab")
    sites = [tmp_path / "pred/site_1", tmp_path / "pred/site_2"]
    for paths in (sites, sites[:1], [tmp_path / "pred"]):
        found = find_cases(paths, truth=truths)
        found_truths = {case.name: case.truth and case.truth.path.parent.name for case in found.cases}
        assert found_truths["a1"] == "site_1"
        assert found_truths["scan_5"] is None
    assert {each.case for each in find_cases(sites, truth=truths).failures} == {"site_1/scan_5"}


def test_equal_names_of_sites_that_are_given_one_by_one(folder, tmp_path):
    for site in ("site_1", "site_2"):
        folder(f"predictions/{site}/00.npy", f"labels/{site}/00.npy", inside="data")
    sites = [tmp_path / "data/predictions/site_1", tmp_path / "data/predictions/site_2"]
    found = find_cases(sites, truth=tmp_path / "data/labels")
    assert {case.id: case.truth.path.parent.name for case in found.cases} == {
        "site_1/00": "site_1",
        "site_2/00": "site_2",
    }
    assert not found.failures


def test_folders_that_are_called_otherwise_say_nothing(folder):
    truths = folder("readers/a.png", "readers/b.png", inside="truths")
    judged = add_truth(find_cases([folder("a.npy", "b.npy")]), truths)
    assert all(case.truth for case in judged.cases)


def test_images_in_the_folder_of_truths_are_none(folder):
    truths = folder("images/c0.npy", "images/c1.npy", "labels/c1.npy", inside="data")
    judged = add_truth(find_cases([folder("c0.npy", "c1.npy")]), truths)
    assert {case.id: case.truth and case.truth.path.parent.name for case in judged.cases} == {
        "c0": None,
        "c1": "labels",
    }


def test_cases_without_a_mask_are_told_under_their_whole_names(folder):
    folders = [folder("scan_3.npy", inside=site) for site in ("s1", "s2")]
    found = find_cases(folders, masks=folder("other.png", inside="masks"))
    assert {each.case for each in found.failures} == {"s1/scan_3", "s2/scan_3", "other"}


def test_rows_of_a_manifest_that_differ_in_their_truth_alone_are_doubles(tmp_path):
    rows = "a,m.npy,t0.npy\na,m.npy,t1.npy\nb,n.npy,t.npy\nb,n.npy,t.npy\n"
    (tmp_path / "cases.csv").write_text(f"case,probabilities,Truth\n{rows}")
    found = find_cases([tmp_path / "cases.csv"])
    assert [(case.id, case.truth.path.name) for case in found.cases] == [("b", "t.npy")]
    assert set(failed(found)) == {"a"}


def test_one_archive_makes_no_masks_of_other_maps(folder):
    found = find_cases([folder("c0.npy", "c1.npy", "c2_seg.npy", "c3.npz")])
    assert set(masks_of(found)) == {"c0", "c1", "c3"}
    assert not found.failures
    assert [Path(each.file).name for each in found.leftovers] == ["c2_seg.npy"]


@pytest.mark.parametrize("role", ["mask", "truth", "image"])
def test_a_pattern_that_nothing_fits_is_reported(folder, role):
    found = find_cases(folder("a_prob.npy", "a_seg.npy"), **{f"{role}_pattern": "{case}_final.npy"})
    assert "of this pattern, got none that fits" in failed(found)["{case}_final.npy"]


def test_a_folder_that_is_named_for_masks_holds_no_truths(folder, tmp_path):
    for name in ("predictions", "labels", "masks"):
        folder("c0.npy", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"], masks=tmp_path / "data/masks")
    (case,) = found.cases
    assert (case.mask.path.parent.name, case.truth.path.parent.name) == ("masks", "labels")
    assert not found.failures


def test_the_image_in_the_folder_of_a_case_is_no_map(folder):
    found = find_cases([folder("case_0/prob.npy", "case_0/image.npy", "case_0/gt.npy")])
    assert [(case.id, case.truth.path.name) for case in found.cases] == [("case_0", "gt.npy")]


def test_doubles_of_several_sets_are_reported(folder):
    one, two = (find_cases([folder("a.npy", inside=name)]) for name in ("x", "y"))
    found = without_duplicates(one + two)
    assert not found.cases
    assert set(failed(found)) == {"a"}


def test_folders_that_say_nothing_beside_one_of_maps_are_reported(folder, tmp_path):
    for name in ("predictions", "labels", "segmentations", "second reader"):
        folder("c0.png", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"])
    (case,) = found.cases
    assert (case.probabilities.path.parent.name, case.truth.path.parent.name) == ("predictions", "labels")
    assert case.mask is None
    assert {Path(each.file).parent.name for each in found.leftovers} == {"segmentations", "second reader"}
    assert f"--mask-dir {tmp_path}/data/segmentations" in found.notes[0]


def test_files_that_say_nothing_beside_maps_are_told_and_images_left_out(folder):
    found = find_cases([folder("c0_prob.png", "c0_image.png", "c0_t1.png", "c0_gt.png")])
    assert [case.id for case in found.cases] == ["c0"]
    assert (left_over(found), found.cases[0].image.path.name) == (["*_t1.png"], "c0_image.png")


def test_archives_that_say_what_they_are(folder):
    (case,) = find_cases([folder("c0_prob.npz", "c0_mask.npz", "c0_gt.npz")]).cases
    assert (case.mask, case.truth.path.name) == (None, "c0_gt.npz")


def test_two_sites_do_not_share_a_mask(folder):
    maps = folder("siteA/c0.npy", "siteB/c0.npy", "siteB/c1.npy")
    masks = folder("c0.npy", "c1.npy", inside="masks")
    found = find_cases([maps], masks=masks)
    assert masks_of(found) == {"siteB/c1": "c1.npy"}
    assert "expected a mask of its own" in failed(found)["siteA/c0"]


def test_two_models_may_share_their_truths(folder):
    folders = [folder("c0.npy", inside=name) for name in ("model 1", "model 2")]
    found = find_cases(folders, truth=folder("c0.npy", inside="truths"))
    assert {case.id: case.truth.path.name for case in found.cases} == {
        "model 1/c0": "c0.npy",
        "model 2/c0": "c0.npy",
    }


def test_folders_beside_maps_are_told_at_any_depth(folder):
    found = find_cases([folder("a.npy", "site2/maps/b.npy", "site4/x.pt", "site3/c.npy", "site3/run.json")])
    assert left_over(found) == ["site2/", "site3/", "site4/"]


def test_a_folder_of_truths_below_the_maps_is_not_failed(folder, tmp_path):
    maps = folder("a.npy", "labels/a.npy")
    found = find_cases([maps], truth=maps / "labels")
    assert found.cases[0].truth.path == maps / "labels/a.npy"
    assert not found.failures


def test_maps_and_truths_in_one_folder_that_is_named_twice(folder):
    maps = folder("a_prob.npy", "a_gt.npy")
    found = find_cases([maps], truth=maps, truth_pattern="{case}_gt.npy")
    assert found.cases[0].truth.path.name == "a_gt.npy"


def test_one_fold_of_nnunet(folder, tmp_path):
    folder("progress.png", "debug.json", inside="model/fold_3")
    folder("a.npz", "a.nii.gz", inside="model/fold_3/validation")
    for path in (tmp_path / "model/fold_3", tmp_path / "model"):
        found = find_cases([path])
        assert [(case.id, case.group) for case in found.cases] == [("a", "fold_3")]
        assert not found.failures


@pytest.mark.parametrize("name", ["y", "y_hat"])
def test_a_stack_of_unequal_lengths_is_reported(tmp_path, name):
    np.savez(tmp_path / "s.npz", **{"p_hat": np.zeros((3, 1, 4, 5)), name: np.zeros((4, 1, 4, 5))})
    found = find_cases([tmp_path / "s.npz"])
    assert not found.cases
    assert failed(found) == {"s": f"expected as many in {name!r} as in 'p_hat', 3, got 4"}


PATTERNS = {
    "pattern": "{case}_prob.npy",
    "mask_pattern": "{case}_seg.npy",
    "truth_pattern": "{case}_gt.npy",
}


def test_output_of_nnunet_has_its_masks():
    whole = find_cases([NNUNET / "plain/predictions"]).cases
    assert all(case.mask is not None for case in whole)
    assert find_cases([case.probabilities.path for case in whole]).cases == whole


@pytest.mark.parametrize("search", [{}, PATTERNS])
def test_masks_and_truths_by_names_and_by_patterns(folder, search):
    place = folder("a_prob.npy", "a_seg.npy", "a_gt.npy", "b_prob.npy")
    whole = find_cases([place], **search).cases
    for case in whole:
        alone = find_cases([case.probabilities.path], **search)
        assert (alone.cases, alone.failures) == ((case,), ())
    assert [bool(case.mask) for case in whole] == [bool(search), False]
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


def test_patterns_that_no_file_fits_are_reported(folder):
    place = folder("a_prob.npy", "a_seg.npy", "b_prob.npy")
    search = {"pattern": "{case}_prob.npy", "mask_pattern": "{case}_typo.npy"}
    alone = find_cases(sorted(place.glob("*_prob.npy")), **search)
    assert [each.reason for each in alone.failures] == [
        "expected mask files of this pattern, got none that fits"
    ]
    assert alone.failures == find_cases([place], **search).failures


def test_what_is_named_as_a_map_is_one_whatever_lies_beside_it(folder):
    (case,) = find_cases([folder("a.npz", "a.nii.gz") / "a.nii.gz"]).cases
    assert (case.probabilities.path.name, case.mask) == ("a.nii.gz", None)


def test_masks_in_a_folder_of_their_own_win(folder):
    place = folder("a.npz", "a.nii.gz")
    masks = folder("a.nii.gz", inside="masks")
    (case,) = find_cases([place / "a.npz"], masks=masks).cases
    assert case.mask.path.parent == masks


# Images.


def image_case(tmp_path, name, **more):
    return CaseFiles(name, ArrayRef(tmp_path / f"{name}.npy"), **more)


def images_of(found):
    return {each.id: each.image and each.image.path.name for each in found.cases}


def test_names_of_images(folder, tmp_path):
    images = folder("a.png", "b_0000.nii.gz", "b_0001.nii.gz", "c_image.jpg", "e.txt", inside="images")
    found = add_files(Dataset(tuple(image_case(tmp_path, name) for name in "abcde")), "image", images)
    expected = {"a": "a.png", "b": "b_0000.nii.gz", "c": "c_image.jpg", "d": None, "e": None}
    assert images_of(found) == expected


def test_folders_tell_images_of_one_name_apart(folder, tmp_path):
    images = folder("x/a.png", "y/a.png", inside="images")
    cases = (
        image_case(tmp_path, "a", folder="x"),
        image_case(tmp_path, "a", folder="y"),
        image_case(tmp_path, "a"),
    )
    found = add_files(Dataset(cases), "image", images)
    assert [each.image and each.image.path.parent.name for each in found.cases] == ["x", "y", None]


def test_an_image_that_is_known_stays(folder, tmp_path):
    images = folder("a.png", inside="images")
    known = ArrayRef(tmp_path / "other.png")
    found = add_files(Dataset((image_case(tmp_path, "a", image=known),)), "image", images)
    assert found.cases[0].image == known


def test_no_folder_of_images(tmp_path):
    with pytest.raises(PairingError, match="no such folder of images"):
        add_files(Dataset(), "image", tmp_path / "nowhere")


def test_a_folder_of_labels_comes_before_files_called_mask(folder, tmp_path):
    folder("predictions/a-pred.png", "predictions/a-mask.png", "labels/a.png", inside="data")
    found = find_cases(tmp_path / "data", needs_truth=True)
    assert truths_of(found) == {"a": "a.png"}
    assert left_over(found) == ["predictions/*-mask.png"]


def test_folders_next_to_that_of_the_maps_are_proposed(folder, tmp_path):
    folder("predictions/a.png", "masks/a.png", "images/a.png", inside="my data")
    maps = tmp_path / "my data/predictions"
    assert find_cases(maps).notes == (
        f"Images? Add --image-dir '{tmp_path}/my data/images'.",
        f"Ground truth? Add --truth '{tmp_path}/my data/masks'.",
    )
    assert len(find_cases(maps, needs_truth=False).notes) == 1
    assert find_cases(maps, truth=tmp_path / "my data/masks", images=tmp_path / "my data/images").notes == ()


# What is printed.


def test_the_summary_says_what_was_paired(folder):
    maps = folder(
        "a-pred.png", "b-pred.png", "a-mask.png", "b-mask.png", "a-img.png", "a-pred_aid.png", "c-mask.png"
    )
    found = find_cases(str(maps), needs_truth=True)
    assert found.summary() == (
        "2 maps (`*-pred.png`), ground truth 2 (`*-mask.png`), images 1 of 2 (`*-img.png`), "
        "delivered masks none; left over: 1 `*-mask.png` (ground truth without a map), 1 `*-pred_aid.png`\n"
        "`*-mask.png` was taken for ground truth, because of its name. If these are masks of the model, add "
        "--mask-pattern '{case}-mask.png' and the ground truth: --truth or --truth-pattern."
    )
    assert str(found) == found.summary()
    assert find_cases(maps, needs_truth=False).notes == (
        "`*-mask.png` is not used. Delivered masks? Add --mask-pattern '{case}-mask.png'.",
    )


def test_several_folders_have_a_line_each_and_failures_follow(folder, tmp_path):
    folders = [folder("0.npy", "1.npy", inside=f"maps/{name}") for name in ("x", "y<b>")]
    found = find_cases(folders, truth=folder("x/0.png", "x/1.png", "y<b>/0.png", "z/0.png", inside="gt"))
    assert str(found).splitlines() == [
        "x: 2 maps (`*.npy`), ground truth 2 (`x/*.png`), images none, delivered masks none",
        "y<b>: 2 maps (`*.npy`), ground truth 1 of 2 (`y<b>/*.png`), images none, delivered masks none",
        "left over: 1 `z/*.png` (ground truth without a map)",
        "1 failure:",
        f"  y<b>/1: expected its ground truth in {tmp_path}/gt, got no file of that name",
    ]
    assert "y&lt;b&gt;: 2 maps" in found._repr_html_()


def test_files_that_are_used_are_not_left_over(folder):
    maps = folder("a_prob.npy", "a_gt.npy", "a_seg.npy")
    patterns = {"truth_pattern": "{case}_gt.npy", "mask_pattern": "{case}_seg.npy"}
    found = find_cases(maps, truth=maps, masks=maps, **patterns)
    assert (masks_of(found), truths_of(found)) == ({"a": "a_seg.npy"}, {"a": "a_gt.npy"})
    assert (found.leftovers, found.notes) == ((), ())


def test_a_pattern_that_would_be_ignored_is_an_error(folder, tmp_path):
    (tmp_path / "cases.csv").write_text("case,probabilities\na,x.npy\n")
    with pytest.raises(ParameterError, match=r"^truth-pattern: expected with folders of files only"):
        find_cases(tmp_path / "cases.csv", truth_pattern="{case}.png")


def test_a_pattern_may_hold_the_sign_of_names(folder):
    found = find_cases(folder("fold=1_a.npy", "fold=1_b.npy"), pattern="fold=1_{case}.npy")
    assert [case.id for case in found.cases] == ["a", "b"]


def test_formats_that_are_not_read_are_left_over_in_a_folder_of_ground_truth(folder):
    found = find_cases(folder("a.npy"), truth=folder("a.png", "b.gif", inside="gt"))
    assert not found.failures
    assert [(Path(each.file).name, each.reason) for each in found.leftovers] == [
        ("b.gif", "a format that is not read")
    ]


def test_prefixes_and_sums(folder):
    one = find_cases(folder("a.npz", "a.nii.gz", "b.nii.gz"))
    both = one.with_prefix("x") + one.with_prefix("y")
    assert [case.id for case in both.cases] == ["x/a", "y/a"]
    assert list(failed(both)) == ["x/b", "y/b"]
    assert one.with_prefix("") is one


NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["a", "b", "c d"]),
    st.sampled_from(
        ["", "_prob", "-pred", "_mask", "_mask_1", "_seg", "_gt", "-img", "_image", "_heat", "-pred_aid"]
    ),
    st.sampled_from([".npy", ".npz", ".png", ".nii.gz", ".pt"]),
)


@given(st.sets(NAMES, min_size=1, max_size=12), st.sampled_from([None, True, False]))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_file_is_used_left_over_or_a_failure(tmp_path_factory, names, needs_truth):
    folder = tmp_path_factory.mktemp("maps")
    for name in names:
        (folder / name).touch()
    try:
        found = find_cases(folder, needs_truth=needs_truth)
    except PairingError:
        return
    used = {
        ref.path.name
        for case in found.cases
        for ref in (*case.maps, case.mask, case.truth, case.image)
        if ref
    }
    left = {Path(leftover.file).name for leftover in found.leftovers}
    reasons = " ".join(f"{failure.file} {failure.reason}" for failure in found.failures)
    assert not used & left
    gone = [failure.case for failure in found.failures]
    for name in names - used - left:
        assert name in reasons or any(name.startswith(case) for case in gone), (name, found)
    for case in found.cases:
        assert case.mask is None or case.probabilities.path.suffix == ".npz", case
    alone = (
        find_cases([case.probabilities.path for case in found.cases], needs_truth=needs_truth)
        if found.cases
        else found
    )
    assert {(case.id, case.mask, case.truth) for case in alone.cases} == {
        (case.id, case.mask, case.truth) for case in found.cases
    }


# Options and folders that do not mean what they seem to.


def two_sites(folder):
    """Maps, and ground truth of the same names, of two sites."""
    gts = [folder("0.png", "1.png", inside=f"gts/{name}") for name in ("site1", "site2")]
    return [folder("0.png", "1.png", inside=f"preds/{name}") for name in ("site1", "site2")], gts


@pytest.mark.parametrize("option", ["truth", "masks", "images", "members"])
def test_a_folder_named_like_one_of_several_is_not_used_for_all(folder, option):
    maps, gts = two_sites(folder)
    with pytest.raises(ParameterError) as told:
        find_cases(maps, **{option: gts[0]})
    name = {"truth": "truth", "masks": "mask-dir", "images": "image-dir", "members": "member"}[option]
    assert str(told.value) == (
        f"{name}: {gts[0]} is named like {maps[0]}, but would be used for {maps[1]}. "
        f"Assign each folder: --{name} site1={gts[0]} --{name} site2=DIR"
    )
    assert find_cases(maps[0], **{option: gts[1]}).cases, "a single folder of maps leaves no doubt"


def test_an_order_that_contradicts_a_name_is_an_error(folder):
    maps, gts = two_sites(folder)
    other = folder("0.png", "1.png", inside="gts_other")
    with pytest.raises(ParameterError, match=r"gts/site2 is named like .*preds/site2, but .* for .*site1\."):
        find_cases(maps, truth=[gts[1], other])
    for truth in ([other, gts[1]], [gts[0], other], {"site1": gts[1], "site2": other}):
        assert not find_cases(maps, truth=truth).failures


def test_the_ground_truth_of_a_study_is_not_that_of_one_of_its_models(folder):
    maps = [folder("0.png", inside=f"study/{name}") for name in ("preds", "preds_2")]
    found = find_cases(maps, truth=folder("0.png", inside="study/gt"))
    assert len(found.cases) == 2
    assert found.notes == (
        "2 maps share 1 file of ground truth. Are these several models? Evaluate them one at a time.",
    )


@pytest.mark.parametrize("way", ["folder", "link", "one of two"])
def test_the_folder_of_maps_is_no_ground_truth(folder, tmp_path, way):
    maps, _ = two_sites(folder)
    (tmp_path / "link").symlink_to(maps[0], target_is_directory=True)
    paths, truth = {
        "folder": (maps[0], maps[0]),
        "link": (maps[0], tmp_path / "link"),
        "one of two": (maps, {"site1": maps[1]}),
    }[way]
    with pytest.raises(
        ParameterError, match=r"0.png is one of the maps: the folder of maps was given as ground"
    ):
        find_cases(paths, truth=truth)


@pytest.mark.parametrize(
    "option", ["truth", "masks", "images", "members", "pattern", "truth_pattern", "mask_pattern"]
)
@pytest.mark.parametrize("value", [[], {}, "", ["a", ""]])
def test_an_empty_option_is_an_error(folder, option, value):
    with pytest.raises(ParameterError, match=r": expected a (folder|pattern), got none\.$"):
        find_cases(folder("a.png"), **{option: value})


def test_a_pattern_that_a_file_does_not_fit_is_not_ignored(folder):
    maps = folder("c0-pred.png", "c1-pred.png", "c0-pred_aid.png")
    with pytest.raises(PairingError, match=r"expected probability maps called '\{case\}-zzz.png', got none"):
        find_cases(maps / "c0-pred.png", pattern="{case}-zzz.png")
    found = find_cases(sorted(maps.iterdir()), pattern="{case}-pred.png")
    assert [case.id for case in found.cases] == ["c0", "c1"]
    assert [(each.pattern, each.reason) for each in found.leftovers] == [
        ("c0-pred_aid.png", "its name does not fit {case}-pred.png")
    ]


@pytest.mark.parametrize("option", ["truth_pattern", "mask_pattern", "image_pattern"])
@pytest.mark.parametrize("inside", [None, "other"])
def test_a_wrong_pattern_is_named(folder, option, inside):
    name = option.partition("_")[0]
    others = (
        {} if inside is None else {"truth" if name == "truth" else f"{name}s": folder("a.png", inside=inside)}
    )
    with pytest.raises(ParameterError, match=rf"^{name}-pattern: expected \{{case\}} exactly once"):
        find_cases(folder("a.png"), **{option: "a.png"}, **others)


# What is said of ground truth that was not found.


def test_a_pattern_that_fits_no_ground_truth_is_the_reason(folder):
    maps = folder(*(f"{number}.png" for number in range(20)))
    gts = folder(*(f"{number}.png" for number in range(20)), inside="masks")
    found = find_cases(maps, truth=gts, truth_pattern="{case}_gt.png")
    (reason,) = set(failed(found).values())
    assert reason == f"no file in {gts} fits {{case}}_gt.png; the folder has files such as 0.png"
    assert found.notes == ("`0.png` and `0.png` seem to belong together. Add --truth-pattern '{case}.png'.",)


def test_ground_truth_in_a_format_that_is_not_read_is_named(folder):
    gts = folder("a.gif", "b.png", "c.png", inside="gt")
    found = find_cases(folder("a.png", "b.png", "c.png"), truth=gts)
    reason = f"expected its ground truth in {gts}, got a.gif: .gif is not read. Convert it to PNG or NIfTI"
    assert failed(found) == {"a": reason}
    alone = folder("1_manual.gif", inside="manual")
    assert failed(find_cases(folder("a.png"), truth=alone))["a"].endswith(
        "the folder has files such as 1_manual.gif (convert them to PNG or NIfTI: .gif is not read)"
    )


@pytest.mark.parametrize("place", ["masks", "labels"])
def test_a_case_without_ground_truth_in_a_folder_that_is_in_use(folder, tmp_path, place):
    folder("0.png", "1.png", inside="data/predictions")
    gts = folder("0.png", inside=f"data/{place}")
    found = only_with_truth(find_cases(tmp_path / "data", needs_truth=True))
    assert failed(found) == {
        "1": f"expected its ground truth in {gts}, where 0.png is, got no file of its name"
    }


def test_an_image_without_a_map_is_called_so(folder):
    found = find_cases(folder("a-pred.png", "a-img.png", "b-img.png"))
    assert [(each.pattern, each.reason) for each in found.leftovers] == [("*-img.png", "image without a map")]
    found = find_cases(folder("a-pred.png", "a-img.png", "a_image.png", inside="two"))
    assert {each.reason for each in found.leftovers} == {"not the only image of one case"}


@pytest.mark.parametrize(
    ("maps", "truths", "options"),
    [
        ("pred_{}.png", "mask_{}.png", "--pattern 'pred_{case}.png' --truth-pattern 'mask_{case}.png'"),
        ("{}.png", "{}_manual1.png", "--truth-pattern '{case}_manual1.png'"),
        ("c{}_prob.png", "gt of c{}.tif", "--truth-pattern 'gt of {case}.tif'"),
        ("case {}.png", "{}.png", "--pattern 'case {case}.png' --truth-pattern '{case}.png'"),
    ],
)
@pytest.mark.parametrize("way", ["given", "next to the maps"])
def test_patterns_are_proposed_and_work(folder, tmp_path, maps, truths, options, way):
    import shlex

    folder(*(maps.format(number) for number in range(12)), inside="data/maps")
    gts = folder(*(truths.format(number) for number in range(12)), "other.png", inside="data/gt")
    paths, more = (tmp_path / "data/maps", {"truth": gts}) if way == "given" else (tmp_path / "data", {})
    found = find_cases(paths, **more)
    example = f"`{maps.format(0)}` and `{truths.format(0)}` seem to belong together."
    assert found.notes == (f"{example} Add {options}.",)
    words = [word.removeprefix("--").replace("-", "_") for word in shlex.split(options)]
    words[1::2] = shlex.split(options)[1::2]
    paired = find_cases(paths, **more, **dict(zip(words[::2], words[1::2], strict=True)))
    numbers = [(case.probabilities.path.name, case.truth.path.name) for case in paired.cases]
    assert sorted(numbers) == sorted((maps.format(n), truths.format(n)) for n in range(12))
    assert paired.notes == ()


@pytest.mark.parametrize(
    ("maps", "truths"),
    [
        (["pred_0.png", "pred_1.png"], ["0_manual1.png", "1_manual1.png", "0_manual2.png", "1_manual2.png"]),
        (["pred_0.png", "pred_1.png"], ["mask_0.png", "mask_7.png"]),
        (["pred_0.png"], ["mask_0.png"]),
    ],
)
def test_no_patterns_are_proposed_if_it_is_not_clear(folder, maps, truths):
    assert find_cases(folder(*maps), truth=folder(*truths, inside="gt")).notes == ()


def test_two_models_in_one_folder_are_noticed(folder, tmp_path):
    for name in ("unet", "pranet"):
        folder("0.png", "1.png", "2.png", inside=f"data/{name}")
    folder("0.png", "1.png", "2.png", inside="data/masks")
    assert find_cases(tmp_path / "data", needs_truth=True).summary().splitlines() == [
        "pranet: 3 maps (`*.png`), ground truth 3 (`masks/*.png`), images none, delivered masks none",
        "unet: 3 maps (`*.png`), ground truth 3 (`masks/*.png`), images none, delivered masks none",
        "6 maps share 3 files of ground truth. Are these several models? Evaluate them one at a time.",
    ]


def test_a_pattern_of_ground_truth_that_is_not_looked_for_is_an_error(folder):
    with pytest.raises(ParameterError, match="truth-pattern: ground truth is not looked for here"):
        find_cases([folder("a-pred.png", "a-mask.png")], truth_pattern="{case}-mask.png", needs_truth=False)
