"""One stream under a policy: when its promise breaks, when alarms go off, and that they are those in use."""

from dataclasses import replace

import numpy as np
import pytest

from segtrust.io import Table
from segtrust.paper.drift.streams import ALPHA, WINDOW, Stream, TrueRisk, watch_stream
from segtrust.policy import Policy, Reference, Scoring
from segtrust.review.monitoring import Monitor
from segtrust.review.rows import Rows
from segtrust.selective import CalibrationCases, Target, certify, drift_test

TARGET = Target(0.3)
CHANGE, AFTER, BATCH = 40, 120, 40


class Falling:
    """Uniform confidences whose losses are half of what is missing to 1; later they are lower, and worse."""

    change = CHANGE

    def __init__(self, fall=0.3, lost=0.2):
        self.fall, self.lost = fall, lost

    def draw(self, rng):
        labelled, reference = rng.random(300), rng.random(100)
        early, late = rng.random(CHANGE), rng.random(AFTER)
        confidence = np.append(early, late - self.fall)
        loss = np.append((1 - early) / 2, (1 - late) / 2 + self.lost)
        return Stream(CalibrationCases(labelled, (1 - labelled) / 2, reference=reference), confidence, loss)

    def true_risk(self, threshold):
        shares = np.repeat([1 - threshold, 1 - threshold - self.fall], [CHANGE, AFTER])
        means = np.repeat([(1 - threshold) / 4, (1 - threshold - self.fall) / 4 + self.lost], [CHANGE, AFTER])
        return TrueRisk(shares, shares * means)


def stream_and_policy(source, seed):
    """Draw what `watch_stream` draws from the same seed."""
    stream = source.draw(np.random.default_rng(seed))
    return stream, Policy.from_certificate(certify(stream.calibration, [TARGET]), Scoring("sdc"))


def watched(source, seed=0):
    return watch_stream(source, TARGET, np.random.default_rng(seed), batch=BATCH)


def test_true_risks_now_and_since_the_start():
    risk = TrueRisk(np.array([0.5, 0.5, 0.25]), np.array([0.05, 0.05, 0.1]))
    assert risk.now.tolist() == pytest.approx([0.1, 0.1, 0.4])
    assert risk.since_start.tolist() == pytest.approx([0.1, 0.1, 0.16])
    nobody = TrueRisk(np.array([0.5, 0.0]), np.array([0.05, 0.0]))
    assert nobody.now.tolist() == pytest.approx([0.1, np.nan], nan_ok=True)
    assert nobody.since_start.tolist() == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize("fall", [0.0, 0.15, 0.4])
def test_the_alarm_is_that_of_the_desk(fall):
    source = Falling(fall)
    stream, policy = stream_and_policy(source, 3)
    rows = [
        {"case": str(at), "structure": "", "sdc": each} for at, each in enumerate(stream.confidence.tolist())
    ]
    known = replace(policy, reference=Reference(tuple(np.sort(stream.calibration.confidence))))
    desk = Monitor({"": known}).look(Rows(Table.of(rows), "sdc", np.arange(len(rows))), None)
    assert watched(source, 3).martingale == (desk.martingale.alarmed_after or np.inf)


def test_batches_are_tested_one_by_one_from_the_change_on():
    source = Falling(0.2)
    stream, _ = stream_and_policy(source, 1)
    reference = np.sort(stream.calibration.confidence)
    alarms = [
        drift_test(reference=reference, new=stream.confidence[at : at + BATCH], alpha=ALPHA).alarm
        for at in range(0, CHANGE + AFTER, BATCH)
    ]
    found = watched(source, 1)
    assert any(alarms[1:])
    assert found.batch == CHANGE + BATCH * (alarms[1:].index(True) + 1)
    assert found.quiet_alarms == alarms[0]


def test_the_promise_breaks_at_once_and_later_for_all():
    found = watched(Falling(0.0))
    assert found.broken_now == CHANGE + 1
    assert CHANGE + 1 < found.broken_since < CHANGE + AFTER
    assert watched(Falling(0.0, lost=0.0)).broken_now == np.inf


def test_cases_accepted_above_the_target_are_counted_until_the_alarm():
    source = Falling(0.1)
    stream, policy = stream_and_policy(source, 2)
    found = watched(source, 2)
    until = int(min(found.martingale, CHANGE + AFTER))
    assert until > CHANGE
    assert found.exposed_martingale == (stream.confidence[CHANGE:until] >= policy.threshold).sum()
    assert found.taken.sum() == (stream.confidence >= policy.threshold).sum()
    assert found.taken.size == found.risk_now.size == (CHANGE + AFTER) // WINDOW
    assert found.lost.sum() == pytest.approx(stream.loss[stream.confidence >= policy.threshold].sum())


def test_without_a_threshold_there_is_nothing_to_watch():
    found = watch_stream(Falling(), Target(0.001), np.random.default_rng(0), batch=BATCH)
    assert np.isnan(found.threshold)
    assert found.risk_now is None
