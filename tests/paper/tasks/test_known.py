"""Each known task on miniature data in its own layout: checked, prepared, trained, predicted, judged."""

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.paper.tasks import NAMES, Task, get_task
from segtrust.paper.tasks.checking import check_data, find_samples
from segtrust.paper.tasks.preparing import prepare
from tests.paper.tasks import miniatures

pytestmark = [pytest.mark.slow, pytest.mark.needs("PIL", "nibabel")]


@dataclass(frozen=True)
class Miniature:
    """How the data of a task are made, how many cases of each set there are, and what is made smaller."""

    make: Callable[[Path], Path]
    counts: dict[str, int]
    changes: dict


SMALL = {"size": (64, 64)}
SMALL_VOLUME = {"size": (32, 32, 32), "options": {"window": 32}}
MINIATURES = {
    "breast-cancer": Miniature(miniatures.busi, {"ID": 12}, SMALL),
    "skin-cancer": Miniature(miniatures.isic, {"ID": 14}, SMALL),
    "mswml": Miniature(miniatures.shifts, {"ID": 9, "OOD": 3}, SMALL_VOLUME),
    "optic-cup": Miniature(miniatures.fundus_sets, {"ID": 12, "OOD": 6}, SMALL | {"input_size": (32, 32)}),
    "optic-disc": Miniature(miniatures.fundus_sets, {"ID": 12, "OOD": 6}, SMALL),
    "polyp": Miniature(miniatures.polyps, {"ID": 8, "OOD": 6}, SMALL),
    "nuclei": Miniature(miniatures.nuclei, {"ID": 8, "bright": 4}, SMALL),
    "hippocampus": Miniature(miniatures.hippocampus, {"ID": 10}, SMALL_VOLUME),
    "fundus": Miniature(miniatures.drishti, {"ID": 10}, SMALL),
    "skin": Miniature(miniatures.nuclei, {"ID": 12}, SMALL),
    "brain-tumor": Miniature(miniatures.brats, {"ID": 7}, {}),
}
OWN_NETWORK = [name for name in NAMES if name != "brain-tumor"]
QUICK = ("breast-cancer", "hippocampus")
"""Tasks that are trained for an epoch also by the fast tests: a picture and a volume."""


def small(name: str) -> Task:
    task = replace(get_task(name), **MINIATURES[name].changes)
    recipe = replace(task.recipe(), epochs=1, iterations=0, patches=1, batch=2)
    split = {part: 2 if part == "train" else 1 for part in task.split}
    return replace(task, recipes={"tiny": recipe}, split=split)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_task_has_a_miniature():
    assert set(MINIATURES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_check_finds_nothing_wrong(name, tmp_path):
    data = MINIATURES[name].make(tmp_path)
    checked = check_data(get_task(name), data)
    assert checked.problems == ()
    assert checked.counts == MINIATURES[name].counts


@pytest.mark.parametrize("name", OWN_NETWORK)
def test_prepared_cases_have_the_task_s_size_and_labels(name, tmp_path):
    task = small(name)
    data = MINIATURES[name].make(tmp_path / "data")
    prepared = prepare(task, find_samples(task, data), tmp_path / "run")
    assert not prepared.problems
    for case in prepared.cases:
        image, labels = case.load()
        assert image.shape[1:] == labels.shape
        assert labels.dtype == np.uint8
        assert labels.max() <= 2
        if task.dimensions == 2:
            assert labels.shape == task.size
            assert image.dtype == np.uint8
        else:
            assert image.dtype == np.float32
    assert {case.split for case in prepared.cases} >= {"train", "test"}
    assert all(case.split == "test" for case in prepared.cases if case.set != "ID")


@pytest.mark.needs("torch", "monai", "pyarrow", "matplotlib")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in OWN_NETWORK]
)
def test_one_epoch_and_its_maps_can_be_judged(name, tmp_path):
    from segtrust.paper.commands.task_steps import evaluate_maps
    from segtrust.paper.tasks.predicting import PredictionOptions, predict
    from segtrust.paper.tasks.training import Trainer, TrainingOptions

    task = small(name)
    out = tmp_path / "run"
    data = MINIATURES[name].make(tmp_path / "data")
    prepared = prepare(task, find_samples(task, data), out)
    trainer = Trainer(task, task.recipe(), prepared, out / "training", TrainingOptions(device="cpu"))
    (row,) = trainer.run()
    assert np.isfinite(row["loss"])
    assert (row["val_dice"] is None) == (not prepared.of("val"))
    found = predict(task, prepared, [out / "training" / "best.pt"], out, PredictionOptions(device="cpu"))
    assert found.cases == len(prepared.of("test"))
    assert set(found.sets) == set(MINIATURES[name].counts)
    for entry in rows_of(found.manifest):
        p = np.load(found.manifest.parent / entry["probabilities"])
        assert p.dtype == np.float32
        assert 0.0 <= p.min() <= p.max() <= 1.0
    evaluate_maps(task, found, out)
    judged = rows_of(out / "evaluation" / "tables" / "sets.csv")
    assert [each["set"] for each in judged] == list(found.sets)


