"""The command line: every command once as a user runs it, and otherwise in this process."""

import json

import numpy as np
import pytest

import segtrust as st
from tests.commands import segtrust, segtrust_process
from tests.tuning_cases import blob

ESTIMATORS = ("sdc", "idc", "amsp", "ane", "mmmc", "pla")


def test_version_is_the_package_s():
    done = segtrust_process("--version")
    assert done.returncode == 0
    assert done.stdout.strip() == f"segtrust {st.__version__}"


def test_without_arguments_help_lists_the_commands():
    done = segtrust_process()
    assert "demo" in done.stdout
    assert "tasks" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo",),
        ("reproduce", "validity"),
        ("reproduce", "drift"),
        ("reproduce", "synthetic"),
        ("reproduce", "synthetic-beyond"),
        ("reproduce", "tuning"),
        ("tasks", "run"),
    ],
)
def test_help_shows_examples(arguments: tuple[str, ...]):
    done = segtrust(*arguments, "--help")
    assert done.returncode == 0
    assert done.stdout.count("segtrust " + " ".join(arguments)) >= 2


def test_unknown_command_fails():
    assert segtrust("scores").returncode == 2


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_reproduce_validity_writes_tables_figures_and_how_it_was_run(tmp_path):
    done = segtrust_process("reproduce", "validity", "--out", str(tmp_path / "run"), "--draws", "3")
    assert done.returncode == 0, done.stderr
    written = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.*")}
    figures = {f"figures/validity.{each}" for each in ("png", "pdf", "svg")}
    results = {name for name in written if not name.startswith("parts/")}
    assert results == {"tables/validity.csv", "tables/validity.md", "run.json"} | figures
    assert "No guarantee is broken significantly more often than allowed (313 settings)." in done.stdout
    assert json.loads((tmp_path / "run/run.json").read_text())["parameters"]["draws"] == 3


SYNTHETIC = ("reproduce", "synthetic", "--images", "60", "--repeats", "2")
FIGURES = ("ideal_model", "perturbed_model", "relative_error", "prevalence", "perturbation")


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_reproduce_synthetic_writes_tables_figures_and_how_it_was_run(tmp_path):
    done = segtrust_process(*SYNTHETIC, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "IDC(p̂)" in done.stdout
    written = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.*")}
    wanted = {f"figures/{name}.{each}" for name in FIGURES for each in ("png", "pdf", "svg")}
    wanted |= {f"tables/{name}.{each}" for name in FIGURES for each in ("csv", "md")}
    parts = {f"parts/{name}-{b:02d}.npz" for name in FIGURES if name != "relative_error" for b in (0, 1)}
    assert written == wanted | parts | {"run.json"}
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["parameters"]["images"] == 60
    assert run["seeds"]["noise of image x"] == "x + 33"
    assert {"ideal_model", "prevalence", "computed"} <= set(run["timings"])
    assert {"python", "segtrust", "numpy", "scipy", "numba", "matplotlib"} == set(run["versions"])


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_reproduce_synthetic_refuses_a_folder_of_other_parameters(tmp_path):
    assert segtrust(*SYNTHETIC, "--out", str(tmp_path), "--workers", "1").returncode == 0
    done = segtrust("reproduce", "synthetic", "--images", "61", "--repeats", "2", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "images 60, not 61" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", [("--images", "1"), ("--repeats", "0"), ("--workers", "0")])
def test_reproduce_synthetic_names_a_bad_option(tmp_path, option):
    done = segtrust("reproduce", "synthetic", "--out", str(tmp_path), *option)
    assert done.returncode == 2
    assert option[0] in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_reproduce_synthetic_beyond_writes_tables_and_figures(tmp_path):
    done = segtrust_process("reproduce", "synthetic-beyond", "--out", str(tmp_path / "run"), "--quick")
    assert done.returncode == 0, done.stderr
    written = {
        path.name for folder in ("tables", "figures") for path in (tmp_path / "run" / folder).iterdir()
    }
    for name in ("size", "copula", "smooth"):
        assert {f"{name}.csv", f"{name}_images.csv", f"{name}.md", f"{name}.svg"} <= written


def write_image(path, array):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def write_images(folder, count):
    for seed in range(count):
        case = blob(seed, kind=np.uint8)
        for name, array in (("maps", case.prediction.probabilities), ("masks", np.uint8(255) * case.truth)):
            write_image(folder / name / f"{seed}.png", array)


@pytest.mark.slow
@pytest.mark.needs("PIL", "sklearn", "matplotlib")
def test_reproduce_tuning_writes_tables_figures_and_how_it_was_run(tmp_path):
    write_images(tmp_path / "here", 8)
    write_images(tmp_path / "there", 5)
    write_image(tmp_path / "there/masks/0.png", np.zeros_like(blob(0).truth, np.uint8))
    folders = (
        "--data",
        str(tmp_path / "here"),
        "--elsewhere",
        str(tmp_path / "there"),
        "--predictions",
        "maps",
    )
    command = ("reproduce", "tuning", *folders, "--out", str(tmp_path / "run"), "--repeats", "2", "--workers")
    done = segtrust(*command, "1")
    assert done.returncode == 0, done.stderr
    assert "| AEF+SDC |" in done.stdout
    names = ("aurc", "aurc_elsewhere", "coverage_elsewhere")
    written = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.*")}
    wanted = {f"figures/{name}.{each}" for name in names for each in ("png", "pdf", "svg")}
    wanted |= {f"tables/{name}.md" for name in names} | {
        "tables/tuning.csv",
        "tables/summary.csv",
        "run.json",
    }
    assert {name for name in written if not name.startswith("parts")} == wanted
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert (run["parameters"]["cases"], run["parameters"]["elsewhere"]) == (8, 4)
    assert run["parameters"]["left out, empty truth"] == 1
    assert "1 of 13 cases were left out: empty truth." in done.stdout
    rows = (tmp_path / "run/tables/tuning.csv").read_text()
    assert rows.count("\n") == 1 + 8 * 2 * 3 * 2  # estimators, sets, sizes, repeats
    assert segtrust_process(*command, "2").returncode == 0
    assert (tmp_path / "run/tables/tuning.csv").read_text() == rows


@pytest.mark.needs("PIL")
def test_reproduce_tuning_names_a_folder_without_maps(tmp_path):
    done = segtrust("reproduce", "tuning", "--data", str(tmp_path), "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "expected PNG files, got none" in done.stderr
    assert "Traceback" not in done.stderr
