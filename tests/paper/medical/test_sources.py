"""Tasks are found in every layout in which they may come."""

import numpy as np
import pytest

from segtrust.errors import PairingError
from segtrust.io import ReadOptions, load_case
from segtrust.paper.medical.sources import PAPER_TASKS, find_tasks
from tests.paper.medical import folders


def counts(task):
    return {name: sum(case.set == name for case in task.cases.cases) for name in task.sets}


def test_runs_of_tasks_are_found_and_absent_ones_are_named(tmp_path):
    folders.write_run(tmp_path, "polyp", n=5, ood=4)
    folders.write_run(tmp_path, "my-own", n=3)
    found = find_tasks(tmp_path)
    assert {task.name: counts(task) for task in found.tasks} == {
        "polyp": {"ID": 5, "OOD": 4},
        "my-own": {"ID": 3},
    }
    assert found.tasks[1].title == "My own"
    assert set(found.absent) == set(PAPER_TASKS) - {"polyp"}
    assert "polyp/predictions/id.csv" in found.absent["mswml"].replace("mswml", "polyp")


def test_only_what_is_asked_for_is_looked_at(tmp_path):
    for name in ("polyp", "nuclei"):
        folders.write_run(tmp_path, name, n=3)
    found = find_tasks(tmp_path, ["nuclei", "mswml"])
    assert [task.name for task in found.tasks] == ["nuclei"]
    assert list(found.absent) == ["mswml"]


def test_folders_of_sets_and_plain_manifests(tmp_path):
    folders.write_manifest(tmp_path / "skin", "id", 4)
    for name in ("id", "ood-1", "ood-2"):
        folders.write_manifest(tmp_path / "own" / name, "x", 3)
    found = {task.name: counts(task) for task in find_tasks(tmp_path).tasks}
    assert found == {"skin": {"ID": 4}, "own": {"ID": 3, "OOD": 6}}


def test_archives_of_the_authors(tmp_path):
    folders.write_archive(tmp_path / "busi.npz", 6)
    folders.write_archive(tmp_path / "refuge.npz", 4)
    folders.write_archive(tmp_path / "optic_cup_ood.npz", 5)
    folders.write_archive(tmp_path / "brats.npz", 3, with_masks=True)
    found = {task.name: task for task in find_tasks(tmp_path).tasks}
    assert {name: counts(task) for name, task in found.items()} == {
        "brain-tumor": {"ID": 3},
        "breast-cancer": {"ID": 6},
        "optic-cup": {"ID": 4, "OOD": 5},
    }
    assert all(case.mask is not None for case in found["brain-tumor"].cases.cases)


def test_pickled_lists_of_volumes_need_a_word(tmp_path):
    for name in ("eval_in", "dev_out"):
        folders.write_lists(tmp_path / "mswml", name)
    with pytest.raises(PairingError, match="expected the maps of at least one task"):
        find_tasks(tmp_path)
    (task,) = find_tasks(tmp_path, allow_pickle=True).tasks
    assert counts(task) == {"ID": 4, "OOD": 4}
    assert task.threshold == 0.35
    (loaded,) = load_case(task.cases.cases[1], ReadOptions(threshold=task.threshold))
    assert loaded.prediction.shape == (10, 12, 11)
    assert loaded.truth.shape == (10, 12, 11)


def test_lists_of_different_length_are_refused(tmp_path):
    import pickle

    folders.write_lists(tmp_path / "mswml", "eval_in")
    (tmp_path / "mswml" / "eval_in_gt.pkl").write_bytes(pickle.dumps([]))
    with pytest.raises(PairingError, match=r"as many truths in eval_in_gt\.pkl, got 4 and 0"):
        find_tasks(tmp_path, allow_pickle=True)


def test_no_folder(tmp_path):
    with pytest.raises(PairingError, match="expected a folder with maps of tasks"):
        find_tasks(tmp_path / "nowhere")


def test_what_is_missing_is_told(tmp_path):
    folders.write_archive(tmp_path / "polyp_ood.npz")
    folders.write_archive(tmp_path / "mine.npz")
    folders.write_archive(tmp_path / "far_ood.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "isic.npz", p_hat=np.zeros((3, 1, 4, 4)))
    (tmp_path / "broken.npz").write_text("junk")
    folders.write_lists(tmp_path / "mswml", "eval_in")
    found = find_tasks(tmp_path)
    assert [task.name for task in found.tasks] == ["mine"]
    assert "none in distribution: expected polyp/" in found.absent["polyp"]
    assert "none in distribution" in found.absent["far"]
    assert set(found.unusable) == {"broken", "skin-cancer"}
    assert "got no y" in found.unusable["skin-cancer"]
    assert "--allow-pickle" in found.absent["mswml"]
    (tmp_path / "mswml/eval_in_gt.pkl").unlink()
    told = find_tasks(tmp_path, allow_pickle=True).absent["mswml"]
    assert "expected eval_in_predictions.pkl and eval_in_gt.pkl, got eval_in_predictions.pkl" in told
    assert "breast_cancer.npz, busi.npz" in found.absent["breast-cancer"]
    with pytest.raises(PairingError, match=r"got none\. polpy: expected polpy/predictions"):
        find_tasks(tmp_path, ["polpy"])
