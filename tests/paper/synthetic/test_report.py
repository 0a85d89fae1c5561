"""Tables and figures of the simulated experiments show what the experiments gave."""

import csv
import json
import math

import numpy as np
import pytest

from segtrust.errors import ParameterError
from segtrust.paper.synthetic import EXPERIMENTS, Synthetic
from segtrust.paper.synthetic.report import (
    draw_areas,
    draw_curves,
    draw_relative_error,
    relative_errors,
    reproduce_synthetic,
    summarise,
    summarise_errors,
)

pytestmark = [pytest.mark.slow, pytest.mark.needs("matplotlib")]
SETTINGS = Synthetic(images=300, repeats=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("synthetic")


@pytest.fixture(scope="module")
def results(folder):
    return reproduce_synthetic(folder, SETTINGS)


def read(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_csv_keeps_every_digit(folder, results, name):
    rows = results.rows(name)
    written = read(folder / "tables" / f"{name}.csv")
    assert [float(row["aurc"]) for row in written] == [row["aurc"] for row in rows]
    assert [row["estimator"] for row in written] == [row["estimator"] for row in rows]


def test_relative_errors_have_a_row_an_image(folder, results):
    written = read(folder / "tables/relative_error.csv")
    assert [int(row["image"]) for row in written] == list(range(900))
    assert [float(row["sdc"]) for row in written] == [row["sdc"] for row in results.relative_error_rows()]
    empty = [row for row in written if row["k"] == "0"]
    assert empty
    assert all(math.isnan(float(row["epsilon"])) and float(row["sdc"]) == 0 for row in empty)


def test_summary_is_over_the_repeats(results):
    rows = [row for row in results.rows("ideal_model") if row["estimator"] == "amsp"]
    (summary,) = (row for row in summarise(results.rows("ideal_model")) if row["estimator"] == "aMSP")
    areas = [row["aurc"] for row in rows]
    assert summary["aurc"] == pytest.approx(np.mean(areas))
    assert (summary["lowest"], summary["highest"]) == (min(areas), max(areas))
    best = np.mean([row["aurc"] for row in results.rows("ideal_model") if row["estimator"] == "idc(x)"])
    assert summary["above IDC(x)"] == pytest.approx(np.mean(areas) / best - 1)


def test_printed_tables_have_three_decimals(folder):
    lines = (folder / "tables/perturbation.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("| mu_z | rho_eta | estimator | aurc | lowest | highest | above IDC(x) |")
    assert len(lines) == 2 + len(SETTINGS.rho_eta_grid) * 6
    area = lines[2].split("|")[4].strip()
    assert len(area.split(".")[1]) == 3


def test_errors_are_summarised_without_empty_masks(results):
    errors, bounds = summarise_errors(results)
    assert errors["images"] == relative_errors(results).size == bounds["images"]
    assert errors["images"] + errors["empty masks"] == 900
    assert errors["largest"] == relative_errors(results).max()
    assert bounds["mean"] > errors["mean"]


def lines_of(figure):
    (ax,) = figure.axes
    return ax, {line.get_label(): line for line in ax.lines}


def test_curves_are_means_of_the_repeats_between_minimum_and_maximum(results):
    ax, lines = lines_of(draw_curves(results, "perturbed_model"))
    assert list(lines) == ["IDC(x)", "IDC(p)", "IDC(p̂)", "SDC(p̂)", "aMSP(p̂)", "random"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coverage", "selective risk")
    curves = np.array([arrays["risks"][4] for arrays in results.repeats("perturbed_model")])
    line = lines["aMSP(p̂)"]
    at = np.round(line.get_xdata() * 300).astype(int) - 1
    assert {0, 299} <= set(at)
    np.testing.assert_allclose(line.get_ydata(), curves.mean(0)[at])
    vertices = ax.collections[4].get_paths()[0].vertices
    assert vertices[:, 1].max() == pytest.approx(curves[:, at].max())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(lines)


@pytest.mark.parametrize(
    ("name", "against", "label"),
    [("prevalence", "alpha", "expected foreground ratio"), ("perturbation", "risk", "full-coverage risk")],
)
def test_areas_along_a_grid(results, name, against, label):
    ax, lines = lines_of(draw_areas(results, name, against=against))
    assert (ax.get_xlabel(), ax.get_ylabel()) == (label, "AURC")
    x = lines["IDC(x)"].get_xdata()
    assert np.all(np.diff(x) > 0)
    wanted = np.sort(np.mean([arrays[against] for arrays in results.repeats(name)], axis=0))
    np.testing.assert_allclose(x, wanted)
    assert len(lines) == len(EXPERIMENTS[name].estimators)


def test_histogram_counts_every_image(results):
    (ax,) = draw_relative_error(results).axes
    assert sum(patch.get_height() for patch in ax.patches) == pytest.approx(100.0)
    largest = 100 * relative_errors(results).max()
    assert any(line.get_xdata()[0] == pytest.approx(largest) for line in ax.lines)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [{"n": 1}, {"n": 1, "rho_z": 0.0}, {"mu_z": -50.0, "rho_z": 0.0}])
def test_images_without_masks_or_without_risk(tmp_path, bad):
    grids = {"mu_z_grid": (0.0,), "rho_eta_grid": (0.0, 1.0)}
    found = reproduce_synthetic(str(tmp_path), Synthetic(images=20, repeats=2, **grids, **bad))
    assert (tmp_path / "run.json").exists()
    errors, _ = summarise_errors(found)
    assert math.isnan(errors["mean"]) == (errors["images"] == 0)


def test_a_folder_of_another_command_is_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "run.json").write_text('{"command": "reproduce validity"}')
    with pytest.raises(
        ParameterError, match=r"run\.json: expected .*synthetic.*, got .*validity.*another folder"
    ):
        reproduce_synthetic(tmp_path, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_folder_that_cannot_be_written_to_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match=r"file/run: cannot write to this folder .*Choose"):
        reproduce_synthetic(tmp_path / "file" / "run", SETTINGS)


@pytest.mark.slow
def test_a_run_that_went_on_says_how_much_was_there(tmp_path):
    few = Synthetic(images=10, repeats=2, mu_z_grid=(0.0,), rho_eta_grid=(0.0,))
    for missing, reused in ((None, 0), ("prevalence-01.npz", 7), (None, 8)):
        if missing:
            (tmp_path / "parts" / missing).unlink()
        reproduce_synthetic(tmp_path, few)
        assert json.loads((tmp_path / "run.json").read_text())["parameters"]["reused parts"] == reused