def test_busi_unites_masks(tmp_path):
    task = get_task("breast-cancer")
    samples = {each.case: each for each in task.find(miniatures.busi(tmp_path))}
    assert [path.name for path in samples["benign (1)"].masks] == [
        "benign (1)_mask.png",
        "benign (1)_mask_1.png",
        "benign (1)_mask_2.png",
    ]
    assert "normal (1)" not in samples


def test_nuclei_as_published_are_the_same_cases(tmp_path):
    task = small("nuclei")
    flat = find_samples(task, miniatures.nuclei(tmp_path / "flat"))
    published = find_samples(task, miniatures.nuclei(tmp_path / "published", as_published=True))
    assert [each.id for each in published] == [each.id for each in flat]
    assert all(len(each.masks) == 2 for each in published)
    labels = [
        [case.load()[1] for case in prepare(task, samples, tmp_path / str(at)).cases]
        for at, samples in enumerate((flat, published))
    ]
    assert np.array_equal(*labels)


def test_refuge_greys_and_numbers_mean_the_same(tmp_path):
    task = small("optic-cup")
    data = miniatures.fundus_sets(tmp_path / "data")
    prepared = prepare(task, find_samples(task, data), tmp_path / "run")
    shares = {case.case: (case.load()[1] == 2).mean() for case in prepared.cases}
    assert shares.pop("OOD/G1020-image_0") == 0.0  # has no cup
    assert all(0.005 < share < 0.03 for share in shares.values())


def test_squares_are_cut_about_the_disc_or_the_box(tmp_path):
    data = miniatures.fundus_sets(tmp_path, side=700)
    task = get_task("optic-cup")
    sample = next(each for each in task.find(data) if each.case == "REFUGE-g0001")
    from segtrust.paper.tasks.reading import read_sample

    image, labels = task.preprocess(*read_sample(task, sample), sample)
    assert image.shape == (3, 576, 576)
    rows, columns = np.nonzero(labels)
    assert abs(rows.mean() - 287.5) < 2
    assert abs(columns.mean() - 287.5) < 2
    (data / "boxes.csv").write_text("case,top,left,bottom,right\nREFUGE-g0001,0,0,20,20\n")
    moved = next(each for each in task.find(data) if each.case == "REFUGE-g0001")
    image, _ = task.preprocess(*read_sample(task, moved), moved)
    assert image.shape == (3, 576, 576)
    assert not image[:, :270, :270].any()  # the square reaches beyond the photograph


def test_brats_labels_are_renumbered_for_regions(tmp_path):
    from segtrust.paper.tasks.reading import read_sample

    task = get_task("brain-tumor")
    sample, *_ = task.find(miniatures.brats(tmp_path))
    image, labels = read_sample(task, sample)
    assert image.shape == (4, 20, 24, 22)
    assert set(np.unique(labels)) == {0, 1, 2, 3}
    outside_in = [int(labels[10, 12, at]) for at in range(11)]
    assert outside_in == sorted(outside_in)  # edema, necrosis, enhancing: nested


REAL = {
    "busi": ("breast-cancer", {"ID": 647}),
    "nuclei": ("nuclei", {"ID": 541, "bright": 123}),
    "hippocampus": ("hippocampus", {"ID": 260}),
    "fundus": ("fundus", {"ID": 101}),
    "skin": ("skin", {"ID": 379}),
}


@pytest.mark.parametrize(
    "folder", [pytest.param(folder, marks=pytest.mark.needs(f"data:{folder}")) for folder in REAL]
)
def test_real_data_are_found_whole(folder, data):
    name, counts = REAL[folder]
    checked = check_data(get_task(name), data(folder), quick=True)
    assert checked.counts == counts
    assert checked.problems == ()


@pytest.mark.needs("data:busi")
def test_busi_is_split_as_in_the_paper(data):
    from segtrust.paper.tasks.splitting import draw_split

    task = get_task("breast-cancer")
    splits = list(draw_split(find_samples(task, data("busi")), task.split).values())
    assert {name: splits.count(name) for name in task.split} == {"train": 450, "val": 99, "test": 98}


@pytest.mark.parametrize("name", NAMES)
def test_missing_and_broken_files_are_listed_for_every_task(name, tmp_path):
    task, data = get_task(name), MINIATURES[name].make(tmp_path)
    lacking, broken = [each for each in find_samples(task, data) if len(each.masks) == 1][:2]
    lacking.masks[0].unlink()
    broken.images[0].write_bytes(b"neither picture nor volume")
    problems = {each.case: each.reason for each in check_data(task, data).problems}
    assert set(problems) == {lacking.id, broken.id}
    assert any(word in problems[lacking.id] for word in ("without mask", "lacks seg"))
    assert broken.images[0].name in problems[broken.id]
