"""`segtrust reproduce medical` and `segtrust evaluate --tune`, as a user calls them."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from segtrust.cli import app
from tests.paper.medical import folders

pytestmark = [pytest.mark.slow, pytest.mark.needs("pyarrow", "sklearn", "matplotlib")]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("medical")
    folders.write_run(folder / "runs", "polyp", n=8, ood=6)
    folders.write_run(folder / "runs", "nuclei", n=6)
    how = ("--repeats", 2, "--resamples", 100, "--workers", 1)
    return folder, invoke("reproduce", "medical", "--data", folder / "runs", "--out", folder / "out", *how)


def test_tables_figures_and_what_they_are_made_of_are_written(run):
    folder, result = run
    assert result.exit_code == 0, result.output
    out = folder / "out"
    for name in ("sets", "bounds", "areas", "coverages"):
        assert {path.suffix for path in (out / "tables").glob(f"{name}.*")} == {".csv", ".md", ".tex"}
    figures = {path.stem for path in (out / "figures").glob("*.pdf")}
    panels = {
        "risk_coverage_id",
        "risk_coverage_ood",
        "tuning_aurc_id",
        "tuning_aurc_ood",
        "tuning_coverage_ood",
    }
    assert figures == panels
    assert "| SDC |" in result.output
    assert "mswml was left out" in result.output
    told = json.loads((out / "run.json").read_text())
    assert told["parameters"]["tasks"] == {"polyp": 14, "nuclei": 6}
    assert "polyp, tuning" in told["timings"]
    report = (out / "report.md").read_text()
    assert "brain-tumor was left out" in report
    assert "AURC" in report


def test_every_cell_can_be_traced_to_cases(run):
    import pyarrow.parquet as parquet

    import segtrust as st

    out = run[0] / "out"
    cells = {
        (row["task"], row["set"], row["estimator"]): row for row in rows_of(out / "tables" / "areas.csv")
    }
    table = parquet.read_table(out / "tasks" / "polyp" / "scores.parquet").to_pandas()
    chosen = table[table["set"] == "OOD"]
    curve = st.risk_coverage_curve(chosen["sdc"].to_numpy(), chosen["loss"].to_numpy())
    assert float(cells["polyp", "OOD", "sdc"]["aurc"]) == pytest.approx(curve.aurc, rel=1e-12)
    splits = rows_of(out / "tasks" / "polyp" / "tables" / "tuning_splits.csv")
    tuned = [
        float(row["aurc"])
        for row in splits
        if (row["estimator"], row["set"], row["share"]) == ("aef", "ID", "0.5")
    ]
    assert len(tuned) == 2
    means = rows_of(out / "tables" / "areas.csv")
    (mean,) = [
        float(row["aurc"])
        for row in means
        if (row["task"], row["estimator"], row["set"], row["share"]) == ("polyp", "aef", "ID", "0.5")
    ]
    assert mean == pytest.approx(np.mean(tuned))


def test_a_bad_case_is_told_and_the_others_are_judged(tmp_path):
    folders.write_run(tmp_path / "runs", "nuclei", n=6)
    (tmp_path / "runs/nuclei/predictions/maps/id-02.npy").write_bytes(b"no map")
    how = ("--repeats", 0, "--resamples", 100, "--workers", 1)
    result = invoke("reproduce", "medical", "--data", tmp_path / "runs", "--out", tmp_path / "out", *how)
    assert result.exit_code == 1
    assert "Cases that failed: nuclei 1" in result.output
    (row,) = [row for row in rows_of(tmp_path / "out/tables/sets.csv") if row["task"] == "nuclei"]
    assert row["cases"] == "5"
    assert "id-02" in (tmp_path / "out/tasks/nuclei/failures.csv").read_text()


def test_deviations_by_name(tmp_path):
    folders.write_run(tmp_path / "runs", "nuclei", n=6)
    given = ("--data", tmp_path / "runs", "--out", tmp_path / "out", "--repeats", 0, "--resamples", 100)
    result = invoke("reproduce", "medical", *given, "--deviations", "tla,nonsense")
    assert "expected some of tla, aef, mmmc, stretched, interpolated" in str(result.exception)
    result = invoke("reproduce", "medical", *given[:5], 2, *given[6:], "--as-published", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "As published: TLA" in (tmp_path / "out/report.md").read_text()
    assert "AEF (10%)" in result.output


def test_a_task_that_cannot_be_judged_does_not_stop_the_others(tmp_path):
    data = tmp_path / "runs"
    folders.write_run(data, "nuclei", n=6)
    folders.write_run(data, "polyp", n=6, empty=6)
    (data / "skin-cancer").mkdir()
    (data / "skin-cancer" / "id.csv").write_text("name,file\na,b\n")
    (data / "busi.npz").write_text("junk")
    given = ("--data", data, "--out", tmp_path / "out", "--repeats", 0, "--resamples", 100, "--workers", 1)
    result = invoke("reproduce", "medical", *given)
    assert result.exit_code == 1, result.output
    assert "polyp could not be judged: ID, foreground: expected at least 2 cases" in result.output
    assert "breast-cancer could not be judged" in result.output
    assert "skin-cancer could not be judged" in result.output
    assert {row["task"] for row in rows_of(tmp_path / "out/tables/areas.csv")} == {"nuclei"}
    told = json.loads((tmp_path / "out/run.json").read_text())
    assert set(told["parameters"]["unusable"]) == {"polyp", "breast-cancer", "skin-cancer"}
    result = invoke("reproduce", "medical", *given, "--tasks", "polyp")
    assert "expected at least one task that can be judged, got none. polyp: ID" in str(result.exception)


def test_results_of_other_settings_are_gone(tmp_path):
    folders.write_run(tmp_path / "runs", "nuclei", n=5)
    given = ("--data", tmp_path / "runs", "--out", tmp_path / "out", "--resamples", 100, "--workers", 1)
    assert invoke("reproduce", "medical", *given, "--repeats", 2).exit_code == 0
    assert (tmp_path / "out/tables/tuning.csv").exists()
    (tmp_path / "out/tables/tuning_of_mine.csv").write_text("kept")
    assert invoke("reproduce", "medical", *given, "--repeats", 0).exit_code == 0
    left = [path.name for path in (tmp_path / "out").rglob("tuning*")]
    assert left == ["tuning_of_mine.csv"]


def test_small_sets_as_published(tmp_path):
    folders.write_run(tmp_path / "runs", "nuclei", n=5)
    given = ("--data", tmp_path / "runs", "--out", tmp_path / "out", "--resamples", 100, "--workers", 1)
    result = invoke("reproduce", "medical", *given, "--repeats", 2, "--as-published")
    assert result.exit_code == 0, result.output
    result = invoke("reproduce", "medical", *given, "--as-published", "--deviations", "tla")
    assert "got both" in str(result.exception)


def test_results_of_a_task_that_can_no_longer_be_judged_are_gone(tmp_path):
    data, out = tmp_path / "runs", tmp_path / "out"
    given = ("--data", data, "--out", out, "--repeats", 0, "--resamples", 100, "--workers", 1)
    folders.write_run(data, "nuclei", n=6)
    folders.write_run(data, "polyp", n=6)
    assert invoke("reproduce", "medical", *given).exit_code == 0
    assert (out / "tasks/polyp/tables/areas.csv").exists()
    folders.write_run(data, "polyp", n=6, empty=6)
    assert invoke("reproduce", "medical", *given).exit_code == 1
    assert not (out / "tasks/polyp/tables/areas.csv").exists()
    assert (out / "tasks/nuclei/tables/areas.csv").exists()


def test_nothing_to_do(tmp_path):
    result = invoke("reproduce", "medical", "--data", tmp_path, "--out", tmp_path / "out")
    assert "expected the maps of at least one task" in str(result.exception)


def test_evaluate_draws_tuning_curves_of_any_maps(tmp_path):
    manifest = folders.write_manifest(tmp_path / "data", "id", 10)
    other = folders.write_manifest(tmp_path / "other", "ood", 8, seed=3)
    how = ("--tune", "sdc-tuned,pla-tuned", "--repeats", 2, "--resamples", 100)
    result = invoke("evaluate", manifest, "--ood", f"far={other}", "-o", tmp_path / "out", *how)
    assert result.exit_code == 0, result.output
    assert re.search(r"far +foreground +PLA\* +4 \(50%\)", result.output)
    assert {row["set"] for row in rows_of(tmp_path / "out/tables/tuning.csv")} == {"ID", "far"}
    assert (tmp_path / "out/figures/tuning_coverage.svg").exists()


def test_evaluate_writes_tables_for_papers_and_shows_cases_with_images(tmp_path):
    manifest = folders.write_manifest(tmp_path / "data", "id", 30, seed=1)
    lines = manifest.read_text().splitlines()
    with_images = [f"{line},{line.split(',')[1]}" for line in lines[1:]]  # maps do as images
    manifest.write_text("\n".join([f"{lines[0]},image", *with_images]))
    result = invoke("evaluate", manifest, "-o", tmp_path / "out", "--resamples", 100)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "out/tables/areas.tex").read_text()
    assert text.startswith(r"\begin{tabular}{l")
    assert "normalised aurc" in text
    assert (tmp_path / "out/figures/examples_id.pdf").exists()


def test_evaluate_tunes_on_several_structures(tmp_path):
    rng = np.random.default_rng(0)
    for kind in ("predictions", "masks"):
        (tmp_path / "data" / kind).mkdir(parents=True)
    for i in range(8):
        p = rng.dirichlet([1.0, 1.0, 1.0], size=(8, 9)).transpose(2, 0, 1)
        np.save(tmp_path / "data/predictions" / f"{i}.npy", p.astype(np.float32))
        np.save(tmp_path / "data/masks" / f"{i}.npy", rng.integers(0, 3, (8, 9)))
    names = {
        "labels": {"background": 0, "a/b": 1, "a-b": 2},
        "channel_names": {"0": "x"},
        "file_ending": ".npy",
    }
    (tmp_path / "dataset.json").write_text(json.dumps(names))
    how = ("--region", "each", "--names", tmp_path / "dataset.json", "--tune", "sdc-tuned", "--repeats", 2)
    result = invoke("evaluate", tmp_path / "data", "-o", tmp_path / "out", *how, "--resamples", 100)
    assert result.exit_code == 0, result.output
    assert {row["structure"] for row in rows_of(tmp_path / "out/tables/tuning.csv")} == {"a/b", "a-b"}
    assert (tmp_path / "out/tables/tuning.tex").exists()
    assert "Estimators that learn" in (tmp_path / "out/report.md").read_text()


def test_one_map_with_nan_stops_no_set(tmp_path):
    folders.write_run(tmp_path / "runs", "nuclei", n=6)
    broken = tmp_path / "runs/nuclei/predictions/maps/id-03.npy"
    p = np.load(broken)
    p[0, 0] = np.nan
    np.save(broken, p)
    given = ("--data", tmp_path / "runs", "--out", tmp_path / "out", "--repeats", 0, "--resamples", 100)
    result = invoke("reproduce", "medical", *given, "--workers", 1)
    assert result.exit_code == 1, result.output
    (row,) = rows_of(tmp_path / "out/tables/sets.csv")
    assert row["cases"] == "5"
    again = invoke("reproduce", "medical", *given, "--workers", 1, "--deviations", "stretched")
    assert "could not be judged" not in again.output


def test_evaluate_lets_tla_learn_from_each_set(tmp_path):
    manifest = folders.write_manifest(tmp_path / "data", "id", 6)
    result = invoke("evaluate", manifest, "-o", tmp_path / "out", "--estimators", "all", "--resamples", 100)
    assert result.exit_code == 0, result.output
    assert "tla" in {row["estimator"] for row in rows_of(tmp_path / "out/tables/areas.csv")}
    refused = invoke("score", manifest, "-o", tmp_path / "scores.csv", "--estimators", "tla")
    assert "tla learns from cases" in str(refused.exception)


def test_tables_of_scores_cannot_be_tuned_on(tmp_path):
    manifest = folders.write_manifest(tmp_path / "data", "id", 6)
    assert invoke("score", manifest, "-o", tmp_path / "scores.csv").exit_code == 0
    result = invoke("evaluate", tmp_path / "scores.csv", "-o", tmp_path / "out", "--tune", "all")
    assert "--tune applies to maps" in str(result.exception)


def test_maps_that_have_changed_are_learned_from_anew(tmp_path):
    manifest = folders.write_manifest(tmp_path / "data", "id", 6)
    given = ("evaluate", manifest, "-o", tmp_path / "out", "--estimators", "sdc,tla", "--resamples", 100)
    assert invoke(*given).exit_code == 0
    before = rows_of(tmp_path / "out/tables/areas.csv")
    folders.write_manifest(tmp_path / "data", "id", 6, seed=9)
    result = invoke(*given)
    assert result.exit_code == 0, result.output
    after = rows_of(tmp_path / "out/tables/areas.csv")
    fresh = invoke("evaluate", manifest, "-o", tmp_path / "fresh", *given[4:])
    assert fresh.exit_code == 0
    assert after == rows_of(tmp_path / "fresh/tables/areas.csv") != before
