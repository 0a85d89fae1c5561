"""Compiled loops of the bootstrap: how often each unit is drawn, and the statistic of each resample.

A unit is what is drawn: a case, or a patient with all its cases. The cases are sorted once. A resample is
then a walk along the sorted cases, in which a case counts as often as its unit was drawn. A group of `LANES`
resamples is walked side by side, so that the processor's vectors are full.

Drawing costs more than the walk. So the counts of a group are used for `TURNS` groups, each time with the
units relabelled by a new random permutation. Relabelled counts are as good as new ones: whatever counts were
drawn, each assignment of them to the units is equally likely. Only the numbers of units drawn never, once,
twice, … stay the same. That matters little if there are many units; if there are few, each group is drawn
again.

The random generators are SplitMix64, one per resample, seeded by NumPy's generator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust._compile import elementwise, entry, plain, reduction

LANES = 64
"""Resamples in a group: one cache line of counts."""

TURNS = 4
"""Groups that share counts."""

MANY_UNITS = 256
"""Number of units from which on groups share counts."""

AURC, AUGRC, COVERAGE = 0, 1, 2
KINDS = {"aurc": AURC, "augrc": AUGRC, "coverage_at_risk": COVERAGE}
"""Statistics that a walk can compute, by name."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

_MASS, _SUM, _OPEN, _RISK, _AREA = (row * LANES for row in range(5))
"""Offsets in the state of a walk, which holds for each lane: weight accepted in closed tie blocks, sum of
losses, weight of the open tie block, last risk, and twice the area (for `COVERAGE` the largest weight whose
risk is within the limit)."""


class Ranking(NamedTuple):
    """Cases from the most to the least confident.

    Attributes
    ----------
    unit
        Number of the unit that each case is drawn with: its own, or that of its patient.
    mass, moment
        Weight, and weight × loss.
    last
        Whether the case ends a tie block.
    """

    unit: Any
    mass: Any
    moment: Any
    last: Any


class Workspace(NamedTuple):
    """Memory of one thread."""

    words: Any
    """Random words of 64 bits."""
    numbers: Any
    """The same memory as numbers of 16 bits, or of 32 if 16 bits cannot number the units."""
    units: Any
    """Number of units, repeated for each draw: loaded from memory, it is known to be short, and multiplied
    faster."""
    picks: Any
    """Units drawn; the number after the last unit marks a draw that has to be repeated."""
    counts: Any
    """How often each unit is drawn: one row per unit, one column per lane. Eight bits are enough: the
    probability of drawing one of at least 256 units 256 times or more is below 1e-500."""
    labels: Any
    """Row of the counts that each unit takes in this turn."""
    state: Any
    """State of the walk."""


