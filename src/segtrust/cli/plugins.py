"""``segtrust plugins``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from segtrust.cli.output import counted, new_console
from segtrust.errors import SegtrustError

if TYPE_CHECKING:
    from segtrust.plugins import Plugin

__all__ = ["PLUGINS_EPILOG", "plugins"]

PLUGINS_EPILOG = (
    "Examples:\n\n  segtrust plugins\n\n  segtrust plugins --json\n\n"
    "Exit codes: 0 all can be used, or there are none; 1 some cannot, and it is said why."
)


def plugins(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
) -> None:
    """List what other packages add: estimators, readers and tasks, from which package, and what is wrong.

    Readers go by the ending of their files. Each is loaded to see whether it can be used.
    """
    from segtrust.plugins import GROUPS

    rows = [row for group in GROUPS for row in _rows(group)]
    failed = [row for row in rows if row["problem"]]
    if as_json:
        typer.echo(json.dumps({"plugins": rows, "failed": len(failed)}))
    else:
        _tell(rows)
    if failed:
        raise typer.Exit(1)


def _rows(group: str) -> list[dict[str, str]]:
    from segtrust.plugins import find_clashes, installed_plugins

    own, load = _registries()[group]
    clashes = find_clashes(group, own)
    return [
        {
            "kind": group[:-1],
            "name": each.name,
            "package": each.package,
            "version": each.version,
            "from": each.target,
            "problem": clashes.get(each) or _problem_of(each, load),
        }
        for each in installed_plugins(group)
    ]


def _registries() -> Mapping[str, tuple[list[str], Callable[[str], Any]]]:
    """Give the names that segtrust has itself, and what loads another, of each kind."""
    from segtrust.confidence import ESTIMATORS, get_estimator
    from segtrust.io import MAP_ENDINGS, reader_of_ending
    from segtrust.paper.tasks import NAMES, get_task

    return {
        "estimators": ([*ESTIMATORS], get_estimator),
        "readers": ([ending[1:] for ending in MAP_ENDINGS], reader_of_ending),
        "tasks": ([*NAMES], get_task),
    }


def _problem_of(plugin: Plugin, load: Callable[[str], Any]) -> str:
    try:
        load(plugin.name)
    except SegtrustError as error:
        return str(error)
    return ""


def _tell(rows: list[dict[str, str]]) -> None:
    if not rows:
        typer.echo("No other package adds an estimator, a reader or a task.")
        return
    table = Table("kind", "name", "package", "from", "state")
    for row in rows:
        package, state = f"{row['package']} {row['version']}", "cannot be used" if row["problem"] else "ready"
        table.add_row(*map(escape, (row["kind"], row["name"], package, row["from"], state)))
    new_console().print(table)
    problems = list(dict.fromkeys(row["problem"] for row in rows if row["problem"]))
    for problem in problems:
        typer.secho(f"  {problem}", err=True)
    typer.echo(f"{counted(len(rows), 'plug-in')}, {counted(len(problems), 'problem')}.")
