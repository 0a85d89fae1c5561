"""Parts of one run become its table; what is not one run is refused."""

import json
from pathlib import Path

import pytest

from segtrust.confidence import SoftDice
from segtrust.engine.executors import make_executor
from segtrust.engine.merging import merge_tables
from segtrust.engine.score_table import ScoreRun, score_cases
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import ParameterError
from segtrust.io import ReadOptions, find_cases, read_table
from tests.engine.files import write_maps

JOB = ScoreJob((SoftDice(),))


@pytest.fixture
def found(tmp_path):
    write_maps(tmp_path / "maps", 5)
    return find_cases([tmp_path / "maps"])


def score_part(found, folder, part, parts=3, job=JOB, ending="csv"):
    path = folder / f"part-{part}.{ending}"
    score_cases(found, job, ScoreRun(path, make_executor(), part=part, parts=parts))
    return path


def rows(table):
    return [{**row, "seconds": 0} for row in table.rows]


@pytest.mark.parametrize(
    "ending", ["csv", "json", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))]
)
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_any_number_of_parts_in_any_order_is_the_whole(found, tmp_path, ending, parts):
    paths = [score_part(found, tmp_path, part, parts, ending=ending) for part in range(parts)]
    merged, failures = merge_tables(paths[::-1], tmp_path / f"merged.{ending}")
    score_cases(found, JOB, ScoreRun(tmp_path / f"whole.{ending}", make_executor()))
    whole = read_table(tmp_path / f"whole.{ending}")
    assert rows(read_table(tmp_path / f"merged.{ending}")) == rows(whole) == rows(merged)
    assert read_table(tmp_path / f"merged.{ending}").about == whole.about
    assert failures == []


def test_failures_are_put_together_and_a_list_of_before_goes(found, tmp_path):
    path = tmp_path / "maps/case_001.npy"
    whole = path.read_bytes()
    path.write_bytes(b"")
    paths = [score_part(found, tmp_path, part) for part in range(3)]
    out = tmp_path / "merged/scores.csv"
    lists = sorted(paths[0].parent.glob("*.failures.csv"))  # which `part-*.csv` takes along
    assert len(lists) == 1
    _, failures = merge_tables([*lists, *paths], out)
    assert [failure.case for failure in failures] == ["case_001"]
    assert [row["case"] for row in read_table(out.with_name("failures.csv")).rows] == ["case_001"]
    path.write_bytes(whole)
    paths = [score_part(found, tmp_path, part) for part in range(3)]
    assert merge_tables(paths, out)[1] == []
    assert not out.with_name("failures.csv").exists()


def test_a_missing_part_is_named(found, tmp_path):
    paths = [score_part(found, tmp_path, part) for part in (0, 2)]
    with pytest.raises(ParameterError, match="parts: expected all 3, got none for 1"):
        merge_tables(paths, tmp_path / "merged.csv")
    assert not (tmp_path / "merged.csv").exists()


def test_a_part_that_comes_twice_is_refused(found, tmp_path):
    paths = [score_part(found, tmp_path, part) for part in range(3)]
    with pytest.raises(ParameterError, match="expected each of 3 once, got 0, 1, 1, 2"):
        merge_tables([*paths, paths[1]], tmp_path / "merged.csv")


def test_parts_of_other_settings_are_refused(found, tmp_path):
    paths = [score_part(found, tmp_path, part) for part in range(2)]
    paths.append(score_part(found, tmp_path, 2, job=ScoreJob((SoftDice(),), ReadOptions(threshold=0.4))))
    with pytest.raises(
        ParameterError, match=r"part-2.csv: expected a part made with the cases and settings of .*part-0"
    ):
        merge_tables(paths, tmp_path / "merged.csv")


def test_parts_of_arrays_of_another_length_are_refused(found, tmp_path):
    paths = [score_part(found, tmp_path, part) for part in range(3)]
    about = json.loads((tmp_path / "part-2.csv.about.json").read_text())
    (tmp_path / "part-2.csv.about.json").write_text(json.dumps({**about, "part": [2, 4]}))
    with pytest.raises(
        ParameterError, match=r"part-2\.csv: expected a part made with the cases and settings"
    ):
        merge_tables(paths, tmp_path / "merged.csv")


def test_parts_of_files_of_the_same_names_in_another_folder_are_refused(found, tmp_path):
    """They may be the maps of another model."""
    write_maps(tmp_path / "other/maps", 5)
    paths = [score_part(found, tmp_path, part) for part in (0, 2)]
    paths.append(score_part(find_cases([tmp_path / "other/maps"]), tmp_path, 1))
    with pytest.raises(ParameterError, match=r"part-1\.csv: expected a part made with the cases"):
        merge_tables(paths, tmp_path / "merged.csv")


def test_parts_that_were_scored_from_several_folders_name_files_that_are_there(found, tmp_path, monkeypatch):
    for part, (place, maps) in enumerate((("maps", "."), (".", "maps"))):
        monkeypatch.chdir(tmp_path / place)
        score_part(find_cases([Path(maps)]), tmp_path, part, parts=2)
    monkeypatch.chdir(tmp_path / "maps")
    merged, _ = merge_tables(
        [tmp_path / f"part-{part}.csv" for part in range(2)], tmp_path / "all/merged.csv"
    )
    assert all(Path(file).is_file() for file in merged.column("file"))


def test_a_whole_table_is_no_part(found, tmp_path):
    score_cases(found, JOB, ScoreRun(tmp_path / "scores.csv", make_executor()))
    with pytest.raises(ParameterError, match="does not say which part it is"):
        merge_tables([tmp_path / "scores.csv"], tmp_path / "merged.csv")
