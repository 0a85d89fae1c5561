"""Tables and figures of promises under drift."""

import csv
import json

import numpy as np
import pytest

from segtrust.errors import TooFewCasesError
from segtrust.paper.drift import simulation as module
from segtrust.paper.drift.report import curve_rows, reproduce_drift, shown, summarise_drift
from segtrust.paper.drift.simulation import DRIFTS, DriftResults, DriftSettings, Simulated, run_drift

pytestmark = pytest.mark.needs("matplotlib")
FEW = DriftSettings(runs=4, before=20, after=40, batch=20)
NEVER, NONE = np.inf, DRIFTS[0]


def results(**changed):
    """Four streams of 20 cases before and 40 after the change, of which the second alarms too early."""
    arrays = {
        "threshold": np.full(4, 0.9),
        "martingale": np.array([30.0, 10.0, 50.0, NEVER]),
        "batch": np.array([40.0, 40.0, 60.0, NEVER]),
        "quiet_alarms": np.array([0.0, 1.0, 0.0, 0.0]),
        "broken_now": np.full(4, 21.0),
        "broken_since": np.array([35.0, 35.0, 35.0, NEVER]),
        "exposed_martingale": np.array([5.0, 0.0, 20.0, 30.0]),
        "exposed_batch": np.array([9.0, 9.0, 25.0, 30.0]),
        **{name: np.tile([0.1, 0.2, 0.3], (4, 1)) for name in ("risk_now", "risk_since")},
        "taken": np.tile([10, 10, 0], (4, 1)),
        "lost": np.tile([1.0, 2.0, 0.0], (4, 1)),
    }
    return DriftResults(FEW, {NONE: {**arrays, **changed}}, {NONE: Simulated(NONE, FEW)})


def test_alarms_come_first_late_or_never():
    martingale, batch = summarise_drift(results())
    assert martingale["false"] == batch["false"] == 0.25
    assert (martingale["ever"], martingale["streams"]) == (0.75, 4)
    assert [martingale[name] for name in ("delay_low", "delay", "delay_high")] == [10, 30, NEVER]
    assert [martingale[f"{name}_since"] for name in ("broken", "first", "late", "never")] == pytest.approx(
        [2 / 3, 0.5, 0.5, 0.0]
    )
    assert [martingale[f"{name}_now"] for name in ("broken", "first", "late", "never")] == pytest.approx(
        [1.0, 0.0, 2 / 3, 1 / 3]
    )
    assert (martingale["exposed"], batch["exposed"]) == (20, 17)
    assert [batch[f"{name}_since"] for name in ("broken", "first", "late", "never")] == [0.75, 0.0, 1.0, 0.0]


def test_streams_without_a_threshold_do_not_count():
    threshold = np.array([np.nan, 0.9, 0.9, 0.9])
    curves = {name: np.tile([0.1, 0.2, 0.3], (3, 1)) for name in ("risk_now", "risk_since", "taken", "lost")}
    (row, _) = summarise_drift(results(threshold=threshold, **curves))
    assert (row["streams"], row["ever"]) == (3, pytest.approx(2 / 3))
    with pytest.raises(TooFewCasesError, match="at least one of 4, got none that can be certified"):
        summarise_drift(results(threshold=np.full(4, np.nan)))


def test_curves_are_counted_from_the_change():
    rows = curve_rows(results())
    assert [row["cases"] for row in rows] == [0, 20, 40]
    assert [row["martingale"] for row in rows] == [0.25, 0.5, 0.75]
    assert [row["batch"] for row in rows] == [0, 0.5, 0.75]
    assert [row["risk_observed"] for row in rows[:2]] == pytest.approx([0.1, 0.2])
    assert np.isnan(rows[2]["risk_observed"])  # nobody was accepted


def test_what_never_happens_is_said_in_words():
    row = {"drift": "none", "streams": 4, "risk_before": 0.08751, "delay": NEVER, "first_now": np.nan}
    assert shown([row | {"never_now": 0.25}]) == [
        {
            "drift": "none",
            "streams": "4",
            "risk_before": "0.088",
            "delay": "never",
            "first_now": "",
            "never_now": "25.0%",
        }
    ]


def test_a_run_writes_tables_and_figures_and_goes_on(tmp_path, monkeypatch):
    few = tuple(drift for drift in DRIFTS if drift.strength in ("", "strong"))[:3]
    monkeypatch.setattr(module, "DRIFTS", few)
    settings = DriftSettings(runs=1, before=20, after=40, batch=20)
    run_drift(settings, folder=tmp_path / "parts")
    reproduce_drift(tmp_path, settings)
    assert json.loads((tmp_path / "run.json").read_text())["parameters"]["reused parts"] == 3
    written = {path.name for folder in ("tables", "figures") for path in (tmp_path / folder).iterdir()}
    figures = {
        f"{name}.{each}" for name in ("drift_risk_strong", "drift_alarms") for each in ("png", "pdf", "svg")
    }
    assert written == {"drift.csv", "drift.md", "drift_curves.csv"} | figures
    with (tmp_path / "tables/drift.csv").open(newline="") as file:
        assert [row["alarm"] for row in csv.DictReader(file)] == ["martingale", "batch"] * 3
