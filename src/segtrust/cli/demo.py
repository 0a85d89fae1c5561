"""``segtrust demo``."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from segtrust.cli.output import new_console

if TYPE_CHECKING:
    from rich.console import Console

    from segtrust.demo.nuclei import Triaged
    from segtrust.demo.running import Demo

__all__ = ["EPILOG", "demo"]

EPILOG = (
    "Examples:\n\n  segtrust demo\n\n  segtrust demo --output trial --json\n\n"
    "  segtrust review --demo   (the same cases at the review desk)"
)
_SUBJECT = "100 images of cell nuclei, and the probability maps that a small network (UNeXt) made of them."
_INTRODUCTION = """\
60 are of the kind that it was trained on; 40 are bright or stained, and it has never seen the like. All are
real, in the public domain, and in the package: images as lossy WebP, maps of 8 bits, true masks of 1 bit.
Of 21 more of the first kind the package has the scores alone. 30 images of that kind are taken for new; the
threshold is certified on the other 51, and the 40 have no part in it.
"""
_WHAT = {"ID": "of that kind", "bright": "of another kind"}
_RANKING = """\
AURC: the mean loss (1 - Dice) of the accepted cases, over all shares that could be accepted. The gap is that
between a random order and the oracle, which knows the errors. SDC is the soft Dice confidence, IDC the exact
expected Dice; the others are usual ones."""
_TITLE = "How well does a confidence rank the errors? (60 images of the first kind)"
_TRIAGE = "New images: decided by that threshold, then compared with their true masks"
_AFTER = """\
In brackets: exact intervals of 95 %. On images of another kind the network is sure and wrong. No confidence
that is made of its maps can know that, and the promise is not about them: the alarm, which needs no true
masks, says so."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for tables, figures, policy and report.")
    ] = Path("segtrust-demo"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of the story.")
    ] = False,
) -> None:
    """See the whole job on embedded real cases: score, evaluate, certify, triage, report."""
    from segtrust._optional import require
    from segtrust.demo.running import run_demo

    for name in ("PIL", "matplotlib"):
        require(name, extra="demo")
    begin = time.perf_counter()
    done = run_demo(output)
    if as_json:
        typer.echo(json.dumps(_values(done)))
    else:
        _tell(done, time.perf_counter() - begin, new_console())


def _values(done: Demo) -> dict[str, Any]:
    triaged = [
        {**asdict(each), "kept": each.observed.is_kept, "alarm": each.drift.alarm} for each in done.triaged
    ]
    return {
        "cases": done.cases,
        "areas": list(done.areas),
        "policy": str(done.policy),
        "triaged": triaged,
        "output": str(done.folder),
        "report": str(done.report),
    }


def _tell(done: Demo, seconds: float, console: Console) -> None:
    console.print(f"[bold]{_SUBJECT}[/bold]\n{_flowing(_INTRODUCTION)}\n")
    _tell_ranking(done, console)
    console.print(f"\n[bold]A threshold with a promise.[/bold] {escape(_flowing(str(done.policy)))}\n")
    _tell_triage(done, console)
    console.print(f"{_flowing(_AFTER)}\n")
    for line in _lines_after(done, seconds):
        console.print(line, soft_wrap=True)


def _flowing(text: str) -> str:
    """Give a paragraph without line ends of its own: a terminal has any width."""
    return " ".join(text.split())


def _tell_ranking(done: Demo, console: Console) -> None:
    """Show how well each confidence knows the errors of the set in distribution."""
    from segtrust.report.styles import style_of

    console.print(f"[italic]{_TITLE}[/italic]")
    table = Table()
    table.add_column("confidence")
    for head in ("AURC", "95 % interval", "closes of the gap"):
        table.add_column(head, justify="right")
    for row in done.areas:
        if row["set"] == "ID":
            ends = f"{row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None else ""
            closed = f"{1.0 - row['normalised_aurc']:.0%}"
            table.add_row(style_of(row["estimator"]).label, f"{row['aurc']:.3f}", ends, closed)
    console.print(table)
    console.print(_flowing(_RANKING))


def _tell_triage(done: Demo, console: Console) -> None:
    """Show what became of the promise on new cases of both sets."""
    (limit,) = done.policy.targets
    console.print(f"[italic]{_TRIAGE}[/italic]")
    table = Table()
    table.add_column("images")
    failures = f"below Dice {limit.below_dice:g}"
    for head in ("cases", "accepted", "mean Dice", "promise", failures, "drift alarm"):
        table.add_column(head, justify="right")
    for each in done.triaged:
        table.add_row(*_cells(each))
    console.print(table)


def _cells(each: Triaged) -> list[str]:
    seen, drift = each.observed, each.drift
    share = f"{seen.risk:.0%} ({seen.low:.0%} to {seen.high:.0%})"
    return [
        _WHAT[each.set],
        str(each.cases),
        str(each.accepted),
        f"{each.mean_dice:.3f}",
        "void" if drift.alarm else f"at most {seen.target.risk:.0%}",
        share if seen.is_kept else f"[red]{share}[/red]",
        f"{'[red]RINGS[/red]' if drift.alarm else 'silent'} (p = {drift.p_value:.2g})",
    ]


def _lines_after(done: Demo, seconds: float) -> list[str]:
    report, folder = (escape(str(path.resolve())) for path in (done.report, done.folder))
    return [
        f"Done in {seconds:.1f} s. To be read in a browser: [bold]{report}[/bold]",
        f"Tables, figures and policy are in {folder}.",
        f"The same cases at the review desk: segtrust review --demo{_needs_review()}",
    ]


def _needs_review() -> str:
    """Say what the desk takes beyond the light core, where that is not there."""
    is_there = find_spec("fastapi") is not None and find_spec("sqlalchemy") is not None
    told = " (once its extra is installed: pip install '.[review]' in a checkout, or 'WHEEL[review]')"
    return "" if is_there else escape(told)
