"""Answers of the desk, put together from its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from segtrust.errors import SegtrustError
from segtrust.policy import Policy
from segtrust.review.desk import Desk
from segtrust.review.entries import Entry
from segtrust.review.models import (
    CaseDetail,
    EntryAnswer,
    FailedCase,
    LossAnswer,
    MonitoringAnswer,
    PolicyAnswer,
    RunAnswer,
    TargetAnswer,
    ViewAnswer,
)
from segtrust.review.pictures import CaseView
from segtrust.review.rows import estimators_of
from segtrust.review.tiles import TILE
from segtrust.risks import describe_loss, find_risk

__all__ = ["detail_of", "entries_of", "monitoring_of", "run_of"]

_SHOWN_FAILURES = 100


def run_of(desk: Desk) -> RunAnswer:
    """Say what is looked at."""
    now = desk.run.now()
    rows = now.rows
    failed = [FailedCase(case=each.case, kind=each.kind, reason=each.reason) for each in now.failures]
    return RunAnswer(
        title=desk.title,
        estimator=rows.estimator,
        estimators=estimators_of(rows.table),
        structures=rows.known("structure"),
        sets=rows.known("set"),
        groups=rows.known("group"),
        rows=rows.size,
        finished=now.finished,
        stopped=now.stopped,
        failures=len(failed),
        failed=failed[:_SHOWN_FAILURES],
        has_truth=bool(np.isfinite(rows.dice).any()),
        has_loss=bool(np.isfinite(rows.loss).any()),
        loss=_loss(rows.loss_name),
        policies={name: _policy(policy) for name, policy in desk.standing_policies(now).items()},
        reviewers=desk.standings().reviewers,
        reviewer=desk.reviewer,
        minutes=desk.minutes,
        version=now.version,
        instance=desk.instance,
    )


def _loss(name: str | None) -> LossAnswer:
    risk = find_risk(name or "")
    return LossAnswer(name=name, label=describe_loss(name or "loss"), unit=risk.unit if risk else "")


def _policy(policy: Policy) -> PolicyAnswer:
    return PolicyAnswer(
        threshold=policy.threshold,
        standing=str(policy.status),
        text=str(policy),
        digest=policy.fingerprint,
        probability=1.0 - policy.total_delta,
        targets=[
            TargetAnswer(risk=each.risk, below_dice=each.below_dice, text=str(each))
            for each in policy.targets
        ],
    )


def detail_of(desk: Desk, number: int, threshold: float | None = None) -> CaseDetail:
    """Give a row with all that is known of it, and how it can be looked at, or why it cannot."""
    known = desk.summary(number, threshold)
    scores, history = desk.scores(number), entries_of(desk, desk.history(number))
    view, problem = None, None
    try:
        view = _view(desk.case(number))
    except SegtrustError as error:
        problem = _as_text(str(error))
    return CaseDetail(**known, scores=scores, history=history, view=view, problem=problem)


def _view(case: CaseView) -> ViewAnswer:
    return ViewAnswer(
        dimensions=case.dimensions,
        shape=list(case.shape),
        spacing_mm=None if case.spacing_mm is None else list(case.spacing_mm),
        layers=case.layers,
        levels=case.levels,
        tile=TILE,
        plane=case.plane,
        slices=case.slices,
        window=case.window,
        note=_as_text(case.note),
    )


def _as_text(told: str) -> str:
    """Give what can be sent: names of files are bytes."""
    return told.encode("utf-8", "backslashreplace").decode()


def entries_of(desk: Desk, entries: Sequence[Entry]) -> list[EntryAnswer]:
    """Say of entries which rows they are about, and whether they hold."""
    rows = desk.run.now().rows
    return [
        EntryAnswer.of(entry, desk.number_of(entry, rows), holds)
        for entry, holds in zip(entries, desk.holds(entries), strict=True)
    ]


def monitoring_of(desk: Desk, structure: str | None) -> MonitoringAnswer:
    """Say whether the threshold still holds."""
    found = desk.monitoring(structure)
    return MonitoringAnswer(
        reference=found.reference,
        new=found.new,
        left_out=found.left_out,
        drift=found.drift,
        martingale=found.martingale,
        agreement=desk.agreement(structure),
        audit=desk.audit(structure),
    )
