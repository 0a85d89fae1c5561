"""Which masks and truths are found for which maps, by folders and names."""

import pickle

import numpy as np
import pytest

from segtrust.io.cases import DataSet
from segtrust.io.datasets import find_cases, without_doubles
from segtrust.io.names import Pattern
from segtrust.io.pairing import only_with_truth, with_truths
from segtrust.io.search import Search
from tests.io.data_sets import masks_of, told


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
    maps = folder("a/a.npy", "evaluation/run.json", "evaluation/figures/curve.png")
    (maps / "evaluation/run.json").write_text('{"command": "evaluate"}')
    found = find_cases([maps])
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
    found = find_cases([maps])
    assert [case.id for case in found.cases] == ["a"]
    assert "--allow-pickle" in told(found)["stack.pkl"]


def test_truths_are_those_of_the_same_site_also_where_sites_are_given_one_by_one(folder, tmp_path):
    folder("site_1/a1.npy", "site_1/scan_5.npy", "site_2/a2.npy", inside="pred")
    truths = folder("site_1/a1.npy", "site_2/a2.npy", "site_2/scan_5.npy", inside="lab")
    sites = [tmp_path / "pred/site_1", tmp_path / "pred/site_2"]
    for paths in (sites, sites[:1], [tmp_path / "pred"]):
        found = find_cases(paths, Search(truth_folder=truths))
        found_truths = {case.name: case.truth and case.truth.path.parent.name for case in found.cases}
        assert found_truths["a1"] == "site_1"
        assert found_truths["scan_5"] is None
    assert {each.case for each in find_cases(sites, Search(truth_folder=truths)).unpaired} == {
        "site_1/scan_5",
        "site_2/scan_5",
    }


def test_equal_names_of_sites_that_are_given_one_by_one(folder, tmp_path):
    for site in ("site_1", "site_2"):
        folder(f"predictions/{site}/00.npy", f"labels/{site}/00.npy", inside="data")
    sites = [tmp_path / "data/predictions/site_1", tmp_path / "data/predictions/site_2"]
    found = find_cases(sites, Search(truth_folder=tmp_path / "data/labels"))
    assert {case.id: case.truth.path.parent.name for case in found.cases} == {
        "site_1/00": "site_1",
        "site_2/00": "site_2",
    }
    assert not found.unpaired


def test_folders_that_are_called_otherwise_say_nothing(folder):
    truths = folder("readers/a.png", "readers/b.png", inside="truths")
    judged = with_truths(find_cases([folder("a.npy", "b.npy")]), truths)
    assert all(case.truth for case in judged.cases)


def test_images_in_the_folder_of_truths_are_none(folder):
    truths = folder("images/c0.npy", "images/c1.npy", "labels/c1.npy", inside="data")
    judged = with_truths(find_cases([folder("c0.npy", "c1.npy")]), truths)
    assert {case.id: case.truth and case.truth.path.parent.name for case in judged.cases} == {
        "c0": None,
        "c1": "labels",
    }


def test_cases_without_a_mask_are_told_under_their_whole_names(folder):
    folders = [folder("scan_3.npy", inside=site) for site in ("s1", "s2")]
    found = find_cases(folders, Search(mask_folder=folder("other.png", inside="masks")))
    assert {each.case for each in found.unpaired} == {"s1/scan_3", "s2/scan_3", "other"}


def test_rows_of_a_manifest_that_differ_in_their_truth_alone_are_doubles(tmp_path):
    rows = "a,m.npy,t0.npy\na,m.npy,t1.npy\nb,n.npy,t.npy\nb,n.npy,t.npy\n"
    (tmp_path / "cases.csv").write_text(f"case,probabilities,Truth\n{rows}")
    found = find_cases([tmp_path / "cases.csv"])
    assert [(case.id, case.truth.path.name) for case in found.cases] == [("b", "t.npy")]
    assert set(told(found)) == {"a"}


def test_one_archive_makes_no_masks_of_other_maps(folder):
    found = find_cases([folder("c0.npy", "c1.npy", "c2_seg.npy", "c3.npz")])
    assert set(masks_of(found)) == {"c0", "c1", "c3"}
    assert told(found) == {"c2": "a mask without a probability map"}


@pytest.mark.parametrize("role", ["mask", "truth"])
def test_a_pattern_that_nothing_fits_is_told(folder, role):
    search = Search(**{f"{role}s": Pattern("{case}_final.npy")})
    found = find_cases([folder("a_prob.npy", "a_seg.npy")], search)
    assert f"expected a {role} of this pattern, got none that fits" in told(found).values()


