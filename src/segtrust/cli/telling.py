"""What commands say at their end: of policies, of what failed, and of what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segtrust.cli.console import counted

if TYPE_CHECKING:
    from segtrust.engine.decisions import Policies
    from segtrust.engine.outcomes import Failure, Row

__all__ = ["as_values", "tell_failures", "tell_policies", "tell_warnings", "warnings_of"]

_SHOWN = 5


def tell_policies(policies: Policies) -> None:
    """Say what each policy promises."""
    for policy in policies.values():
        typer.echo(str(policy))


def as_values(policies: Policies) -> dict[str, Any]:
    """Say for machines how policies stand; nothing where there are none."""
    return {"standing": {name: str(each.standing) for name, each in policies.items()}} if policies else {}


def warnings_of(rows: Sequence[Row]) -> list[str]:
    """Say what is rare, unless labels were taken for maps: all masks empty, or no doubt at all.

    Examples
    --------
    >>> warnings_of([{"k": 3, "mu": 0.9, "lam": 0.5}])
    []
    """
    filled = [row for row in rows if row["k"]]
    if rows and not filled:
        return [
            "All masks are empty: no map reaches the threshold. Are these probabilities? 8-bit numbers are "
            "divided by 255, so labels such as 0 and 1 would be next to nothing."
        ]
    if filled and all(row["mu"] == 1.0 and row["lam"] == 0.0 for row in filled):
        return [
            "All maps are 0 or 1 everywhere, and every confidence is 1. Are these probabilities, or masks?"
        ]
    cut = sum(row["mask"] == "threshold" for row in rows if row.get("mask"))
    if 0 < cut < len(rows):
        return [f"{cut} of {len(rows)} have no delivered mask: their maps were cut at the threshold."]
    return []


def tell_warnings(rows: Sequence[Row]) -> None:
    """Print them where they do not mix with results."""
    for warning in warnings_of(rows):
        typer.secho(warning, err=True)


def tell_failures(
    failures: Sequence[Failure], path: Path, *, quiet: bool = False, nothing: bool = False
) -> None:
    """Say which cases failed, and why; leave with exit code 1 for some and 2 for all."""
    if not failures:
        return
    if not quiet:
        for failure in failures[:_SHOWN]:
            typer.secho(f"  {failure.case}: {failure.reason}", err=True)
        told = counted(len(failures), "failure")
        typer.secho(f"{told}, with the reasons: {path}", err=True)
    raise typer.Exit(2 if nothing else 1)
