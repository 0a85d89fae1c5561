"""``segtrust reproduce drift``."""

import csv

import numpy as np
import pytest

from segtrust.paper.drift import simulation
from tests.commands import segtrust

pytestmark = pytest.mark.needs("matplotlib")


def write_scores(path, n, level):
    """Write a score table in which the confidence is the Dice; all differ, as ties are broken at random."""
    dice = level + 0.05 * np.tanh(np.random.default_rng(n).standard_normal(n))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "sdc", "dice", "truth_ratio"])
        writer.writerows([str(at), each, each, 0.1] for at, each in enumerate(dice))
    return str(path)


@pytest.mark.slow
def test_tables_and_figures_of_drifts_and_of_real_cases(tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "DRIFTS", simulation.DRIFTS[:2])
    inside, outside = (write_scores(tmp_path / f"{n}.csv", n, level) for n, level in ((160, 0.95), (60, 0.7)))
    run = ("reproduce", "drift", "--out", tmp_path / "run", "--runs", "1", "--workers", "1")
    done = segtrust(*run, "--inside", inside, "--outside", outside)
    assert done.returncode == 0, done.stderr
    assert "| other data |  | martingale | 1 |" in done.stdout
    with (tmp_path / "run/tables/drift.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 3
    figures = {path.stem for path in (tmp_path / "run/figures").iterdir()}
    assert figures == {"drift_alarms", "drift_risk_weak", "drift_risk_elsewhere"}


def test_one_kind_of_real_cases_alone_is_refused(tmp_path):
    scores = write_scores(tmp_path / "scores.csv", 100, 0.9)
    done = segtrust("reproduce", "drift", "--out", tmp_path / "run", "--inside", scores)
    assert done.returncode == 2
    assert "--inside, --outside: expected tables for both or none, got one of them." in done.stderr
    assert not (tmp_path / "run").exists()
