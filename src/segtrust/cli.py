"""The command line: parse, call, print, exit code; the only place that prints."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import segtrust as st
from segtrust.errors import SegtrustError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Know which segmentations to trust.",
)
bench_app = typer.Typer(no_args_is_help=True, help="Measure speed as ratios within one run.")
app.add_typer(bench_app, name="bench")

_DEMO_ESTIMATORS = ("sdc", "idc", "amsp", "ane", "mmmc", "pla")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"segtrust {st.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Know which segmentations to trust."""


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def _demo_rows() -> list[dict[str, Any]]:
    from segtrust.demo import lesion_cases

    rows = []
    for case in lesion_cases():
        p = case.prediction.probabilities
        found = st.assess(p, estimators=_DEMO_ESTIMATORS)
        row: dict[str, Any] = {"case": case.id, "k": found.bounds.k, **found.scores}
        row |= {"epsilon": found.bounds.relative_error, "dice": st.dice(case.truth, p >= 0.5)}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["sdc"])


_DEMO_EPILOG = "Examples:\n\n  segtrust demo\n\n  segtrust demo --output scores.csv"


@app.command(epilog=_DEMO_EPILOG)
def demo(
    output: Annotated[
        Path | None, typer.Option(help="Also write the table, in full precision, as CSV.")
    ] = None,
) -> None:
    """Score a few made-up lesions and show which confidence knows the errors."""
    rows = _demo_rows()
    table = Table(title="Confidence of seven made-up lesions, surest first")
    table.add_column("case")
    heads = ("k", "SDC", "IDC", "error bound", "aMSP", "aNE", "MMMC", "PLA", "true Dice")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        scores = [f"{row[name]:.3f}" for name in ("sdc", "idc")]
        others = [f"{row[name]:.3f}" for name in ("amsp", "ane", "mmmc", "pla")]
        table.add_row(
            row["case"], str(row["k"]), *scores, f"{row['epsilon']:.1e}", *others, f"{row['dice']:.3f}"
        )
    console = _console()
    console.print(table)
    console.print(_verdict(rows))
    if output is not None:
        _write_csv(output, rows)
        console.print(f"The table is in {output}.")


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Say how well each confidence orders the cases by their true Dice."""
    from scipy.stats import spearmanr

    truth = [row["dice"] for row in rows]
    order = {name: spearmanr([row[name] for row in rows], truth).statistic for name in _DEMO_ESTIMATORS}
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in order.items())
    return (
        f"Rank correlation with the true Dice, which none of them has seen: {listed}.\n"
        "SDC is the soft Dice confidence, IDC the exact expected Dice; the error bound certifies how far\n"
        "apart the two can be. The others average over a background in which every model is sure."
    )


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


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
    _print_sections(kernel_sections(own=own, largest=largest, folder=folder, rounds=rounds), as_json=as_json)


_SELECTIVE_EPILOG = (
    "Examples:\n\n  segtrust bench selective\n\n  segtrust bench selective --json > selective.json"
)


@bench_app.command("selective", epilog=_SELECTIVE_EPILOG)
def bench_selective(
    rounds: Annotated[
        int, typer.Option(help="Turns of each candidate, of which the shortest run counts.")
    ] = 9,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Time the risk-coverage curve against numpy.argsort, and the bootstrap against a Python loop."""
    from segtrust.bench.selective import selective_sections

    _print_sections(selective_sections(rounds=rounds), as_json=as_json)


def _print_sections(sections: Iterable[tuple[str, Iterable[Any]]], *, as_json: bool) -> None:
    """Print each section as soon as it is measured, or all of them as one JSON object."""
    console = _console()
    collected: dict[str, list[dict[str, Any]]] = {}
    for title, lines in sections:
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


def main() -> None:
    """Run the command line; an expected error is one line and exit code 2."""
    try:
        app()
    except (SegtrustError, OSError) as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(2)
