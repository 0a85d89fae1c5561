"""Resampling in compiled loops: how often each unit is drawn, and what the curve of such a resample gives.

A resample is a count for each unit (a case or a patient). The cases are sorted once; each resample is then a
walk along them, in which a case counts as often as its unit was drawn. Sixty-four resamples are walked at a
time, side by side, so that the processor's vectors are full. Each has a generator of its own (SplitMix64,
started from NumPy's), so the result depends neither on the number of threads nor on how resamples are
shared out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, entry, plain, reduction

__all__ = ["KINDS", "LANES", "Ranking", "Room", "leave_out", "new_room", "resample"]

LANES = 64
"""Resamples walked side by side: one cache line of counts."""

AURC, AUGRC, COVERAGE = 0, 1, 2
KINDS = {"aurc": AURC, "augrc": AUGRC, "coverage_at_risk": COVERAGE}
"""What a walk gives, by name."""

_MASS, _SUM, _OPEN, _RISK, _AREA = (row * LANES for row in range(5))
"""Where the state of the lanes lies: weight accepted in closed blocks, sum of losses, weight of the open
block, last risk, and twice the area (for `COVERAGE` the largest weight within the limit)."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


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


class Room(NamedTuple):
    """Memory that one thread works in."""

    words: Any
    """Random words."""
    pieces: Any
    """The same words in pieces of 16 bits, or of 32 where there are more units than 16 bits can name."""
    units: Any
    """Their number, once a draw: read from memory, it is known to be short, and is multiplied faster."""
    picks: Any
    """Units drawn; one beyond the last stands for a draw that has to be repeated."""
    counts: Any
    """How often each unit is drawn, a row a unit, a column a lane. Eight bits are enough: 256 or more draws
    of one unit, out of as many units or more, have a probability below 1e-500."""
    state: Any
    """State of the lanes."""


def new_room(units: int) -> Room:
    """Memory for resamples of so many units."""
    kind = np.uint16 if units < 1 << 16 else np.uint32
    words = np.empty(-(-units * np.dtype(kind).itemsize // 8), np.uint64)
    counts = np.empty((units + 1, LANES), np.uint8)
    number, picks = np.full(units, units, kind), np.empty(units, kind)
    return Room(words, words.view(kind), number, picks, counts, np.empty(5 * LANES))


@plain
def _word(state: Any) -> Any:
    """Scramble a state of SplitMix64."""
    z = (state ^ (state >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@elementwise
def _fill(words: Any, state: Any) -> None:
    """Write the words that follow ``state``."""
    for at in range(words.size):
        words[at] = _word(state + np.uint64(at + 1) * _STEP)


@reduction
def _pick_short(pieces: Any, units: Any, least: Any, picks: Any) -> int:
    """Turn pieces of 16 bits into units, each equally likely; count those that have to be drawn again.

    The product of a piece and the number of units tells the unit in its upper half; a lower half below
    ``least`` = 2¹⁶ mod units is what makes some of them likelier than others.
    """
    again = np.uint16(0)
    for at in range(picks.size):
        product = np.uint32(np.uint32(pieces[at]) * np.uint32(units[at]))
        bad = np.uint16(product) < least
        picks[at] = units[at] if bad else np.uint16(product >> np.uint32(16))
        again = np.uint16(again + np.uint16(bad))
    return int(again)


@reduction
def _pick_long(pieces: Any, units: Any, least: Any, picks: Any) -> int:
    """Do the same with pieces of 32 bits."""
    again = 0
    for at in range(picks.size):
        product = np.uint64(pieces[at]) * np.uint64(units[at])
        bad = np.uint32(product) < least
        picks[at] = units[at] if bad else np.uint32(product >> np.uint64(32))
        again += 1 if bad else 0
    return again


@plain
def _pick(room: Room) -> int:
    n = room.picks.size
    if room.pieces.itemsize == 2:
        return _pick_short(room.pieces, room.units, np.uint16(65536 % n), room.picks)
    return _pick_long(room.pieces, room.units, np.uint32((1 << 32) % n), room.picks)


@plain
def _draw(state: Any, units: int, lane: int, room: Room) -> None:
    """Draw as many units as there are, with replacement, and count them in one lane."""
    _fill(room.words, state)
    again = _pick(room)
    for at in range(units):
        room.counts[room.picks[at], lane] += np.uint8(1)
    _draw_again(state + np.uint64(room.words.size) * _STEP, units, again, room.counts[:, lane])


@plain
def _draw_again(state: Any, units: int, wanted: int, counts: Any) -> None:
    """Draw one by one from pieces of 32 bits."""
    n, low = np.uint64(units), np.uint64(0xFFFFFFFF)
    least = np.uint64((1 << 32) % units)
    while wanted > 0:
        state += _STEP
        product = (_word(state) >> np.uint64(32)) * n
        if product & low >= least:
            counts[product >> np.uint64(32)] += np.uint8(1)
            wanted -= 1


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
    least = state[_MASS]
    for lane in range(1, LANES):
        least = min(least, state[_MASS + lane])
    return bool(least > 0.0)


@plain
def _close(kind: int, limit: float, state: Any) -> None:
    if kind == AURC:
        _close_risk(state)
    elif kind == AUGRC:
        _close_generalised(state)
    else:
        _close_coverage(limit, state)


@plain
def _walk(counts: Any, ranking: Ranking, kind: int, limit: float, state: Any) -> None:
    """Go along the cases; two at a time where that is possible."""
    unit, mass, moment, last = ranking
    by_two = False
    place = 0
    while place < unit.size:
        if by_two and place + 1 < unit.size and last[place] and last[place + 1]:
            first, second = (mass[place], moment[place]), (mass[place + 1], moment[place + 1])
            _close_two(counts[unit[place]], counts[unit[place + 1]], first, second, state)
            place += 2
            continue
        _join(counts[unit[place]], mass[place], moment[place], state)
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
    units = room.picks.size
    for first in range(0, states.size, LANES):
        some = values[first : first + LANES]
        room.counts[:] = 0
        room.state[:] = 0.0
        for lane in range(LANES):
            _draw(states[min(first + lane, states.size - 1)], units, lane, room)
        _walk(room.counts, ranking, what[0], what[1], room.state)
        _result(what[0], room.state, some)


@entry
def leave_out(groups: Any, ranking: Ranking, what: Any, room: Room, values: Any) -> None:
    """Write the statistic of all units but those of one group, for each group."""
    for first in range(0, values.size, LANES):
        room.counts[:] = 1
        room.state[:] = 0.0
        for unit in range(groups.size):
            lane = groups[unit] - first
            if 0 <= lane < LANES:
                room.counts[unit, lane] = 0
        _walk(room.counts, ranking, what[0], what[1], room.state)
        _result(what[0], room.state, values[first : first + LANES])