def new_workspace(units: int) -> Workspace:
    """Return memory for resamples of this many units."""
    dtype = np.uint16 if units < 1 << 16 else np.uint32
    words = np.empty(-(-units * np.dtype(dtype).itemsize // 8), np.uint64)
    return Workspace(
        words=words,
        numbers=words.view(dtype),
        units=np.full(units, units, dtype),
        picks=np.empty(units, dtype),
        counts=np.empty((units + 1, LANES), np.uint8),
        labels=np.arange(units),
        state=np.empty(5 * LANES),
    )


@plain
def _word(state: Any) -> Any:
    """Return the random word of a state of SplitMix64."""
    z = (state ^ (state >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@elementwise
def _fill(words: Any, state: Any) -> None:
    """Write the random words that follow a state."""
    for at in range(words.size):
        words[at] = _word(state + np.uint64(at + 1) * _STEP)


@plain
def _below(state: Any, n: int) -> Any:
    """Return a random integer below ``n``, from 32 random bits, and the new state of the generator."""
    bound, low = np.uint64(n), np.uint64(0xFFFFFFFF)
    while True:
        state += _STEP
        product = (_word(state) >> np.uint64(32)) * bound
        if product & low >= bound or product & low >= np.uint64((1 << 32) % n):
            return np.int64(product >> np.uint64(32)), state


@reduction
def _pick_short(numbers: Any, units: Any, least: Any, picks: Any) -> int:
    """Turn random numbers of 16 bits into units, each equally likely; count the draws to be repeated.

    This is Lemire's method. The upper half of the product of a random number and the number of units is the
    unit; products whose lower half is below ``least`` = 2¹⁶ mod units would make some units more likely than
    others, and are rejected.
    """
    rejected = np.uint16(0)
    for at in range(picks.size):
        product = np.uint32(np.uint32(numbers[at]) * np.uint32(units[at]))
        bad = np.uint16(product) < least
        picks[at] = units[at] if bad else np.uint16(product >> np.uint32(16))
        rejected = np.uint16(rejected + np.uint16(bad))
    return int(rejected)


@reduction
def _pick_long(numbers: Any, units: Any, least: Any, picks: Any) -> int:
    """Turn random numbers of 32 bits into units, each equally likely; count the draws to be repeated."""
    rejected = 0
    for at in range(picks.size):
        product = np.uint64(numbers[at]) * np.uint64(units[at])
        bad = np.uint32(product) < least
        picks[at] = units[at] if bad else np.uint32(product >> np.uint64(32))
        rejected += 1 if bad else 0
    return rejected


@plain
def _pick(space: Workspace) -> int:
    n = space.picks.size
    if space.numbers.itemsize == 2:
        return _pick_short(space.numbers, space.units, np.uint16(65536 % n), space.picks)
    return _pick_long(space.numbers, space.units, np.uint32((1 << 32) % n), space.picks)


@plain
def _draw(state: Any, lane: int, space: Workspace) -> None:
    """Draw as many units as there are, with replacement, and count them in one lane."""
    units = space.picks.size
    _fill(space.words, state)
    rejected = _pick(space)
    for at in range(units):
        space.counts[space.picks[at], lane] += np.uint8(1)
    state += np.uint64(space.words.size) * _STEP
    for _ in range(rejected):
        unit, state = _below(state, units)
        space.counts[unit, lane] += np.uint8(1)


@plain
def _shuffle(state: Any, labels: Any) -> None:
    """Permute the labels; each order is equally likely (Fisher and Yates)."""
    for at in range(labels.size - 1, 0, -1):
        other, state = _below(state, at + 1)
        labels[at], labels[other] = labels[other], labels[at]


@plain
def _draw_group(states: Any, first: int, space: Workspace) -> None:
    """Draw the group of resamples that begins at ``first``, or relabel the counts of the one before."""
    units = space.picks.size
    if units >= MANY_UNITS and first // LANES % TURNS > 0:
        _shuffle(~states[first], space.labels)  # the state itself would repeat the words of a draw
        return
    space.counts[:] = 0
    for unit in range(units):  # an assignment of arrays would take the compiler a second and a half
        space.labels[unit] = unit
    for lane in range(LANES):
        _draw(states[min(first + lane, states.size - 1)], lane, space)


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
def _close_two(counts: Any, next_counts: Any, first: Any, second: Any, state: Any) -> None:
    """Add two untied cases to lanes that already hold some weight: one division for both."""
    for lane in range(LANES):
        times = np.float64(counts[lane])
        next_times = np.float64(next_counts[lane])
        before = state[_MASS + lane]
        mass = before + times * first[0]
        end = mass + next_times * second[0]
        losses = state[_SUM + lane] + times * first[1]
        total = losses + next_times * second[1]
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
def _close(kind: int, limit: float, state: Any) -> None:
    if kind == AURC:
        _close_risk(state)
    elif kind == AUGRC:
        _close_generalised(state)
    else:
        _close_coverage(limit, state)


@plain
def _all_begun(state: Any) -> bool:
    """Return whether the weights of all lanes are large enough for their products not to underflow."""
    least = state[_MASS]
    for lane in range(1, LANES):
        least = min(least, state[_MASS + lane])
    return bool(least > 1e-100)


@plain
def _walk(space: Workspace, ranking: Ranking, kind: int, limit: float, values: Any) -> None:
    """Walk along the cases, two at a time where possible, and write the statistic of each lane."""
    unit, mass, moment, last = ranking
    counts, labels, state = space.counts, space.labels, space.state
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
    _write_results(kind, state, values)


@plain
def _write_results(kind: int, state: Any, values: Any) -> None:
    for lane in range(values.size):
        mass, area = state[_MASS + lane], state[_AREA + lane]
        if kind == AURC:
            values[lane] = 0.5 * area / mass
        elif kind == AUGRC:
            values[lane] = 0.5 * area / (mass * mass)
        else:
            values[lane] = area / mass


@entry
def resample(states: Any, ranking: Ranking, kind: int, limit: float, space: Workspace, values: Any) -> None:
    """Write the statistic of one resample per random state."""
    for first in range(0, states.size, LANES):
        _draw_group(states, first, space)
        _walk(space, ranking, kind, limit, values[first : first + LANES])


@entry
def leave_out(groups: Any, ranking: Ranking, kind: int, limit: float, space: Workspace, values: Any) -> None:
    """Write the statistic of all units except those of one group, for each group."""
    for first in range(0, values.size, LANES):
        space.counts[:] = 1
        for unit in range(groups.size):
            space.labels[unit] = unit
        for unit in range(groups.size):
            lane = groups[unit] - first
            if 0 <= lane < LANES:
                space.counts[unit, lane] = 0
        _walk(space, ranking, kind, limit, values[first : first + LANES])
