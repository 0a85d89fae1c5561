"""Names of files by a pipe, and the table by another."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

from segtrust.io import read_table
from tests.commands import segtrust, segtrust_process
from tests.engine.files import write_maps


@pytest.fixture
def maps(tmp_path):
    write_maps(tmp_path / "maps", 5)
    return tmp_path / "maps"


def rows_in(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_is_printed_and_nothing_else(maps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = segtrust("score", maps, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["maps"]
    assert segtrust("score", maps, "-o", tmp_path / "scores.csv").returncode == 0
    kept = read_table(tmp_path / "scores.csv").rows
    assert [float(row["sdc"]) for row in rows_in(done.stdout)] == [row["sdc"] for row in kept]


def test_names_come_by_a_pipe(maps):
    names = "\n".join(str(path) for path in sorted(maps.iterdir())[:3]) + "\n\n"
    done = segtrust_process("score", "-", "-o", "-", input=names)
    assert done.returncode == 0, done.stderr
    assert [row["case"] for row in rows_in(done.stdout)] == ["case_000", "case_001", "case_002"]


def test_names_may_be_separated_as_find_does_for_names_with_line_ends(maps):
    (maps / "case_000.npy").rename(maps / "a\nname.npy")
    names = "\0".join(str(path) for path in sorted(maps.iterdir())[:2]) + "\0"
    done = segtrust_process("score", "-", "-o", "-", input=names)
    assert done.returncode == 0, done.stderr
    assert [row["case"] for row in rows_in(done.stdout)] == ["a\nname", "case_001"]


def test_a_map_itself_by_the_pipe_is_told(maps):
    with (maps / "case_000.npy").open("rb") as file:
        done = segtrust_process("score", "-", "-o", "-", stdin=file)
    assert done.returncode == 2
    assert "got what is in one. Give its name" in done.stderr
    assert done.stderr.count("\n") == 1


def test_one_bad_case_is_told_beside_the_table_of_the_others(maps):
    np.save(maps / "case_002.npy", np.full((4, 4), np.nan))
    done = segtrust("score", maps, "-o", "-")
    assert done.returncode == 1
    assert len(rows_in(done.stdout)) == 4
    assert "case_002" in done.stderr
    assert "1 failure:\n" in done.stderr


def test_nothing_by_the_pipe_is_an_error():
    done = segtrust_process("score", "-", "-o", "-", input="")
    assert done.returncode == 2
    assert "got none" in done.stderr


def test_json_and_table_are_not_printed_into_each_other(maps):
    done = segtrust("score", maps, "-o", "-", "--json")
    assert done.returncode == 2
    assert "--json" in done.stderr


def test_who_reads_no_further_stops_nothing_with_a_traceback(maps):
    command = f"'{sys.executable}' -m segtrust score '{maps}' -o - | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("case,")
    assert "Traceback" not in done.stderr
