"""A folder knows which results are its own, also after it was left in the middle."""

import json

import pytest

from segtrust._files import write_json
from segtrust.errors import ParameterError, SavedStateError
from segtrust.report.runs import FORMAT, fresh_results, mark_running, more_results, open_run, write_run


def write(folder, name, text="{}"):
    write_json(folder / "tables" / name, text)


def listed(folder):
    return json.loads((folder / ".results.json").read_text())


def test_a_killed_run_that_goes_on_lists_what_it_had_written_before(tmp_path):
    open_run(tmp_path, command="evaluate")
    write(tmp_path, "areas.json")  # as a run does that is killed before it lists anything
    (tmp_path / "tables" / "notes.txt").write_text("of a person")
    with fresh_results(tmp_path):
        write(tmp_path, "areas.json")
        write(tmp_path, "sets.json")
    assert listed(tmp_path) == ["tables/areas.json", "tables/sets.json"]
    with fresh_results(tmp_path):
        write(tmp_path, "sets.json")
    left = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert left == ["notes.txt", "sets.json"]


def test_what_is_added_is_listed_with_the_rest(tmp_path):
    with fresh_results(tmp_path):
        write(tmp_path, "areas.json")
    with more_results(tmp_path):
        write(tmp_path, "tuning.json")
    assert listed(tmp_path) == ["tables/areas.json", "tables/tuning.json"]


def test_a_run_says_its_format_from_the_start(tmp_path):
    open_run(tmp_path, command="evaluate")
    mark_running(tmp_path, command="evaluate")
    assert json.loads((tmp_path / "run.json").read_text())["format"] == FORMAT
    write_run(tmp_path, command="evaluate", parameters={}, seconds=1.0)
    assert json.loads((tmp_path / "run.json").read_text())["format"] == FORMAT


def test_a_run_of_another_version_keeps_its_folder(tmp_path):
    write_json(tmp_path / "run.json", {"format": "segtrust-run-9", "command": "evaluate"})
    with pytest.raises(
        SavedStateError, match=r"run\.json: expected format 'segtrust-run-1', got 'segtrust-run-9'"
    ):
        open_run(tmp_path, command="evaluate")


@pytest.mark.parametrize("text", ["", "[1]", "[" * 100_000])
def test_a_run_that_cannot_be_read_is_left_alone(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ParameterError, match="something that cannot be read"):
        open_run(tmp_path, command="evaluate")
