"""One task from its files to its tables; the paper's numbers beside ours."""

import numpy as np
import pytest

import segtrust as st
from segtrust.confidence import ThresholdLevel
from segtrust.maps import Prediction
from segtrust.paper.medical.paper import paper_value, paper_values
from segtrust.paper.medical.sources import PAPER_TASKS, find_tasks
from segtrust.paper.medical.study import MedicalSettings, WorkPlan, study_task
from segtrust.paper.medical.tables import medical_tables
from tests.paper.medical import folders

pytestmark = pytest.mark.needs("pyarrow", "sklearn")
QUICK = MedicalSettings(tuned=("sdc", "pla-tuned"), repeats=3, resamples=100)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    folders.write_run(folder, "polyp", n=16, ood=12, empty=2)
    return find_tasks(folder, ["polyp"]).tasks[0]


@pytest.fixture(scope="module")
def result(task, tmp_path_factory):
    return study_task(task, QUICK, WorkPlan(tmp_path_factory.mktemp("out")))


def test_rows_are_those_of_the_library(result):
    found, outside = result.sets
    assert (found.name, len(found.rows), found.left_out) == ("ID", 14, 2)
    assert (outside.name, len(outside.rows)) == ("OOD", 12)
    maps, truths = folders.maps_and_truths(16)
    for row, p, truth in zip(found.rows, maps[2:], truths[2:], strict=True):
        assert row["sdc"] == pytest.approx(st.soft_dice_confidence(p), rel=1e-12)
        assert row["loss"] == pytest.approx(1 - st.dice(truth, p >= 0.5), abs=1e-12)


def test_tla_learns_from_each_set_on_its_own_without_cases_of_empty_truth(result):
    maps, _ = folders.maps_and_truths(16)
    kept = [Prediction(p) for p in maps[2:]]
    fitted = ThresholdLevel().fit(kept)
    assert [row["tla"] for row in result.sets[0].rows] == pytest.approx([fitted.score(each) for each in kept])
    outside, _ = folders.maps_and_truths(12, seed=1, noise=2.0)
    other = ThresholdLevel().fit([Prediction(p) for p in outside])
    assert result.sets[1].rows[0]["tla"] == pytest.approx(other.score(Prediction(outside[0])))


def test_each_set_is_tuned_by_itself(result):
    sizes = {name: {row["size"] for row in result.tuning if row["set"] == name} for name in ("ID", "OOD")}
    assert sizes == {"ID": {1, 2, 3, 4, 5, 6, 7}, "OOD": {1, 2, 3, 4, 5, 6}}
    shares = {(row["set"], row["size"]) for row in result.tuning if row["share"] is not None}
    assert shares == {("ID", 1), ("ID", 7), ("OOD", 1), ("OOD", 6)}
    assert {row["target_risk"] for row in result.tuning} == {result.sets[0].full_risk}


def test_tables_have_the_paper_s_numbers_beside_ours(result):
    tables = medical_tables([result])
    rows = {(row["set"], row["estimator"], row["share"]): row for row in tables["areas"]}
    sdc = rows["OOD", "sdc", None]
    assert sdc["paper"] == 0.076
    assert sdc["difference"] == pytest.approx(sdc["aurc"] - 0.076)
    assert sdc["low"] <= sdc["aurc"] <= sdc["high"]
    tuned = rows["ID", "pla-tuned", 0.5]
    assert (tuned["paper"], tuned["paper_std"]) == (0.048, 0.004)
    assert tuned["std"] >= 0.0
    assert rows["ID", "idc", None]["paper"] is None
    assert {row["set"] for row in tables["coverages"]} == {"OOD"}
    assert {row["against"] for row in tables["comparisons"]} == {"amsp", "ane", "mmmc", "pla", "tla", "idc"}
    (first, _) = tables["sets"]
    assert (first["cases"], first["paper_cases"], first["paper_foreground_ratio"]) == (14, 164, 0.123)


def test_a_run_goes_on_where_it_was(task, result, tmp_path):
    done = []
    work = WorkPlan(tmp_path, advance=done.append)
    first = study_task(task, QUICK, work)
    again = study_task(task, QUICK, work)
    assert again.tuning == first.tuning == result.tuning
    assert [each.losses.tolist() for each in again.sets] == [each.losses.tolist() for each in result.sets]
    assert sum(done) == 2 * (28 + 26 + 2 * 3)


def test_as_published_changes_what_it_says(task, result, tmp_path):
    settings = MedicalSettings(
        tuned=("sdc", "aef"),
        repeats=2,
        resamples=100,
        deviations=frozenset({"tla", "stretched", "interpolated"}),
    )
    found = study_task(task, settings, WorkPlan(tmp_path))
    ours, theirs = (np.array([row["tla"] for row in each.sets[0].rows]) for each in (result, found))
    assert not np.allclose(ours, theirs)
    assert all(row["share"] is None for row in found.tuning)
    rows = medical_tables([found], interpolates=True)["areas"]
    assert {row["share"] for row in rows if row["estimator"] == "aef"} == {0.1, 0.5}


def test_volumes_of_pickled_lists_are_judged_at_the_threshold_of_the_task(tmp_path):
    folders.write_lists(tmp_path / "mswml", "eval_in", sizes=(8, 9, 10, 11, 12))
    (task,) = find_tasks(tmp_path, allow_pickle=True).tasks
    settings = MedicalSettings(tuned=("sdc",), repeats=2, resamples=100)
    result = study_task(task, settings, WorkPlan(tmp_path / "out"))
    maps, truths = folders.maps_and_truths(1, shape=(8, 12, 11), seed=8)
    row = result.sets[0].rows[0]
    assert row["sdc"] == pytest.approx(st.soft_dice_confidence(maps[0], threshold=0.35), rel=1e-12)
    assert row["loss"] == pytest.approx(1 - st.dice(truths[0], maps[0] >= 0.35), abs=1e-12)


def test_masks_that_were_delivered_are_those_that_count(tmp_path):
    folders.write_archive(tmp_path / "brats.npz", 5, with_masks=True)
    (task,) = find_tasks(tmp_path, ["brain-tumor"]).tasks
    settings = MedicalSettings(repeats=0, resamples=100)
    row = study_task(task, settings, WorkPlan(tmp_path / "out")).sets[0].rows[0]
    maps, _ = folders.maps_and_truths(5)
    assert row["k"] == int((maps[0] > 0.6).sum())


def test_the_paper_s_tables_are_whole():
    values = paper_values()
    sets = [(task, "ID") for task in PAPER_TASKS] + [
        (task, "OOD") for task in ("mswml", "optic-cup", "polyp")
    ]
    plain, tuned = (
        ("amsp", "ane", "mmmc", "pla", "tla", "sdc", "oracle", "random"),
        ("pla-tuned", "aef", "aef-sdc"),
    )
    for task, tested in sets:
        for name in plain:
            assert values["aurc", task, tested, name, None].value > 0.0
        for name in tuned:
            for share in (0.1, 0.5):
                assert values["aurc", task, tested, name, share].std >= 0.001
        assert paper_value("cases", task, tested).value >= 25
        epsilons = [paper_value(name, task, tested).value for name in ("mean_epsilon", "max_epsilon")]
        assert 0 < epsilons[0] < epsilons[1] <= 4.4e-3
        assert (
            values["aurc", task, tested, "oracle", None].value
            < values["aurc", task, tested, "sdc", None].value
        )
    assert values["coverage", "polyp", "OOD", "sdc", None].value == 0.6053
    assert values["coverage", "polyp", "OOD", "amsp", None].value is None
    assert paper_value("aurc", "polyp", "ID", "idc") is None
