"""Which files belong together, and what is told of those that do not."""

import pickle

import numpy as np
import pytest

from segtrust.errors import PairingError, UnsafeFileError, WrongContentError
from segtrust.io.cases import DataSet
from segtrust.io.datasets import Search, _told_apart, different_names, find_cases
from segtrust.io.folders import FolderFile
from segtrust.io.names import Pattern
from segtrust.io.pairing import only_with_truth, with_masks, with_truths
from segtrust.io.places import Place
from segtrust.io.readers import open_volume


@pytest.fixture
def folder(tmp_path):
    """Make files, whose content does not matter, and give their folder."""

    def made(*names, inside="maps"):
        for name in names:
            path = tmp_path / inside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path / inside

    return made


def masks_of(found):
    return {case.id: case.mask and case.mask.path.name for case in found.cases}


def told(found):
    return {each.case: each.reason for each in found.unpaired}


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
    assert reason.endswith("Say which: --truth, or a manifest")


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
    assert told(found) == {"b": "a mask without a probability map"}


def test_two_masks_of_a_case_are_told(folder, tmp_path):
    found = find_cases([folder("a.npz", "a.nii.gz", "a.mha", "b.npz")])
    assert masks_of(found) == {"b": None}
    assert told(found)["a"].startswith(
        f"expected one mask, got {tmp_path}/maps/a.mha, {tmp_path}/maps/a.nii.gz"
    )


def test_two_maps_of_a_case_are_told(folder):
    maps = folder("a_prob.npy", "a_pred.npy", "b.npy")
    found = find_cases([maps])
    assert set(masks_of(found)) == {"b"}
    assert told(found)["a"] == f"expected one map of the case 'a', got {maps}/a_pred.npy, {maps}/a_prob.npy"
    assert find_cases([maps, maps / "b.npy"]) == found


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
    maps, masks, truths = _told_apart([FolderFile(path, "", path) for path in paths], Search())
    assert (len(maps), len(masks), len(truths)) == (20_000, 20_000, 0)


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
    found = find_cases([folder("a.npz", "b.nii.gz")]).below("site 1")
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


def test_truths_beside_maps_are_not_taken_for_delivered_masks(folder):
    found = find_cases([folder("a_prob.png", "a_gt.png", "a_seg.png", "b_prob.png", "c_label.png")])
    assert masks_of(found) == {"a": "a_seg.png", "b": None}
    assert {case.id: case.truth and case.truth.path.name for case in found.cases} == {
        "a": "a_gt.png",
        "b": None,
    }
    assert told(found) == {"c": "a truth without a probability map"}


def test_a_case_is_told_once_and_rightly(folder):
    """A case without a mask has a map: its truth is not one without."""
    search = Search(
        mask_folder=folder("a.png", inside="masks"), truth_folder=folder("a.png", "b.png", inside="truths")
    )
    found = find_cases([folder("a.npy", "b.npy")], search)
    assert [each.case for each in found.unpaired] == ["b"]
    assert "its mask" in told(found)["b"]


def test_several_folders_with_one_folder_of_truths(folder):
    folders = [folder("a.npy", inside="first"), folder("b.npy", inside="second")]
    found = find_cases(folders, Search(truth_folder=folder("a.png", "b.png", "c.png", inside="truths")))
    assert {case.id: case.truth.path.name for case in found.cases} == {
        "first/a": "a.png",
        "second/b": "b.png",
    }
    assert told(found) == {"c": "a truth without a probability map"}


def test_a_pattern_of_masks_in_a_folder_of_their_own_does_not_count_beside_the_maps(folder):
    search = Search(masks=Pattern("{case}.png"), mask_folder=folder("a.png", inside="masks"))
    found = find_cases([folder("a.png")], search)
    assert [case.probabilities.path.parent.name for case in found.cases] == ["maps"]
    assert masks_of(found) == {"a": "a.png"}


def test_files_that_say_only_what_they_hold_are_of_the_case_of_their_folder(folder):
    names = [f"{case}/{role}.nii.gz" for case in ("c0", "c1") for role in ("prob", "seg", "gt")]
    found = find_cases([folder(*names)])
    assert masks_of(found) == {"c0": "seg.nii.gz", "c1": "seg.nii.gz"}
    assert {case.truth.path.parent.name for case in found.cases} == {"c0", "c1"}
    assert not found.unpaired


