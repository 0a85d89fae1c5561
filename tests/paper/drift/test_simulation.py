"""Kinds of drift: what changes and what does not, and that true risks are those of the cases."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.errors import ParameterError, TooFewCasesError
from segtrust.io import Table
from segtrust.paper.drift import simulation as module
from segtrust.paper.drift.simulation import (
    DRIFTS,
    ELSEWHERE,
    Change,
    Drift,
    DriftSettings,
    Recorded,
    Simulated,
    run_drift,
)

LONG = DriftSettings(before=1000, after=200_000)
FEW = DriftSettings(runs=2, cases=300, before=20, after=40, batch=20, target_risk=0.15)


def by_name(name):
    return next(drift for drift in DRIFTS if drift.name == name)


def drawn(drift, seed=0):
    return Simulated(drift, LONG).draw(np.random.default_rng(seed))


def test_names_differ():
    assert len({drift.name for drift in DRIFTS}) == len(DRIFTS) == 16


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift.name)
def test_true_risks_are_those_of_many_cases(drift):
    source, threshold = Simulated(drift, LONG), 0.88
    stream, risk = drawn(drift), source.true_risk(threshold)
    last = slice(-100_000, None)  # the ramp has ended
    accepted = stream.confidence[last] >= threshold
    assert risk.accepted[-1] == pytest.approx(accepted.mean(), abs=0.006)
    assert risk.now[-1] == pytest.approx(stream.loss[last][accepted].mean(), abs=0.004)
    assert risk.now[0] == pytest.approx(Simulated(DRIFTS[0], LONG).true_risk(threshold).now[0])


def test_a_confidence_of_harder_cases_means_what_it_meant():
    population = Simulated(DRIFTS[0], LONG).population
    known = dict(zip(population.confidence.tolist(), population.loss.tolist(), strict=True))
    stream = drawn(by_name("harder-cases-at-once-strong"))
    assert all(known[each] == loss for each, loss in zip(stream.confidence, stream.loss, strict=True))
    assert stream.confidence[1000:].mean() < stream.confidence[:1000].mean() - 0.1


def test_worse_masks_leave_the_confidences_alone():
    same, worse = drawn(DRIFTS[0]), drawn(by_name("worse-masks-as-confident-strong"))
    assert np.array_equal(same.confidence, worse.confidence)
    assert np.array_equal(same.loss[:1000], worse.loss[:1000])
    assert np.allclose(1 - worse.loss[1000:], 0.9 * (1 - same.loss[1000:]))


def test_over_confidence_raises_both():
    same, bolder = drawn(DRIFTS[0]), drawn(by_name("worse-masks-more-confident-weak"))
    assert (bolder.confidence[1000:] > same.confidence[1000:]).all()
    assert (bolder.loss[1000:] > same.loss[1000:]).all()


def test_levels():
    assert Drift("sudden").levels(2, 3).tolist() == [0, 0, 1, 1, 1]
    gradual = Drift("gradual", ramp=40).levels(1, 50)
    assert gradual[:6].tolist() == pytest.approx([0, 0.05, 0.05, 0.1, 0.1, 0.15])
    assert gradual[40:].tolist() == [1.0] * 11


def test_half_a_tilt_is_between():
    ranks = [Change(tilt=2.0).ranks(np.array([0.0, 0.5, 1.0]), level) for level in (0.0, 0.5, 1.0)]
    assert ranks[0].tolist() == pytest.approx([0.0, 0.5, 1.0], abs=1e-6)
    assert 0.5 < ranks[1][1] < ranks[2][1] < 1.0
    assert ranks[2][[0, 2]].tolist() == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize(("name", "value"), [("runs", 0), ("cases", 1), ("before", 10), ("after", 10)])
def test_settings_that_make_no_streams_are_refused(name, value):
    with pytest.raises(ParameterError, match=f"{name}: expected a whole number of at least"):
        replace(FEW, **{name: value})


def test_more_runs_go_on_with_those_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DRIFTS", DRIFTS[:2])
    monkeypatch.setattr(module, "_BLOCK", 1)
    run_drift(replace(FEW, runs=1), folder=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = run_drift(FEW, folder=tmp_path)
    assert len(before) == 2
    assert {path: path.stat().st_mtime_ns for path in before} == before
    at_once = run_drift(FEW)
    for drift, arrays in at_once.streams.items():
        for name, each in arrays.items():
            assert np.array_equal(each, again.streams[drift][name], equal_nan=True)


def table(n, level):
    rng = np.random.default_rng(n)
    dice = np.clip(level + 0.1 * rng.standard_normal(n), 0.01, 1)
    rows = [{"case": str(i), "sdc": each, "dice": each, "truth_ratio": 0.1} for i, each in enumerate(dice)]
    return Table.of([*rows, {"case": "empty", "sdc": 0.5, "dice": 0.0, "truth_ratio": 0.0}])


def test_recorded_cases():
    found = Recorded.of([table(60, 0.9), table(40, 0.9)], [table(50, 0.6)])
    assert (found.inside.shape, found.outside.shape, found.change) == ((2, 100), (2, 50), 25)
    stream = found.draw(np.random.default_rng(0))
    assert stream.calibration.n == 75
    assert sorted(stream.confidence[25:]) == sorted(found.outside[0])
    inside = np.append(stream.calibration.loss, stream.loss[:25])
    assert sorted(inside) == pytest.approx(sorted(found.inside[1]))
    risk, accepted = found.true_risk(0.6), found.outside[0] >= 0.6
    assert risk.now.size == stream.confidence.size
    assert risk.now[-1] == pytest.approx(found.outside[1][accepted].mean())
    assert found.digest != Recorded(found.outside[:, :50].repeat(2, axis=1), found.outside).digest


def test_recorded_cases_are_watched_beside_the_others(monkeypatch):
    monkeypatch.setattr(module, "DRIFTS", DRIFTS[:1])
    recorded = Recorded.of([table(160, 0.9)], [table(60, 0.6)])
    results = run_drift(FEW, recorded=recorded)
    assert list(results.streams) == [DRIFTS[0], ELSEWHERE]
    assert np.isfinite(results.streams[ELSEWHERE]["martingale"]).all()


def test_tables_without_truths_or_cases_are_refused():
    with pytest.raises(
        ParameterError, match=r"outside: expected a score table with the column 'dice'.*--truth"
    ):
        Recorded.of([table(100, 0.9)], [Table.of([{"case": "a", "sdc": 0.5}])])
    with pytest.raises(TooFewCasesError, match="inside: expected at least 80 cases, got 60"):
        Recorded.of([table(60, 0.9)], [table(60, 0.9)])
