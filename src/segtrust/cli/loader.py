"""All commands in one application, and how it ends."""

from __future__ import annotations

import errno
import re
import sys
from typing import Annotated

import typer

import segtrust as st
from segtrust.cli.apps import App
from segtrust.cli.calibrate import CALIBRATE_EPILOG, calibrate
from segtrust.cli.demo import EPILOG, demo
from segtrust.cli.evaluate import EVALUATE_EPILOG, evaluate
from segtrust.cli.nnunet import nnunet_app
from segtrust.cli.plugins import PLUGINS_EPILOG, plugins
from segtrust.cli.report import REPORT_EPILOG, report
from segtrust.cli.review import REVIEW_EPILOG, review
from segtrust.cli.score import MERGE_EPILOG, SCORE_EPILOG, merge, score
from segtrust.cli.triage import TRIAGE_EPILOG, triage
from segtrust.errors import SegtrustError
from segtrust.paper.commands import reproduce_app, tasks_app

__all__ = ["app", "main"]

app = App(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Know which segmentations to trust.",
)
app.command(epilog=EPILOG)(demo)
app.command(epilog=SCORE_EPILOG)(score)
app.command(epilog=EVALUATE_EPILOG)(evaluate)
app.command(epilog=CALIBRATE_EPILOG)(calibrate)
app.command(epilog=TRIAGE_EPILOG)(triage)
app.command(epilog=MERGE_EPILOG)(merge)
app.command(epilog=REPORT_EPILOG)(report)
app.command(epilog=REVIEW_EPILOG)(review)
app.command(epilog=PLUGINS_EPILOG)(plugins)
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(tasks_app, name="tasks")
app.add_typer(nnunet_app, name="nnunet")


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


def _with_address(arguments: list[str]) -> list[str]:
    """Let ``--dask`` stand alone, for a cluster of one's own: Typer wants a value for each option.

    Examples
    --------
    >>> _with_address(["score", "maps", "--dask", "-o", "scores.csv"])
    ['score', 'maps', '--dask', 'local', '-o', 'scores.csv']
    >>> _with_address(["score", "maps", "--dask", "node7:8786"])
    ['score', 'maps', '--dask', 'node7:8786']
    """
    found = []
    for at, each in enumerate(arguments):
        following = "".join(arguments[at + 1 : at + 2])
        stands_alone = each == "--dask" and not _ADDRESS.fullmatch(following)
        found += [each, "local"] if stands_alone else [each]
    return found


_ADDRESS = re.compile(r"local|.*://.*|[\w.-]+:\d+")


def main() -> None:
    """Run the command line; an expected error is one line and exit code 2."""
    try:
        app(_with_address(sys.argv[1:]))
    except SystemExit as end:
        interrupt = getattr(end.__context__, "__cause__", None)  # Typer exits with 130, and says nothing
        if isinstance(interrupt, KeyboardInterrupt):
            typer.echo(str(interrupt) or "Interrupted. Rerun the same command.", err=True)
        raise
    except (SegtrustError, OSError) as error:
        typer.secho(f"error: {error}{_advice(error)}", fg="red", err=True)
        sys.exit(2)


_GO_ON = "Make room: the same command then goes on with what is finished."
_ADVICE = {
    errno.ENOSPC: _GO_ON,
    errno.EDQUOT: _GO_ON,
    errno.EROFS: "Choose an output that can be written to.",
}


def _advice(error: Exception) -> str:
    """Say what to do about a disk; what segtrust itself raises says so already."""
    found = _ADVICE.get(error.errno or 0) if isinstance(error, OSError) else None
    return f". {found}" if found else ""
