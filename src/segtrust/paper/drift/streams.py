"""Cases that arrive one by one under a certified policy: when its promise breaks, and when an alarm goes off.

The alarms are those of the project: the martingale of the review desk, which looks after every case, and the
test of ``segtrust triage``, which looks at each batch by itself. Both see confidences and no losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from segtrust.policy import Policy, Scoring
from segtrust.selective import CalibrationCases, ExchangeabilityMartingale, Target, certify, drift_test

__all__ = ["ALPHA", "WINDOW", "Stream", "StreamSource", "TrueRisk", "Watched", "watch_stream"]

ALPHA = 0.05
"""Level of the alarms, that of the desk and of ``triage``."""

WINDOW = 20
"""Cases of a window, over which curves are drawn."""

_ESTIMATOR = "sdc"


@dataclass(frozen=True, eq=False)
class Stream:
    """What one hospital sees.

    Attributes
    ----------
    calibration
        Labelled cases, from which the policy is made.
    confidence, loss
        Of the cases that arrive, in their order.
    """

    calibration: CalibrationCases
    confidence: Any
    loss: Any


@dataclass(frozen=True, eq=False)
class TrueRisk:
    """What a threshold does to the cases that could have arrived, one number for each place of a stream.

    Attributes
    ----------
    accepted
        Chance that the case is accepted.
    lost
        Expected loss, in which a case that is not accepted counts 0.
    """

    accepted: Any
    lost: Any

    @property
    def now(self) -> Any:
        """Selective risk at the moment; NaN where no case would be accepted."""
        return _ratio(self.lost, self.accepted)

    @property
    def since_start(self) -> Any:
        """Selective risk of all accepted cases since the beginning; NaN while there is none."""
        return _ratio(np.cumsum(self.lost), np.cumsum(self.accepted))


def _ratio(lost: Any, accepted: Any) -> Any:
    return np.divide(lost, accepted, out=np.full(np.shape(lost), np.nan), where=accepted > 0.0)


class StreamSource(Protocol):
    """Where streams come from."""

    @property
    def change(self) -> int:
        """Cases that arrive before anything changes."""
        ...

    def draw(self, rng: np.random.Generator) -> Stream:
        """Give a stream."""
        ...

    def true_risk(self, threshold: float) -> TrueRisk:
        """Give what a threshold does to its cases."""
        ...


@dataclass(frozen=True, eq=False)
class Watched:
    """What came of one stream; counts of cases are infinite where something never happens.

    Attributes
    ----------
    threshold
        NaN where none could be certified, and then there is nothing else.
    martingale
        Cases until the martingale alarmed.
    batch
        Cases until the end of the first batch after the change that alarmed.
    quiet_alarms
        Share of the batches before the change that alarmed.
    broken_now, broken_since
        Cases until the true risk, at the moment and since the beginning, was above the target.
    exposed_martingale, exposed_batch
        Cases that were accepted while the risk of the moment was above the target, until each alarm.
    risk_now, risk_since
        True risks at the end of each window of cases.
    taken, lost
        Cases that were accepted in each window, and the sum of their losses.
    """

    threshold: float
    martingale: float = np.inf
    batch: float = np.inf
    quiet_alarms: float = 0.0
    broken_now: float = np.inf
    broken_since: float = np.inf
    exposed_martingale: float = 0.0
    exposed_batch: float = 0.0
    risk_now: Any = None
    risk_since: Any = None
    taken: Any = None
    lost: Any = None


def watch_stream(source: StreamSource, target: Target, rng: np.random.Generator, *, batch: int) -> Watched:
    """Certify a policy on calibration cases, and watch the cases that arrive under it.

    Parameters
    ----------
    source
        Of the cases.
    target
        What is promised, at the usual level.
    rng
        Of the draw.
    batch
        Cases that ``triage`` gets at a time; the change comes between two batches.
    """
    stream = source.draw(rng)
    certificate = certify(stream.calibration, [target])
    if certificate.threshold is None:
        return Watched(np.nan)
    policy = Policy.from_certificate(certificate, Scoring(_ESTIMATOR))
    risk = source.true_risk(policy.threshold)
    reference = np.sort(stream.calibration.confidence).tolist()
    quiet, later = np.split(stream.confidence, [source.change])
    taken = stream.confidence >= policy.threshold
    alarms = {
        "martingale": _martingale_alarm(reference, stream.confidence),
        "batch": source.change + _first_batch(reference, later, batch),
    }
    unkept = taken & (risk.now > target.risk)
    return Watched(
        policy.threshold,
        **alarms,
        quiet_alarms=float(np.mean([_alarms(reference, each) for each in _pieces(quiet, batch)])),
        broken_now=_first(risk.now > target.risk),
        broken_since=_first(risk.since_start > target.risk),
        **{f"exposed_{name}": _count_until(unkept, at) for name, at in alarms.items()},
        risk_now=risk.now[WINDOW - 1 :: WINDOW],
        risk_since=risk.since_start[WINDOW - 1 :: WINDOW],
        taken=np.sum(_pieces(taken, WINDOW), axis=1),
        lost=np.sum(_pieces(np.where(taken, target.losses(stream.loss), 0.0), WINDOW), axis=1),
    )


def _count_until(happens: Any, at: float) -> float:
    """Count how often something happens up to a case."""
    return float(happens[: int(min(at, happens.size))].sum())


def _martingale_alarm(reference: Sequence[float], confidences: Any) -> float:
    """Give the number of cases after which the desk's martingale alarms; no case after that is looked at."""
    watch = ExchangeabilityMartingale(reference, alpha=ALPHA)
    for confidence in confidences:
        if watch.update(confidence).alarm:
            return float(watch.state.n)
    return np.inf


def _pieces(confidences: Any, size: int) -> list[Any]:
    """Cut a stream; a rest that is smaller than a piece is left out."""
    return [confidences[at : at + size] for at in range(0, len(confidences) - size + 1, size)]


def _first_batch(reference: Sequence[float], confidences: Any, size: int) -> float:
    """Return the cases up to the end of the first batch that alarms, tested as ``triage`` does."""
    for number, batch in enumerate(_pieces(confidences, size), start=1):
        if _alarms(reference, batch):
            return float(number * size)
    return np.inf


def _alarms(reference: Sequence[float], batch: Any) -> bool:
    return drift_test(reference=reference, new=batch, alpha=ALPHA).alarm


def _first(happens: Any) -> float:
    """Give the number of the first case for which something holds, counted from 1."""
    return float(np.argmax(happens)) + 1.0 if happens.any() else np.inf