def test_equal_names_below_are_told_apart_by_their_folders(folder):
    found = find_cases(
        [folder("site 1/p3/map.npy", "site 1/p4/map.npy", "site 2/p3/map.npy")],
        Search(truth_folder=folder("site 1/p3/map.png", "site 2/p3/map.png", inside="truths")),
    )
    assert {case.id: case.truth and case.truth.path.parent.parent.name for case in found.cases} == {
        "site 1/p3/map": "site 1",
        "site 1/p4/map": None,
        "site 2/p3/map": "site 2",
    }


def test_folders_beside_maps_are_told(folder, tmp_path):
    found = find_cases([folder("a.npy", "older/b.npy", "notes/read.txt")])
    assert [case.id for case in found.cases] == ["a"]
    assert told(found)["older"].startswith("a folder beside maps, which was not looked into")


def test_results_below_maps_are_no_maps(folder):
    found = find_cases([folder("a/a.npy", "evaluation/run.json", "evaluation/figures/curve.png")])
    assert [case.id for case in found.cases] == ["a"]
    assert not found.unpaired


def test_a_folder_that_leads_to_itself_ends(folder, tmp_path):
    (folder("a/a.npy") / "again").symlink_to(tmp_path / "maps", target_is_directory=True)
    assert [case.id for case in find_cases([tmp_path / "maps"]).cases] == ["a"]


def test_cases_without_a_truth_are_told_once(folder):
    found = only_with_truth(find_cases([folder("a.npy")]))
    assert not found.cases
    assert told(found) == {"a": "expected its truth, got none. Give their folder: --truth"}
    assert only_with_truth(found) == DataSet((), found.unpaired)


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
    assert set(told(found)) == {"siteA/01", "siteB/01"}
    without = find_cases([tmp_path / "data"], Search(with_truths=False))
    assert [case.truth for case in without.cases] == [None, None]
    assert not without.unpaired


def test_a_pattern_does_not_make_maps_of_labels(folder, tmp_path):
    folder("00.png", inside="data/predictions")
    folder("00.png", inside="data/masks")
    (case,) = find_cases([tmp_path / "data"], Search(Pattern("{case}.png"))).cases
    assert (case.probabilities.path.parent.name, case.truth.path.parent.name) == ("predictions", "masks")


def test_two_folders_that_may_be_truths_are_told(folder, tmp_path):
    for name in ("predictions", "masks", "labels"):
        folder("00.png", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"])
    assert not found.cases
    assert "data/labels/00.png" in told(found)["00"]
    assert "data/masks/00.png" in told(found)["00"]


def test_a_folder_of_labels_alone_holds_no_maps(folder, tmp_path):
    folder("00.png", inside="data/labels")
    found = find_cases([tmp_path / "data"])
    assert not found.cases
    assert told(found) == {"00": "a truth without a probability map"}


def test_a_truth_of_another_site_is_not_taken(folder):
    maps = folder("siteA/001.npy", "siteB/002.npy")
    judged = with_truths(find_cases([maps]), folder("siteA/002.npy", "siteB/001.npy", inside="truths"))
    assert [case.truth for case in judged.cases] == [None, None]
    assert set(told(judged)) == {"siteA/001", "siteB/002", "siteA/002", "siteB/001"}


def test_no_truth_goes_unmentioned(folder):
    maps = folder("siteA/001.npy", "siteB/001.npy")
    truths = folder("siteA/001.npy", "siteB/001.npy", "siteC/001.npy", inside="truths")
    judged = with_truths(find_cases([maps]), truths)
    assert all(case.truth for case in judged.cases)
    assert told(judged) == {"siteC/001": "a truth without a probability map"}


def test_files_of_other_formats_are_told(folder):
    found = find_cases([folder("a.npy", "b.pt", "c.npy.gz", "d.hdr", "dataset.json", "a.pkl")])
    assert [case.id for case in found.cases] == ["a"]
    assert set(told(found)) == {"b.pt", "c.npy.gz", "d.hdr"}
    assert "expected a format that can be read" in told(found)["b.pt"]


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
    allowed = Search(allow_pickle=True)
    for paths in ([maps], [maps / "a.npy", maps / "stack.pkl"]):
        assert [case.id for case in find_cases(paths, allowed).cases] == ["a", "stack[0]", "stack[1]"]
    assert [case.id for case in find_cases([maps]).cases] == ["a"]
