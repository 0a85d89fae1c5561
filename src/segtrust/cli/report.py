"""``segtrust report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from segtrust.cli.output import counted

__all__ = ["REPORT_EPILOG", "report"]

REPORT_EPILOG = (
    "Examples:\n\n  segtrust report evaluation --policy policy.json\n\n"
    "  segtrust report triage --policy policy.json --predictor 'fold 0'\n\n"
    "  segtrust report scores.parquet -o scores.html\n\n"
    "Exit codes: 0 the report is written, 2 an error."
)


def report(
    run: Annotated[
        Path, typer.Argument(help="Folder of `segtrust evaluate` or `triage`, or a table of scores.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; report.html beside the score table unless given."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Decide by this policy, as `segtrust calibrate` writes it.")
    ] = None,
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; the promise holds for the policy's own.")
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a summary.")
    ] = False,
) -> None:
    """Show a run as one HTML file, which needs no network: summary, curves, cases, tables, settings.

    The curves can be read off; the best and worst cases are shown as pictures where their files are still
    there. Nothing is scored again. Figures go into the folder of the run, those of a table into a folder
    beside the page.
    """
    from segtrust.report.html.page import write_page
    from segtrust.report.html.run import open_run_folder

    opened = open_run_folder(run, policy, predictor)
    page = write_page(opened, output, with_figures=True).resolve()
    if as_json:
        typer.echo(json.dumps({"report": str(page), "finished": opened.is_finished}))
        return
    typer.echo(f"The report is {page}.")
    if not opened.is_finished:
        told = f"The run is not finished: the report is of the {counted(len(opened.rows), 'row')} so far."
        typer.secho(told, err=True)
