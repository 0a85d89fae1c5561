"""How often each unit is drawn in a bootstrap resample, in compiled loops, for a group of resamples at once.

Drawing costs more than what is done with the draws. So the counts of a group serve `TURNS` groups, each time
with the units relabelled by a new random permutation. Relabelled counts are as good as new ones: whatever
counts came up, each way of handing them to the units is equally likely. Only how many units came up not at
all, once, twice, … stays the same, which matters little where there are many units; where there are few,
each group is drawn anew.

Generators are SplitMix64, started from NumPy's, one a resample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from segtrust.compiled import elementwise, plain, reduction

__all__ = ["LANES", "TURNS", "Room", "draw_group", "new_room"]

LANES = 64
"""Resamples of a group: one cache line of counts."""

TURNS = 4
"""Groups that share counts."""

MANY = 256
"""Units from which on they do."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


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
    labels: Any
    """Row of the counts that each unit takes in this turn."""
    state: Any
    """State of the walk."""


def new_room(units: int, state: int) -> Room:
    """Memory for resamples of so many units and a walk with so many numbers of state."""
    kind = np.uint16 if units < 1 << 16 else np.uint32
    words = np.empty(-(-units * np.dtype(kind).itemsize // 8), np.uint64)
    counts = np.empty((units + 1, LANES), np.uint8)
    number, picks, labels = np.full(units, units, kind), np.empty(units, kind), np.arange(units)
    return Room(words, words.view(kind), number, picks, counts, labels, np.empty(state))


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
def _below(state: Any, n: int) -> Any:
    """Give a whole number below ``n`` from pieces of 32 bits, and where the generator is then."""
    bound, low = np.uint64(n), np.uint64(0xFFFFFFFF)
    while True:
        state += _STEP
        product = (_word(state) >> np.uint64(32)) * bound
        if product & low >= bound or product & low >= np.uint64((1 << 32) % n):
            return np.int64(product >> np.uint64(32)), state


@plain
def _draw_again(state: Any, units: int, wanted: int, counts: Any) -> None:
    """Draw one by one."""
    for _ in range(wanted):
        unit, state = _below(state, units)
        counts[unit] += np.uint8(1)


@plain
def _shuffle(state: Any, labels: Any) -> None:
    """Put labels in an order that is as likely as any other."""
    for at in range(labels.size - 1, 0, -1):
        other, state = _below(state, at + 1)
        labels[at], labels[other] = labels[other], labels[at]


@plain
def draw_group(states: Any, first: int, room: Room) -> None:
    """Draw the group of resamples from ``first`` on, or relabel the one before."""
    units = room.picks.size
    if units >= MANY and first // LANES % TURNS > 0:
        _shuffle(~states[first], room.labels)  # the state itself would give the words of a draw once more
        return
    room.counts[:] = 0
    for unit in range(units):  # an assignment of arrays would take the compiler a second and a half
        room.labels[unit] = unit
    for lane in range(LANES):
        _draw(states[min(first + lane, states.size - 1)], units, lane, room)
