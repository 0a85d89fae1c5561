"""A policy as plain values, and its parts made of them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from segtrust.errors import PolicyError
from segtrust.saved import plain, rebuild
from segtrust.selective.certificate import Evidence, Operation
from segtrust.selective.conformal import ConformalDice
from segtrust.selective.procedure import Procedure
from segtrust.selective.scoring import Scoring
from segtrust.selective.seen import HashedIds
from segtrust.selective.targets import Target

__all__ = ["plain_parts", "rebuilt_parts"]

_USUAL = {"decode": "threshold"}
"""Of scoring, what is saved only where it is something else, so that policies keep their fingerprints."""


def plain_parts(policy: Any) -> dict[str, Any]:
    """Give all attributes of a policy as plain values; no id is in the clear."""
    values = {each.name: _saved(getattr(policy, each.name)) for each in fields(policy)}
    del values["evidence"]["used_ids"], values["scoring"]["seen_ids"]
    if values["scoring"]["decode"] == _USUAL["decode"]:  # what older policies do not tell of
        del values["scoring"]["decode"]
    found: dict[str, Any] = plain(values, "policy")
    return found


def _saved(value: Any) -> Any:
    """Give one attribute as plain values, or nearly so."""
    if isinstance(value, HashedIds | ConformalDice):
        return value.to_dict()
    if isinstance(value, Scoring | Operation | Procedure | Evidence):
        return asdict(value)
    return [asdict(each) for each in value] if isinstance(value, tuple) else value


def _with_usual(scoring: Any) -> Any:
    return {**_USUAL, **scoring} if isinstance(scoring, Mapping) else scoring


def rebuilt_parts(values: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Give the parts of a policy that are more than plain values, each checked."""
    parts: dict[str, type] = {"scoring": Scoring, "operation": Operation, "procedure": Procedure}
    saved = {**values, "scoring": _with_usual(values["scoring"])}
    found: dict[str, Any] = {
        name: rebuild(kind, saved[name], f"{source}: {name}", error=PolicyError, without=("seen_ids",))
        for name, kind in parts.items()
    }
    about, targets = f"{source}: evidence", values["targets"]
    found["evidence"] = rebuild(Evidence, values["evidence"], about, error=PolicyError, without=("used_ids",))
    if not isinstance(targets, list):
        raise PolicyError(f"{source}: expected a list of targets, got {targets!r}.")
    found["targets"] = [rebuild(Target, each, f"{source}: targets", error=PolicyError) for each in targets]
    found["used_ids"] = HashedIds.from_dict(values["used_ids"], source=f"{source}: used_ids")
    if values["intervals"] is not None:
        found["intervals"] = ConformalDice.from_dict(values["intervals"], source=f"{source}: intervals")
    return found
