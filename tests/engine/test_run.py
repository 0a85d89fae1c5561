"""A whole run: what is done is taken from the diary, what has changed is done again."""

import json
import os

import numpy as np
import pytest

from segtrust.engine.journal import Journal
from segtrust.engine.outcomes import Outcome
from segtrust.engine.run import Engine, part_of, run_cases
from segtrust.errors import ParameterError
from segtrust.io import ArrayRef, CaseFiles, Failure, stamps_of
from tests.engine.works import cases, expected, name_length

NAMES = [f"case {number}" for number in range(7)]


def run(found, path, work=name_length, **engine):
    """The outcomes, and which cases were worked on now."""
    done, advanced = [], []

    def noting(case):
        done.append(case.id)
        return work(case)

    chosen = noting if engine.get("workers", 1) == 1 else work
    with Journal(path, {}) as journal:
        outcomes = run_cases(chosen, found, engine=Engine(**engine), journal=journal, advance=advanced.append)
    assert sum(advanced) == len(found)
    return outcomes, done


@pytest.mark.parametrize("workers", [1, 2])
def test_outcomes_come_in_the_order_of_the_cases(tmp_path, workers):
    outcomes, _ = run(cases(NAMES[::-1]), tmp_path / "diary", workers=workers)
    assert outcomes == expected(NAMES)
    assert list(outcomes) == NAMES[::-1]


def test_what_is_done_is_not_done_again(tmp_path):
    _, first = run(cases(NAMES[:3]), tmp_path / "diary")
    outcomes, then = run(cases(NAMES), tmp_path / "diary")
    assert (first, then) == (NAMES[:3], NAMES[3:])
    assert outcomes == expected(NAMES)


def fails(case):
    return Outcome(case.id, failure=Failure(case.id, "f", "OSError", "gone"))


def test_failures_are_tried_again(tmp_path):
    outcomes, _ = run(cases(NAMES[:2]), tmp_path / "diary", fails)
    assert all(outcome.failure for outcome in outcomes.values())
    outcomes, done = run(cases(NAMES[:2]), tmp_path / "diary")
    assert done == NAMES[:2]
    assert outcomes == expected(NAMES[:2])
    assert run(cases(NAMES[:2]), tmp_path / "diary")[1] == []


def test_outcomes_of_before_a_fault_are_kept(tmp_path):
    def breaks(case):
        if case.id == NAMES[2]:
            raise ZeroDivisionError
        return name_length(case)

    with pytest.raises(ZeroDivisionError):
        run(cases(NAMES), tmp_path / "diary", breaks)
    assert run(cases(NAMES), tmp_path / "diary")[1] == NAMES[2:]


def write_later(path, content):
    """Write a file with a time that differs from that of before, however fast the test is."""
    path.write_bytes(content)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("name", ["a.npz", "a.pkl", "dataset.json", "mask.npy", "truth.npy"])
def test_a_case_is_done_again_when_a_file_that_is_read_of_it_has_changed(tmp_path, name):
    folder = tmp_path / "maps"
    folder.mkdir()
    for each in ("a.npz", "a.pkl", "dataset.json", "mask.npy", "truth.npy"):
        (folder / each).write_bytes(b"before")
    mask, truth = ArrayRef(folder / "mask.npy"), ArrayRef(folder / "truth.npy")
    found = [CaseFiles("a", ArrayRef(folder / "a.npz"), mask, truth), *cases(["b"])]
    run(found, tmp_path / "diary")
    assert run(found, tmp_path / "diary")[1] == []
    write_later(folder / name, b"after.")
    assert "a" in run(found, tmp_path / "diary")[1]
    assert run(found, tmp_path / "diary")[1] == []


def test_a_case_is_done_again_when_a_chunk_of_its_store_has_changed(tmp_path):
    chunk = tmp_path / "a.zarr/c/0/0"
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(b"before")
    found = [CaseFiles("a", ArrayRef(tmp_path / "a.zarr"))]
    run(found, tmp_path / "diary")
    write_later(chunk, b"after.")
    assert run(found, tmp_path / "diary")[1] == ["a"]


def test_a_case_is_done_again_when_its_notes_have_changed(tmp_path):
    run([CaseFiles("a", ArrayRef(tmp_path / "a.npy"), group="patient 1")], tmp_path / "diary")
    changed = [CaseFiles("a", ArrayRef(tmp_path / "a.npy"), group="patient 2")]
    assert run(changed, tmp_path / "diary")[1] == ["a"]


def test_a_file_that_is_written_while_it_is_scored_is_scored_again(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"before")
    found = [CaseFiles("a", ArrayRef(path))]

    def while_written(case):
        write_later(path, b"afterwards")
        return name_length(case)

    run(found, tmp_path / "diary", while_written)
    assert run(found, tmp_path / "diary")[1] == ["a"]


def test_stamps_can_be_written_down(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    stamps = stamps_of([CaseFiles("a", ArrayRef(tmp_path / "a.npy", None, 2)), *cases(["missing"])])
    assert json.loads(json.dumps(stamps)) == stamps


@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_parts_in_their_order_are_the_whole(parts):
    shared = [part_of(NAMES, part, parts) for part in range(parts)]
    assert [name for part in shared for name in part] == NAMES
    assert max(map(len, shared)) - min(map(len, shared)) <= 1


@pytest.mark.parametrize(("part", "parts"), [(3, 3), (-1, 2), (0, 0)])
def test_a_part_that_there_is_not(part, parts):
    with pytest.raises(ParameterError, match="part-id: expected a number from 0"):
        part_of(NAMES, part, parts)


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2"])
def test_workers_are_a_whole_number(workers):
    with pytest.raises(
        ParameterError, match=f"workers: expected a whole number of at least 1, got {workers!r}"
    ):
        Engine(workers)


def test_the_budget_is_what_is_said_or_a_share_of_what_is_free():
    assert Engine(memory=1000).budget == 1000
    assert Engine().budget > 1 << 20
