"""``python -m benchmarks``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def benchmark(*arguments):
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize(
    "name", ["kernels", "speed", "selective", "decoding", "synthetic", "tunable", "io", "medical"]
)
def test_help_shows_examples(name):
    done = benchmark(name, "--help")
    assert done.returncode == 0
    assert done.stdout.count(f"python -m benchmarks {name}") >= 2


@pytest.mark.slow
def test_kernels_gives_all_sections_as_json(tmp_path):
    import numpy as np

    np.save(tmp_path / "own.npy", np.full((20, 30, 40), 0.3, np.float32))
    done = benchmark(
        "kernels",
        "--rounds",
        "1",
        "--largest",
        "10000",
        "--json",
        "--map",
        str(tmp_path / "own.npy"),
    )
    assert done.returncode == 0, done.stderr
    sections = json.loads(done.stdout)
    assert len(sections) == 6
    assert {line["map"] for line in next(iter(sections.values()))} == {
        "logit-normal",
        "mostly empty",
        "own map",
    }
    for lines in sections.values():
        assert lines
        assert all(line.get("ratio", 1.0) > 0.0 for line in lines)


@pytest.mark.slow
def test_selective_gives_both_sections_as_json():
    done = benchmark("selective", "--rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    curve, bootstrap = json.loads(done.stdout).values()
    assert {line["target"] for line in curve} == {"<= 1.5"}
    assert [line["what"] for line in bootstrap] == ["BCa interval, 1 thread", "BCa interval, 2 threads"]


@pytest.mark.slow
def test_synthetic_gives_its_lines_as_json():
    done = benchmark("synthetic", "--rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    (lines,) = json.loads(done.stdout).values()
    assert [line["target"] for line in lines] == [">= 100", ">= 100"]


@pytest.mark.slow
@pytest.mark.needs("radiomics")
def test_tunable_gives_its_sections_as_json():
    done = benchmark("tunable", "--rounds", "1", "--json")
    assert done.returncode == 0, done.stderr
    sides, features, ragged = json.loads(done.stdout).values()
    assert [line["target"] for line in sides] == [">= 30", "", ">= 30", ""]
    assert [line["what"] for line in features] == ["102 features", "97 features"]
    assert len(ragged) == 3
