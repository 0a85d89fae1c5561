"""Audit on the desk: a random share of accepted cases, and what their verdicts say about the guarantee."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from segtrust.engine import loss_of_target
from segtrust.policy import Decision, Policy
from segtrust.review.entries import Verdict
from segtrust.review.rows import Rows
from segtrust.selective import AuditBound, Target, draw_audit

__all__ = ["AUDIT_SHARE", "Audit", "audit_accepted"]

AUDIT_SHARE = 0.1
"""Share of the accepted cases that is audited, unless another is requested."""


@dataclass(frozen=True)
class Audit:
    """Audit of the accepted cases of a policy.

    Attributes
    ----------
    text
        The result in words.
    alarm
        Whether the audit shows that the guarantee is broken.
    confirmed
        Whether the audit confirms the guarantee.
    lower, upper
        Bounds on the failure rate or mean loss of the accepted cases, valid at any time.
    judged, total
        Number of audit cases whose loss is known, and of all audit cases.
    counted
        Number of judged cases that the bounds rest on: those before the first one that is not judged, in the
        order in which the cases were drawn.
    next
        Number of the row to be judged next; ``None`` if none is left.
    by_verdict
        Whether a case is judged by a verdict, where anything but "accept" is a failure, or else by its loss
        in the table.
    seed, share
        What the audit cases are drawn with: the checksum of the policy, and the share of the accepted cases.
    """

    text: str
    alarm: bool
    confirmed: bool
    lower: float
    upper: float
    judged: int
    total: int
    counted: int
    next: int | None
    by_verdict: bool
    seed: str
    share: float


def audit_accepted(
    rows: Rows,
    places: Any,
    decisions: Any,
    verdicts: Any,
    policy: Policy,
    *,
    finished: bool = True,
    alpha: float = 0.05,
    share: float = AUDIT_SHARE,
) -> Audit:
    """Draw the audit cases among some rows, and compute what is known about the guarantee of their policy.

    Which cases are drawn, and in which order, depends only on the checksum of the policy and their names, so
    that it is fixed before any verdict. Reviewers judge cases in an order of their own, often the least
    confident first. The bounds are valid only for a random order, so verdicts count in the order of the draw,
    up to the first case that is not judged. While a run is unfinished, further cases may be drawn between
    those judged, so nothing counts yet.

    Parameters
    ----------
    rows
        The table.
    places
        Indices of the new rows of the policy, which was not made with them.
    decisions, verdicts
        Decision and last verdict of each row of the table; an empty text where there is none.
    policy
        The policy. A limit on failures is audited by verdicts; a limit on a mean loss by the losses in the
        table, if they are known. If neither is possible, the failure rate by verdicts is reported alone.
    finished
        Whether all cases are scored.
    alpha
        Probability of a false alarm.
    share
        Share of the accepted cases that is audited.
    """
    accepted = places[np.isin(decisions[places], [str(Decision.ACCEPT), str(Decision.NO_FINDING)])]
    place_of = {json.dumps(rows.keys[place]): int(place) for place in accepted}
    drawn = [place_of[name] for name in draw_audit(list(place_of), share=share, seed=policy.fingerprint)]
    target, losses = _losses(rows, verdicts, policy.targets, drawn)
    is_judged = np.isfinite(losses)
    first_open = int(np.append(is_judged, False).argmin())
    counted = first_open if finished else 0
    audit = AuditBound(target, delta=policy.delta, alpha=alpha)
    audit.extend(losses[:counted])
    text = audit.explain()
    if not finished:
        text = "The audit starts when all cases of the run are scored."
    elif not drawn:
        text = "No accepted case has been drawn for the audit."
    return Audit(
        text=text,
        alarm=audit.alarm,
        confirmed=audit.confirmed,
        lower=audit.lower,
        upper=audit.upper,
        judged=int(is_judged.sum()),
        total=len(drawn),
        counted=counted,
        next=int(rows.numbers[drawn[first_open]]) if first_open < len(drawn) else None,
        by_verdict=target is None or target.below_dice is not None,
        seed=policy.fingerprint,
        share=share,
    )


def _losses(
    rows: Rows, verdicts: Any, targets: Sequence[Target], drawn: list[int]
) -> tuple[Target | None, Any]:
    """Return the limit that is audited and the loss of each audit case, NaN if it is not judged yet."""
    for target in targets:
        column = loss_of_target(target, rows.loss_name)
        if target.below_dice is not None:
            return target, _failures(verdicts[drawn])
        if column is not None:
            losses = rows.losses_by(column)[drawn]
            known = losses[np.isfinite(losses)]
            if known.size and known.max() <= 1.0:
                return target, losses
    return None, _failures(verdicts[drawn])


def _failures(verdicts: Any) -> Any:
    return np.where(verdicts == "", np.nan, verdicts != str(Verdict.ACCEPT)).astype(np.float64)
