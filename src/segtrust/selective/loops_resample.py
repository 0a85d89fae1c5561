"""What the curves of bootstrap resamples give, in compiled loops.

The cases are sorted once. A resample is then a walk along them, in which a case counts as often as its unit
(the case itself, or its patient) was drawn. A group of resamples is walked side by side, so that the
processor's vectors are full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain
from segtrust.selective.loops_draw import LANES, Room, draw_group

__all__ = ["KINDS", "STATE", "Ranking", "leave_out", "resample"]

AURC, AUGRC, COVERAGE = 0, 1, 2
KINDS = {"aurc": AURC, "augrc": AUGRC, "coverage_at_risk": COVERAGE}
"""What a walk gives, by name."""

_MASS, _SUM, _OPEN, _RISK, _AREA = (row * LANES for row in range(5))
"""Where the state of the lanes lies: weight accepted in closed blocks, sum of losses, weight of the open
block, last risk, and twice the area (for `COVERAGE` the largest weight within the limit)."""

STATE = 5 * LANES
"""Numbers of state that a walk needs."""


class Ranking(NamedTuple):
    """Cases from the surest to the least sure.

    Attributes
    ----------
    unit
        What the case is drawn with: its own number, or that of its patient.
    mass, moment
        Weight, and weight × loss.
    last
        Whether the case ends a tie block.
    """

    unit: Any
    mass: Any
    moment: Any
    last: Any


@elementwise
def _join(counts: Any, mass: float, moment: float, state: Any) -> None:
    """Add a case to the open tie block."""
    for lane in range(LANES):
        times = np.float64(counts[lane])
        state[_OPEN + lane] += times * mass
        state[_SUM + lane] += times * moment


@elementwise
def _close_risk(state: Any) -> None:
    """End a tie block: add the trapezoid from the last risk to the present one."""
    for lane in range(LANES):
        width = state[_OPEN + lane]
        before = state[_MASS + lane]
        mass = before + width
        risk = state[_SUM + lane] / (mass if mass > 0.0 else 1.0)
        state[_AREA + lane] += width * (risk + (state[_RISK + lane] if before > 0.0 else risk))
        state[_RISK + lane] = risk
        state[_MASS + lane] = mass
        state[_OPEN + lane] = 0.0


@elementwise
def _close_two(counts: Any, more: Any, first: Any, second: Any, state: Any) -> None:
    """Add two cases that are blocks of their own, in lanes that hold some already: one division for both."""
    for lane in range(LANES):
        times = np.float64(counts[lane])
        again = np.float64(more[lane])
        before = state[_MASS + lane]
        mass = before + times * first[0]
        end = mass + again * second[0]
        losses = state[_SUM + lane] + times * first[1]
        total = losses + again * second[1]
        inverse = 1.0 / (mass * end)
        risk = losses * end * inverse
        last = total * mass * inverse
        state[_AREA + lane] += (mass - before) * (state[_RISK + lane] + risk) + (end - mass) * (risk + last)
        state[_MASS + lane] = end
        state[_SUM + lane] = total
        state[_RISK + lane] = last


@elementwise
def _close_generalised(state: Any) -> None:
    """End a tie block: add the trapezoid between sums of losses."""
    for lane in range(LANES):
        losses = state[_SUM + lane]
        state[_AREA + lane] += state[_OPEN + lane] * (state[_RISK + lane] + losses)
        state[_RISK + lane] = losses
        state[_MASS + lane] += state[_OPEN + lane]
        state[_OPEN + lane] = 0.0


@elementwise
def _close_coverage(limit: float, state: Any) -> None:
    """End a tie block: keep its weight if the risk is within the limit."""
    for lane in range(LANES):
        mass = state[_MASS + lane] + state[_OPEN + lane]
        best = state[_AREA + lane]
        state[_AREA + lane] = mass if state[_SUM + lane] <= limit * mass else best
        state[_MASS + lane] = mass
        state[_OPEN + lane] = 0.0


@plain
def _all_begun(state: Any) -> bool:
    """Tell whether each lane holds enough weight for the product of two of them to be above 0."""
    least = state[_MASS]
    for lane in range(1, LANES):
        least = min(least, state[_MASS + lane])
    return bool(least > 1e-100)


@plain
def _close(kind: int, limit: float, state: Any) -> None:
    if kind == AURC:
        _close_risk(state)
    elif kind == AUGRC:
        _close_generalised(state)
    else:
        _close_coverage(limit, state)


@plain
def _walk(room: Room, ranking: Ranking, kind: int, limit: float) -> None:
    """Go along the cases; two at a time where that is possible."""
    unit, mass, moment, last = ranking
    counts, labels, state = room.counts, room.labels, room.state
    state[:] = 0.0
    by_two = False
    place = 0
    while place < unit.size:
        if by_two and place + 1 < unit.size and last[place] and last[place + 1]:
            first, second = (mass[place], moment[place]), (mass[place + 1], moment[place + 1])
            _close_two(counts[labels[unit[place]]], counts[labels[unit[place + 1]]], first, second, state)
            place += 2
            continue
        _join(counts[labels[unit[place]]], mass[place], moment[place], state)
        if last[place]:
            _close(kind, limit, state)
        by_two = kind == AURC and last[place] and (by_two or _all_begun(state))
        place += 1


@plain
def _result(kind: int, state: Any, values: Any) -> None:
    for lane in range(values.size):
        mass, area = state[_MASS + lane], state[_AREA + lane]
        if kind == AURC:
            values[lane] = 0.5 * area / mass
        elif kind == AUGRC:
            values[lane] = 0.5 * area / (mass * mass)
        else:
            values[lane] = area / mass


@entry
def resample(states: Any, ranking: Ranking, what: Any, room: Room, values: Any) -> None:
    """Write the statistic ``what`` = (kind, limit) of one resample a state."""
    for first in range(0, states.size, LANES):
        draw_group(states, first, room)
        _walk(room, ranking, what[0], what[1])
        _result(what[0], room.state, values[first : first + LANES])


@entry
def leave_out(groups: Any, ranking: Ranking, what: Any, room: Room, values: Any) -> None:
    """Write the statistic of all units but those of one group, for each group."""
    for first in range(0, values.size, LANES):
        room.counts[:] = 1
        for unit in range(groups.size):
            room.labels[unit] = unit
        for unit in range(groups.size):
            lane = groups[unit] - first
            if 0 <= lane < LANES:
                room.counts[unit, lane] = 0
        _walk(room, ranking, what[0], what[1])
        _result(what[0], room.state, values[first : first + LANES])
