"""What commands say at their end: of policies, of what failed, and of what looks wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from segtrust.cli.console import counted

if TYPE_CHECKING:
    from segtrust.engine.decisions import Policies
    from segtrust.engine.outcomes import Failure
    from segtrust.engine.score_table import Scored

__all__ = ["as_values", "tell_failures", "tell_policies", "warn_of_labels"]

_SHOWN = 5


def tell_policies(policies: Policies) -> None:
    """Say what each policy promises."""
    for policy in policies.values():
        typer.echo(str(policy))


def as_values(policies: Policies) -> dict[str, Any]:
    """Say for machines how policies stand; nothing where there are none."""
    return {"standing": {name: str(each.standing) for name, each in policies.items()}} if policies else {}


def warn_of_labels(scored: Scored) -> None:
    """Say that all masks are empty, which is rare, unless files hold labels that were taken for maps."""
    if scored.rows and all(row["k"] == 0 for row in scored.rows):
        typer.secho(
            "All masks are empty: no map reaches the threshold. Are these probabilities? 8-bit numbers are "
            "divided by 255, so labels such as 0 and 1 would be next to nothing.",
            err=True,
        )


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
