"""The rows of a score table as columns, so that twenty thousand of them are sorted and counted at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from segtrust.confidence import ESTIMATORS, estimator_names
from segtrust.engine import DICE, Policies, as_loss, loss_column, loss_name, loss_of_row
from segtrust.errors import WrongContentError
from segtrust.io import FOREGROUND, ScoreRow, Table
from segtrust.policy import Decision

__all__ = ["Key", "Rows", "estimator_for", "estimators_of", "key_of"]

Key = tuple[str, str, str]
"""Set, case and structure: what a verdict is about."""


def key_of(row: Mapping[str, Any]) -> Key:
    """Give what names a row, whatever its place in the table.

    Examples
    --------
    >>> key_of({"case": "a", "set": None})
    ('', 'a', 'foreground')
    """
    return str(row.get("set") or ""), str(row["case"]), str(row.get("structure") or FOREGROUND)


def estimators_of(table: Table) -> list[str]:
    """Name the confidences that a table has."""
    told = table.about.get("estimators") or {}
    return [name for name in dict.fromkeys([*told, *estimator_names()]) if name in table.columns]


def estimator_for(table: Table, policies: Policies) -> str:
    """Choose the confidence that is ranked: the policy's, the soft Dice, or the first that there is."""
    found = estimators_of(table)
    needed = {policy.scoring.estimator for policy in policies.values()}
    if len(needed) > 1:
        listed = ", ".join(sorted(needed))
        raise WrongContentError(f"policy: expected one confidence for all structures, got {listed}.")
    wanted = [*needed] or [name for name in ("sdc", *found) if name in found]
    if not wanted or (table.rows and wanted[0] not in table.columns):
        listed = ", ".join(wanted or ESTIMATORS)
        raise WrongContentError(f"{table.source}: expected a column of confidences ({listed}), got none.")
    return wanted[0]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table at one moment.

    Attributes
    ----------
    table
        As it was read.
    estimator
        Column of the confidence.
    numbers
        Of each row; a row keeps its number when the table grows or is put in another order.
    """

    table: Table
    estimator: str
    numbers: Any

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.table.rows)

    @cached_property
    def places(self) -> dict[int, int]:
        """Where the row of a number is."""
        return {int(number): place for place, number in enumerate(self.numbers)}

    @cached_property
    def keys(self) -> list[Key]:
        """What names each row."""
        return [key_of(row) for row in self.table.rows]

    @cached_property
    def place_of_key(self) -> dict[Key, int]:
        """Where the row of a name is."""
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def confidence(self) -> Any:
        """Of each row; NaN where there is none."""
        return self._numbers_of(self.estimator)

    @cached_property
    def dice(self) -> Any:
        """Of each row; NaN where there is none."""
        return self._numbers_of(DICE)

    @cached_property
    def loss(self) -> Any:
        """Of each row: the column of losses, else one minus the Dice; NaN where there is none."""
        return self.losses_by("loss")

    @cached_property
    def loss_name(self) -> str | None:
        """What the losses are: the short name of a risk, or a column; ``None`` if unknown."""
        return loss_name(self.table)

    def losses_by(self, column: str) -> Any:
        """Return the loss of each row by a column or a risk; NaN where there is none."""
        column = loss_column(self.table.columns, column)
        if column in self.table.columns:
            found = [as_loss(each, column) for each in self._numbers_of(column)]
        else:
            found = [loss_of_row(row, column) for row in self.table.rows]
        return np.array([np.nan if each is None else each for each in found], np.float64)

    @cached_property
    def is_empty(self) -> Any:
        """Whether the mask of each row is empty."""
        return self._numbers_of("k") == 0

    @cached_property
    def folded_cases(self) -> list[str]:
        """Names of the cases as they are searched."""
        return [case.casefold() for _, case, _ in self.keys]

    def texts(self, name: str) -> Any:
        """Give a column of text, one of ``set``, ``case``, ``structure`` and ``group``, as an array."""
        return self._texts[name]

    @cached_property
    def _texts(self) -> Mapping[str, Any]:
        named = {name: [key[at] for key in self.keys] for at, name in enumerate(("set", "case", "structure"))}
        named["group"] = [str(row.get("group") or "") for row in self.table.rows]
        return {name: np.array(values, object) for name, values in named.items()}

    @cached_property
    def ranks(self) -> Mapping[str, Any]:
        """Of the texts in the order of their characters: numbers sort faster, and can be turned around."""
        return {name: _ranks_of(values) for name, values in self._texts.items()}

    def known(self, name: str) -> list[str]:
        """Give the different texts of a column, in the order in which they come."""
        return [each for each in dict.fromkeys(self._texts[name].tolist()) if each]

    @cached_property
    def decided(self) -> tuple[Any, Any]:
        """Decisions and margins that the table tells of, as triage writes them; else ``""`` and NaN."""
        known = {str(each) for each in Decision}
        told = [str(each or "") for each in self._column("decision")]
        decisions = np.array([each if each in known else "" for each in told], object)
        return decisions, self._numbers_of("margin")

    def row(self, place: int) -> ScoreRow:
        """Give a row as it stands in the table, under the name of a structure."""
        row = self.table.rows[place]
        return {**row, "structure": self.keys[place][2]}

    def digest(self, place: int) -> str:
        """Give the fingerprint of what is seen of a row, its map and its mask as read; empty if unknown."""
        return self._digests[place]

    @cached_property
    def _digests(self) -> list[str]:
        return [_together([*_fingerprints(row), *_statistics(row)]) for row in self.table.rows]

    def _column(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self.table.rows]

    def _numbers_of(self, name: str) -> Any:
        found = [each if isinstance(each, int | float) else np.nan for each in self._column(name)]
        values = np.array(found, np.float64)
        return np.where(np.isfinite(values), values, np.nan)


def _fingerprints(row: Mapping[str, Any]) -> list[str]:
    return [str(row[name]) for name in ("checksum", "mask_checksum") if row.get(name)]


def _statistics(row: Mapping[str, Any]) -> list[str]:
    """Give what also changes where the same files are read otherwise, or no fingerprint of them is known.

    To nine digits: another processor may sum up in another order.
    """
    found = [row.get(name) for name in ("k", "s", "lam")]
    return [f"{each:.9g}" for each in found] if all(isinstance(each, int | float) for each in found) else []


def _together(digests: Sequence[str]) -> str:
    """Give one fingerprint of several, as long as the longest: the log has no more room for it."""
    if len(digests) < 2:
        return "".join(digests)
    return f"sha256:{sha256(' '.join(digests).encode()).hexdigest()}"


def _ranks_of(values: Any) -> Any:
    order = {text: rank for rank, text in enumerate(sorted(set(values.tolist())))}
    return np.array([order[text] for text in values.tolist()], np.int64)
