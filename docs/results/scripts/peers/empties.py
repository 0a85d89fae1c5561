"""Masks with and without content: what each package calls their Dice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from docs.results.scripts.peers.tables import Table

HEADER = ("Dice of", "both empty", "empty truth, some mask", "some truth, empty mask")


def answers(name: str, dice: Callable[[Any, Any], float]) -> tuple[str, ...]:
    """Give one package's three answers; the function takes truth and mask."""
    none, some = np.zeros((8, 8), bool), np.zeros((8, 8), bool)
    some[2:5, 2:5] = True
    pairs = ((none, none), (none, some), (some, none))
    return (name, *(f"{dice(truth, mask):.0f}" for truth, mask in pairs))


def table(*rows: tuple[str, ...]) -> Table:
    """Put the rows into a table."""
    return Table("empties", HEADER, rows)
