"""``segtrust reproduce``: the tables of each experiment, with the smallest settings that say something."""

import json

import numpy as np
import pytest

from tests.behaviour.decision_data import make_case, score_rows, write_cases, write_rows
from tests.behaviour.helpers import assert_golden, read_csv
from tests.commands import segtrust

pytestmark = pytest.mark.needs("matplotlib", "pyarrow")
NEAR_ZERO = 1e-13  # differences cancel
WORDS = ("target",)


def reproduce(name, out, *options):
    """Run an experiment and return its tables as columns and rows of values."""
    done = segtrust("reproduce", name, "--out", out, *options)
    assert done.returncode == 0, done.stderr
    content = json.loads((out / "run.json").read_text())
    assert (content["format"], content["command"]) == ("segtrust-run-1", f"reproduce {name}")
    tables = {path.stem: read_csv(path, without=WORDS) for path in sorted((out / "tables").glob("*.csv"))}
    return {name: [list(rows[0]), *(list(row.values()) for row in rows)] for name, rows in tables.items()}


def figures_of(out):
    return sorted({path.stem for path in (out / "figures").iterdir()})


def test_synthetic(tmp_path):
    out = tmp_path / "run"
    tables = reproduce("synthetic", out, "--images", 12, "--repeats", 1, "--workers", 1)
    assert_golden("decisions/reproduce_synthetic", {"tables": tables, "figures": figures_of(out)})


def test_validity(tmp_path):
    out = tmp_path / "run"
    tables = reproduce("validity", out, "--draws", 2, "--seed", 1, "--workers", 1)
    assert_golden("decisions/reproduce_validity", {"tables": tables, "figures": figures_of(out)})


def test_drift(tmp_path):
    out = tmp_path / "run"
    tables = reproduce("drift", out, "--runs", 1, "--workers", 1)
    curves = tables["drift_curves"]
    tables["drift_curves"] = [curves[0], len(curves), *curves[25::100]]
    assert_golden("decisions/reproduce_drift", {"tables": tables, "figures": figures_of(out)})


def test_drift_needs_both_kinds_of_cases(tmp_path):
    table = write_rows(tmp_path / "scores.csv", score_rows(40))
    done = segtrust("reproduce", "drift", "--out", tmp_path / "run", "--inside", table)
    assert done.returncode == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.needs("PIL", "sklearn")
def test_tuning(tmp_path):
    from PIL import Image

    for number in range(14):
        p, truth = make_case(number)
        images = {"predictions": np.round(255 * p.astype(float)), "masks": 255 * truth}
        for name, values in images.items():
            (tmp_path / "data" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray(values.astype(np.uint8)).save(tmp_path / "data" / name / f"{number:02}.png")
    out = tmp_path / "run"
    options = ("--data", tmp_path / "data", "--repeats", 1, "--workers", 1)
    tables = reproduce("tuning", out, *options)
    for name, rows in tables.items():  # forests are those of scikit-learn, and change with it
        tables[name] = [row for row in rows if not str(row[0]).startswith("aef")]
        assert len({row[0] for row in rows} - {row[0] for row in tables[name]}) == 2
    assert_golden("decisions/reproduce_tuning", {"tables": tables, "figures": figures_of(out)})


def test_decoding(tmp_path):
    maps = write_cases(tmp_path / "maps", 12, truth_folder=tmp_path / "truth", empty_truth=(4,))
    paths = {name: tmp_path / f"{name}.csv" for name in ("usual", "decoded")}
    for name, options in (("usual", ()), ("decoded", ("--decode", "dice-optimal"))):
        done = segtrust("score", maps, "--truth", tmp_path / "truth", "-o", paths[name], *options)
        assert done.returncode == 0, done.stderr
    sources = ("--usual", paths["usual"], "--decoded", paths["decoded"])
    tables = reproduce("decoding", tmp_path / "run", *sources, "--resamples", 100)
    assert_golden("decisions/reproduce_decoding", tables, abs_tol=NEAR_ZERO)
    others = write_rows(tmp_path / "others.csv", score_rows(12, seed=3))
    done = segtrust("reproduce", "decoding", "--out", tmp_path / "other", *sources[:3], others)
    assert done.returncode == 2


def write_task(folder, name, count, first, **options):
    write_cases(folder / f"{name}-maps", count, first=first, truth_folder=folder / f"{name}-truth", **options)
    rows = [
        {
            "case": f"{name}-{number:02}",
            "probabilities": f"{name}-maps/case_{number:03d}.npy",
            "truth": f"{name}-truth/case_{number:03d}.npy",
        }
        for number in range(count)
    ]
    write_rows(folder / f"{name}.csv", rows)


def test_medical(tmp_path):
    """One task in the layout of ``segtrust tasks``, and one in an archive of the authors' kind."""
    write_task(tmp_path / "data/polyp/predictions", "id", 10, 0, empty_truth=(3,))
    write_task(tmp_path / "data/polyp/predictions", "ood-other", 8, 500)
    pairs = [make_case(seed) for seed in range(700, 709)]
    maps, truth = (np.array([pair[at] for pair in pairs], np.float32)[:, None] for at in (0, 1))
    np.savez(tmp_path / "data/nuclei.npz", p_hat=maps, y=truth)
    out = tmp_path / "run"
    options = ("--repeats", 0, "--resamples", 100, "--workers", 1)
    tables = reproduce("medical", out, "--data", tmp_path / "data", *options)
    parameters = json.loads((out / "run.json").read_text())["parameters"]
    values = {"tables": tables, "figures": figures_of(out), "tasks": parameters["tasks"]}
    assert_golden("decisions/reproduce_medical", values, abs_tol=NEAR_ZERO)


def test_medical_without_any_task(tmp_path):
    done = segtrust("reproduce", "medical", "--data", tmp_path, "--out", tmp_path / "run", "--repeats", 0)
    assert done.returncode == 2
    assert not list(tmp_path.glob("run/tables/*"))
