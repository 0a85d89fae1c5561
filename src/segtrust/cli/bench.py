"""``segtrust bench``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from segtrust.cli.console import new_console

__all__ = ["bench_app"]

bench_app = typer.Typer(no_args_is_help=True, help="Measure speed as ratios within one run.")


def _ratio_table(title: str, ratios: Iterable[Any]) -> Table:
    table = Table(title=title)
    for head in ("what", "map", "against"):
        table.add_column(head)
    for head in ("ms", "ratio", "target", ""):
        table.add_column(head, justify="right")
    for ratio in ratios:
        verdict = {None: "", True: "met", False: "missed"}[ratio.met]
        cells = (f"{1000.0 * ratio.seconds:.2f}", f"{ratio.ratio:.2f}", ratio.target, verdict)
        table.add_row(ratio.what, ratio.map, ratio.against, *cells)
    return table


_BENCH_EPILOG = (
    "Examples:\n\n  segtrust bench kernels\n\n"
    "  segtrust bench kernels --largest 1000000000 --folder /scratch\n\n"
    "  segtrust bench kernels --map volume.npy --json > kernels.json"
)


@bench_app.command("kernels", epilog=_BENCH_EPILOG)
def bench_kernels(
    map_file: Annotated[
        Path | None, typer.Option("--map", help="Time a map of your own as well: float32 .npy.")
    ] = None,
    largest: Annotated[int, typer.Option(help="Pixels of the largest map of the scaling table.")] = 10**8,
    folder: Annotated[
        Path | None,
        typer.Option(help="Where maps of the scaling table are kept; above 10^8 pixels required."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Runs of each candidate, of which the shortest counts.")] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time the kernels against numpy.sum, the plain formulas, and one thread against two."""
    from segtrust.bench.report import kernel_sections

    own = None if map_file is None else np.load(map_file, mmap_mode="r")
    console = new_console()
    collected: dict[str, list[dict[str, Any]]] = {}
    for title, lines in kernel_sections(own=own, largest=largest, folder=folder, rounds=rounds):
        gathered = list(lines)
        if as_json:
            collected[title] = [{**asdict(line), "met": line.met} for line in gathered]
        else:
            console.print(_section_table(title, gathered))
    if as_json:
        typer.echo(json.dumps(collected, indent=2))


def _section_table(title: str, lines: list[Any]) -> Table:
    if lines and hasattr(lines[0], "ratio"):
        return _ratio_table(title, lines)
    table = Table(title=title)
    for head in ("what", "value", "limit", ""):
        table.add_column(head, justify="left" if head == "what" else "right")
    for line in lines:
        value = f"{line.value:.2f} {line.unit}"
        table.add_row(line.what, value, f"<= {line.limit:g}", "met" if line.met else "missed")
    return table