def test_a_folder_that_is_named_for_masks_holds_no_truths(folder, tmp_path):
    for name in ("predictions", "labels", "masks"):
        folder("c0.npy", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"], Search(mask_folder=tmp_path / "data/masks"))
    (case,) = found.cases
    assert (case.mask.path.parent.name, case.truth.path.parent.name) == ("masks", "labels")
    assert not found.unpaired


def test_the_image_in_the_folder_of_a_case_is_no_map(folder):
    found = find_cases([folder("case_0/prob.npy", "case_0/image.npy", "case_0/gt.npy")])
    assert [(case.id, case.truth.path.name) for case in found.cases] == [("case_0", "gt.npy")]


def test_doubles_of_several_sets_are_told(folder):
    one, two = (find_cases([folder("a.npy", inside=name)]) for name in ("x", "y"))
    found = without_doubles(one + two)
    assert not found.cases
    assert set(told(found)) == {"a"}


def test_folders_that_say_nothing_beside_one_of_maps_are_told(folder, tmp_path):
    for name in ("predictions", "labels", "segmentations", "second reader"):
        folder("c0.png", inside=f"data/{name}")
    found = find_cases([tmp_path / "data"])
    (case,) = found.cases
    assert (case.probabilities.path.parent.name, case.mask.path.parent.name, case.truth.path.parent.name) == (
        "predictions",
        "segmentations",
        "labels",
    )
    assert list(told(found)) == ["second reader/c0"]


def test_files_that_say_nothing_beside_maps_are_told_and_images_left_out(folder):
    found = find_cases([folder("c0_prob.png", "c0_image.png", "c0_t1.png", "c0_gt.png")])
    assert [case.id for case in found.cases] == ["c0"]
    assert "beside others that say that they are maps" in told(found)["c0_t1"]


def test_archives_that_say_what_they_are(folder):
    (case,) = find_cases([folder("c0_prob.npz", "c0_mask.npz", "c0_gt.npz")]).cases
    assert (case.mask.path.name, case.truth.path.name) == ("c0_mask.npz", "c0_gt.npz")


def test_two_sites_do_not_share_a_mask(folder):
    maps = folder("siteA/c0.npy", "siteB/c0.npy", "siteB/c1.npy")
    masks = folder("c0.npy", "c1.npy", inside="masks")
    found = find_cases([maps], Search(mask_folder=masks))
    assert masks_of(found) == {"siteB/c1": "c1.npy"}
    assert "expected a mask of its own" in told(found)["siteA/c0"]


def test_two_models_may_share_their_truths(folder):
    folders = [folder("c0.npy", inside=name) for name in ("model 1", "model 2")]
    found = find_cases(folders, Search(truth_folder=folder("c0.npy", inside="truths")))
    assert {case.id: case.truth.path.name for case in found.cases} == {
        "model 1/c0": "c0.npy",
        "model 2/c0": "c0.npy",
    }


def test_folders_beside_maps_are_told_at_any_depth(folder):
    found = find_cases([folder("a.npy", "site2/maps/b.npy", "site4/x.pt", "site3/c.npy", "site3/run.json")])
    assert set(told(found)) == {"site2", "site3", "site4"}


def test_a_folder_of_truths_below_the_maps_is_not_told(folder, tmp_path):
    maps = folder("a.npy", "labels/a.npy")
    found = find_cases([maps], Search(truth_folder=maps / "labels"))
    assert found.cases[0].truth.path == maps / "labels/a.npy"
    assert not found.unpaired


def test_maps_and_truths_in_one_folder_that_is_named_twice(folder):
    maps = folder("a_prob.npy", "a_gt.npy")
    found = find_cases([maps], Search(truth_folder=maps, truths=Pattern("{case}_gt.npy")))
    assert found.cases[0].truth.path.name == "a_gt.npy"


def test_one_fold_of_nnunet(folder, tmp_path):
    folder("progress.png", "debug.json", inside="model/fold_3")
    folder("a.npz", "a.nii.gz", inside="model/fold_3/validation")
    for path in (tmp_path / "model/fold_3", tmp_path / "model"):
        found = find_cases([path])
        assert [(case.id, case.group) for case in found.cases] == [("a", "fold_3")]
        assert not found.unpaired


@pytest.mark.parametrize("name", ["y", "y_hat"])
def test_a_stack_of_unequal_lengths_is_told(tmp_path, name):
    np.savez(tmp_path / "s.npz", **{"p_hat": np.zeros((3, 1, 4, 5)), name: np.zeros((4, 1, 4, 5))})
    found = find_cases([tmp_path / "s.npz"])
    assert not found.cases
    assert told(found) == {"s": f"expected as many in {name!r} as in 'p_hat', 3, got 4"}
