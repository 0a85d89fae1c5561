"""Folders that are watched: options of ``segtrust score --watch``, and what it says meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.options import HowFlags, PartFlags, TruthFlags
from segtrust.cli.output import counted, print_dataset
from segtrust.cli.pipes import is_pipe
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import ScoreTable, WatchStatus
    from segtrust.io import Dataset

__all__ = ["WatchFlags", "watch_until_stopped"]

_WATCHING = "Folders that are watched"


@dataclass
class WatchFlags(HowFlags):
    """How cases are scored, and whether their folders are watched."""

    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            rich_help_panel=_WATCHING,
            help="Score new files as they arrive, until Ctrl-C or SIGTERM; those still being written are "
            "left alone until they are complete.",
        ),
    ] = False
    settle: Annotated[
        float,
        typer.Option(
            rich_help_panel=_WATCHING, help="Seconds without a change after which a case is complete."
        ),
    ] = 2.0
    idle: Annotated[
        float | None,
        typer.Option(rich_help_panel=_WATCHING, help="End after so many seconds without anything new."),
    ] = None


def watch_until_stopped(
    folders: Sequence[Path],
    output: Path,
    how: WatchFlags,
    files: TruthFlags,
    run: PartFlags,
    options: Mapping[str, Any],
) -> ScoreTable:
    """Score what arrives in folders until Ctrl-C or SIGTERM, with news on standard error."""
    from segtrust.workflows import watch_folders

    for folder in folders:
        if not folder.is_dir():
            got = "a file" if folder.exists() else "nothing of that name"
            raise ParameterError(f"{folder}: expected a folder to watch, got {got}.")
    for what, is_asked in (
        ("output: expected a file", is_pipe(output)),
        ("num-parts: expected 1", run.num_parts > 1),
        ("write-masks: expected nothing", getattr(how, "write_masks", None) is not None),
    ):
        if is_asked:
            raise ParameterError(f"{what} while folders are watched. Leave it or --watch out.")
    has_printed = False

    def find() -> Dataset:
        nonlocal has_printed
        dataset = files.find(folders, needs_truth=None, may_be_empty=True)
        if dataset.cases and not has_printed:  # the first time that there is something to pair
            has_printed = True
            print_dataset(dataset, quiet=run.as_json)
        return dataset

    with _sigterm_interrupts():
        return watch_folders(
            find,
            output,
            how.estimators,
            policy=how.policy,
            model=how.predictor,
            members=len(files.member or ()),
            settle=how.settle,
            idle=how.idle,
            tell=_Teller(run.as_json).tell,
            **options,
        )


@dataclass
class _Teller:
    """Says how a watch stands, whenever that is something else."""

    is_quiet: bool
    _last: str = ""

    def tell(self, news: WatchStatus) -> None:
        said = news.problem or (
            f"{counted(news.scored, 'case')} scored, {news.failed} failed, {news.coming} arriving"
        )
        if said != self._last and not self.is_quiet:
            typer.echo(f"watching: {said}", err=True)
        self._last = said


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let those who end services end a watch as Ctrl-C does, with all that is scored in the table."""

    def interrupt(_: int, __: FrameType | None) -> Any:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
