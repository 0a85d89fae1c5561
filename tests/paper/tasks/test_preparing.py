import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.paper.tasks import get_task
from segtrust.paper.tasks.checking import find_samples
from segtrust.paper.tasks.preparing import counts_of, note_training, prepare, read_prepared
from tests.paper.tasks import miniatures
from tests.processes import abandoned_draft

pytestmark = pytest.mark.needs("PIL")


@pytest.fixture
def task():
    return replace(get_task("breast-cancer"), size=(32, 32))


@pytest.fixture
def data(tmp_path):
    return miniatures.busi(tmp_path / "data")


def test_cases_that_have_not_changed_are_kept(task, data, tmp_path):
    samples = find_samples(task, data)
    first = prepare(task, samples, tmp_path / "run")
    times = {case.file: Path(case.file).stat().st_mtime_ns for case in first.cases}
    mask = data / "benign" / "benign (2)_mask.png"
    miniatures.save(mask, np.zeros((48, 56), np.uint8))
    second = prepare(task, samples, tmp_path / "run")
    changed = [case.case for case in second.cases if Path(case.file).stat().st_mtime_ns != times[case.file]]
    assert changed == ["benign (2)"]
    assert not next(case for case in second.cases if case.case == "benign (2)").load()[1].any()
    assert read_prepared(tmp_path / "run").cases == second.cases


def test_another_size_is_prepared_anew(task, data, tmp_path):
    samples = find_samples(task, data)
    prepare(task, samples, tmp_path / "run")
    other = prepare(replace(task, size=(64, 64)), samples, tmp_path / "run")
    assert other.cases[0].load()[1].shape == (64, 64)


def test_half_written_file_is_written_again(task, data, tmp_path):
    samples = find_samples(task, data)
    case = prepare(task, samples, tmp_path / "run").cases[0]
    with Path(case.file).open("rb+") as file:
        file.truncate(100)
    assert prepare(task, samples, tmp_path / "run").cases[0].load()[1].shape == (32, 32)


def test_split_of_the_first_time_stays(task, data, tmp_path):
    samples = find_samples(task, data)
    first = {case.case: case.split for case in prepare(task, samples, tmp_path / "run").cases}
    again = {case.case: case.split for case in prepare(task, samples, tmp_path / "run", seed=0).cases}
    assert again == first
    with pytest.raises(ParameterError, match=r"split\.csv: expected the split that the seed 5 draws"):
        prepare(task, samples, tmp_path / "run", seed=5)
    own = tmp_path / "own.csv"
    own.write_text("case,split\n" + "".join(f"{case},train\n" for case in first))
    assert counts_of(prepare(task, samples, tmp_path / "run", split=own)) == {"train": 12}


def test_case_that_cannot_be_read_does_not_stop_the_others(task, data, tmp_path):
    (data / "benign" / "benign (3).png").write_bytes(b"nothing")
    prepared = prepare(task, find_samples(task, data), tmp_path / "run")
    assert [each.case for each in prepared.problems] == ["benign (3)"]
    assert len(prepared.cases) == 11


def test_nothing_prepared_says_what_to_run(tmp_path):
    with pytest.raises(ParameterError, match="segtrust tasks prepare"):
        read_prepared(tmp_path)


def test_another_preprocessing_of_the_same_name_prepares_anew(task, data, tmp_path):
    def halved(image, labels, sample):
        return image // 2, labels

    first = replace(task, preprocess=halved)

    def halved(image, labels, sample):
        return image // 8, labels

    second = replace(task, preprocess=halved)
    samples = find_samples(task, data)[:2]
    means = [
        prepare(each, samples, tmp_path / "run").cases[0].load()[0].mean() for each in (first, second, first)
    ]
    assert means[0] == means[2] > 2 * means[1]


def test_function_of_one_s_own_that_fails_is_told_case_by_case(task, data, tmp_path):
    def broken(image, labels, sample):
        raise ZeroDivisionError("no")

    prepared = prepare(replace(task, preprocess=broken), find_samples(task, data), tmp_path / "run")
    assert len(prepared.problems) == 12
    assert "ZeroDivisionError" in prepared.problems[0].reason


def test_what_was_trained_on_stays_what_it_is(task, data, tmp_path):
    """A refusal changes nothing: neither the split, nor the prepared cases."""
    out = tmp_path / "run"
    prepared = prepare(task, find_samples(task, data), out)
    (out / "training").mkdir()
    parts = {name: [each.case for each in prepared.of(name)] for name in ("train", "val")}
    note_training(out / "training", task, parts)
    turned = tmp_path / "turned.csv"
    splits = {each.case: each.split for each in prepared.cases}
    other = {"train": "test", "test": "train", "val": "val"}
    turned.write_text("case,split\n" + "".join(f"{case},{other[part]}\n" for case, part in splits.items()))
    before = (out / "split.csv").read_text()
    with pytest.raises(ParameterError, match="expected the train cases of the training in it"):
        prepare(task, find_samples(task, data), out, split=turned)
    with pytest.raises(ParameterError, match=r"expected the size \(32, 32\) of the training in it"):
        prepare(replace(task, size=(64, 64)), find_samples(task, data), out)
    assert (out / "split.csv").read_text() == before
    assert prepare(task, find_samples(task, data), out).cases == prepared.cases
    assert prepared.cases[0].load()[1].shape == (32, 32)


def test_cases_that_are_away_for_a_while_keep_their_place(task, data, tmp_path):
    samples = find_samples(task, data)
    first = {each.case: each.split for each in prepare(task, samples, tmp_path / "run").cases}
    prepare(task, samples[:5], tmp_path / "run")
    assert {each.case: each.split for each in prepare(task, samples, tmp_path / "run").cases} == first


def test_cases_that_are_left_out_are_not_read(task, data, tmp_path):
    (data / "benign" / "benign (3).png").write_bytes(b"nothing")
    samples = find_samples(task, data)
    own = tmp_path / "own.csv"
    rows = [f"{each.id},{'' if each.id == 'benign (3)' else 'train'}\n" for each in samples]
    own.write_text("case,split\n" + "".join(rows))
    prepared = prepare(task, samples, tmp_path / "run", split=own)
    assert not prepared.problems
    assert len(prepared.cases) == 11


@pytest.mark.skipif(os.name != "posix", reason="asks for processes by their number")
def test_drafts_of_a_killed_run_are_removed(task, data, tmp_path):
    (tmp_path / "prepared").mkdir()
    drafts = [abandoned_draft(tmp_path / name) for name in ("split.csv", "prepared/a.npz")]
    prepare(task, find_samples(task, data), tmp_path)
    assert not any(draft.exists() for draft in drafts)
