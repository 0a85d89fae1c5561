"""The simulation itself, and that guarantees hold in it."""

import numpy as np
import pytest
from scipy.stats import binom

from segtrust.paper import validity
from segtrust.paper.validity import DELTA, Population, dice_population, settings, simulate_validity
from segtrust.selective import Target


def test_population_reads_true_risks():
    population = Population(np.array([0.9, 0.7, 0.7, 0.1]), np.array([0.0, 0.5, 0.1, 0.9]))
    assert population.true_risks(Target(0.1)).tolist() == pytest.approx([0, 0.25, 0.2, 0.375])
    assert [population.accepted(t) for t in (1, 0.9, 0.7, 0.5, 0)] == [0, 1, 3, 3, 4]


def test_confidence_is_informative_but_too_high():
    population = dice_population(size=20_000)
    assert np.corrcoef(population.confidence, population.loss)[0, 1] < -0.7
    assert population.confidence.mean() > 1 - population.loss.mean()


def test_more_draws_go_on_with_those_that_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(validity, "_BLOCK", 2)
    once = simulate_validity(draws=4)
    simulate_validity(draws=2, folder=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert simulate_validity(draws=4, folder=tmp_path) == once
    assert len(before) == len(settings())
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_share_far_above_the_level_is_a_broken_guarantee():
    setting, size = settings()[0], 400_000
    everything = validity._outcome(setting, 0, np.full(200, size))
    some = validity._outcome(setting, 0, np.repeat([size, 0], [10, 190]))
    assert (everything.broken, everything.is_kept(), some.broken, some.is_kept()) == (1.0, False, 0.05, True)
    many = validity._outcome(setting, 0, np.repeat([size, 0], [18, 182]))
    assert (many.is_kept(), many.is_kept(rows=300)) == (False, True), "some of many rows are high by chance"
    assert some.broken_low == pytest.approx(0.0242, abs=1e-4)  # Clopper-Pearson of 10 in 200
    assert some.broken_high == pytest.approx(0.0900, abs=1e-4)


@pytest.mark.slow
def test_promises_are_kept():
    done = []
    outcomes = simulate_validity(draws=400, advance=done.append)
    assert len(outcomes) == len(settings())
    assert sum(done) == 400 * len(outcomes)
    for outcome in outcomes:
        assert binom.sf(round(outcome.broken * 400) - 1, 400, DELTA) > 1e-3, outcome
    key = ("good model, mean loss", "adaptive-betting", 1000)
    best = next(each for each in outcomes if (each.scenario, each.p_value, each.n) == key)
    assert best.certified == 1
    assert best.coverage > 0.7
