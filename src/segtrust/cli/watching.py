"""Folders that are watched: options of ``segtrust score --watch``, and what it says meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segtrust.cli.console import counted
from segtrust.cli.jobs import HowFlags, Plan
from segtrust.cli.options import PartFlags
from segtrust.cli.pipes import is_pipe
from segtrust.cli.telling import print_dataset
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.engine import Rhythm, ScoreRun, ScoreTable, WatchStatus
    from segtrust.io import CaseFiles, Dataset

__all__ = ["WatchFlags", "awaited", "check_watch", "watch_until_stopped"]

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

    def rhythm(self) -> Rhythm:
        """Say how often is looked, and when a case is complete."""
        from segtrust.engine import Rhythm

        return Rhythm(settle_s=self.settle, idle_s=self.idle)


def check_watch(folders: Sequence[Path], output: Path, run: PartFlags, *, writes_masks: bool) -> None:
    """Refuse what cannot be watched, or done while watching."""
    for folder in folders:
        if not folder.is_dir():
            raise ParameterError(f"{folder}: expected a folder to watch, got {_kind(folder)}.")
    for what, is_asked in (
        ("output: expected a file", is_pipe(output)),
        ("num-parts: expected 1", run.num_parts > 1),
        ("write-masks: expected nothing", writes_masks),
    ):
        if is_asked:
            raise ParameterError(f"{what} while folders are watched. Leave it or --watch out.")


def _kind(path: Path) -> str:
    return "a file" if path.exists() else "nothing of that name"


def awaited(folder: Path, members: Sequence[str]) -> CaseFiles:
    """Give a case as one will come, to plan by while there is none."""
    from segtrust.io import ArrayRef, CaseFiles

    return CaseFiles("", ArrayRef(folder), members=tuple(ArrayRef(Path(member)) for member in members))


def watch_until_stopped(
    look: Callable[[], Dataset], plan: Plan, table: ScoreRun, rhythm: Rhythm, *, quiet: bool
) -> ScoreTable:
    """Watch, telling on standard error how it stands."""
    from segtrust.engine import watch_cases

    summaries: set[str] = set()

    def look_and_print() -> Dataset:
        found = look()
        if found.cases and not summaries:  # the first time that there is something to pair
            summaries.add(found.summary())
            print_dataset(found, quiet=quiet)
        return found

    with _sigterm_interrupts():
        teller = _Teller(quiet)
        return watch_cases(
            look_and_print, plan.job, table, rhythm=rhythm, finish=plan.decided, tell=teller.tell
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
