"""Watched folders: cases are scored as they arrive, and left alone while they are being written."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field

from segtrust.engine.executors import Sandbox
from segtrust.engine.run_log import RunLog
from segtrust.engine.score_table import (
    STAMP_SECONDS,
    ScoreRun,
    ScoreTable,
    TableWriter,
    add_columns,
    check_output,
    check_replaced,
    files_in,
    marks_of,
    merge_settings,
    settings_of,
)
from segtrust.engine.scoring import ScoreJob
from segtrust.errors import ParameterError, SavedStateError, SegtrustError
from segtrust.io import SCORES_FORMAT, CaseFiles, Dataset, Failure, ScoreRow, Stream

__all__ = ["Rhythm", "Settling", "WatchStatus", "watch_cases"]

_REST = 10.0
"""A table is written again after this many times as long as it took to write."""
_REST_OF_LOOKS = 2.0
"""A folder is looked at again after this many times as long as a look took."""


@dataclass(frozen=True)
class Rhythm:
    """When a folder is looked at, and for how long.

    Attributes
    ----------
    every_s
        Seconds between looks; more if a look takes long.
    settle_s
        Seconds for which the files of a case must not have changed.
    idle_s
        Seconds without anything new after which the watch ends; ``None`` for never.
    """

    every_s: float = 1.0
    settle_s: float = 2.0
    idle_s: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in (("settle", self.settle_s), ("idle", self.idle_s), ("every", self.every_s)):
            if value is not None and not 0 <= value < float("inf"):
                raise ParameterError(f"{name}: expected seconds, 0 or more, got {value!r}.")


@dataclass
class Settling:
    """Finds the things that have not changed for a while.

    Examples
    --------
    >>> settling = Settling(2.0)
    >>> settling.look({"a": "1 kB"}, now=0.0), settling.look({"a": "2 kB"}, now=2.0)
    (set(), set())
    >>> settling.look({"a": "2 kB"}, now=4.0)
    {'a'}
    """

    seconds: float
    _since: dict[str, tuple[Hashable, float]] = field(default_factory=dict, init=False)

    def look(self, states: Mapping[str, Hashable], now: float) -> set[str]:
        """Take in the present states, and return the names of those that have not changed for long enough."""
        before = self._since
        self._since = {
            name: (state, before[name][1] if name in before and before[name][0] == state else now)
            for name, state in states.items()
        }
        return {name for name, (_, since) in self._since.items() if now - since >= self.seconds}


@dataclass(frozen=True)
class WatchStatus:
    """Progress of a watch.

    Attributes
    ----------
    scored
        Cases so far.
    failed
        Cases so far, and files that belong to none now.
    coming
        Cases whose files are still being written.
    problem
        Why the folder could not be looked at; empty if it could.
    """

    scored: int
    failed: int
    coming: int
    problem: str = ""


@dataclass
class _Watch:
    """The state of a watch; what is known about cases is in the log, on the disk."""

    job: ScoreJob
    run: ScoreRun
    log: RunLog
    writer: TableWriter
    before: Mapping[str, Sequence[str]]
    """Cases of the table that was there when the watch began, with their files."""
    sandbox: Sandbox
    """Looks into files that may link to others."""
    settling: Settling
    settling_unpaired: Settling
    unpaired: tuple[Failure, ...] = ()
    settled_unpaired: tuple[Failure, ...] = ()
    """Those that have been so for as long as a case takes to settle: partners come one after the other."""
    coming: int = 0
    done: int = 0
    has_looked: bool = False
    incomplete: tuple[Failure, ...] = ()
    """Cases that the log has rows of, for which a further estimator failed."""
    next_table: float = 0.0
    written: tuple[int, tuple[Failure, ...]] = (-1, ())

    def score_new(self, found: Dataset) -> None:
        """Score the cases that are complete, and new or changed."""
        is_first = not self.has_looked
        if is_first:
            check_replaced(self.run, self.before, found.cases, self.log.cases())
            self.has_looked = True
        reasons = {f"{each.file}: {each.reason}": each for each in found.failures}
        settled = self.settling_unpaired.look(dict.fromkeys(reasons), time.monotonic())
        self.unpaired = found.failures
        self.settled_unpaired = tuple(each for key, each in reasons.items() if key in settled)
        present = [case for case in found.cases if case.probabilities.path.exists()]
        marks = marks_of(self.job, present, self.sandbox)
        new = {case.id: case for case in present if not self.log.knows(case.id, marks[case.id])}
        settled = self.settling.look({name: marks[name] for name in new}, time.monotonic())
        ready: list[CaseFiles] = [case for name, case in new.items() if name in settled]
        self.coming = len(new) - len(ready)
        if is_first:
            known = [case for case in present if case.id not in new]
            self._add_columns(known, marks)
        with closing(self.run.executor.run(self.job, ready)) as finished:
            for case, outcome in finished:
                self.log.check_place()
                self.log.add(outcome, marks[case.id])
                self.done += 1
                self.run.advance(1)

    def _add_columns(self, cases: Sequence[CaseFiles], marks: Mapping[str, bytes]) -> None:
        """Compute the estimators that an earlier watch was not asked for."""
        added = add_columns(self.job, cases, executor=self.run.executor, log=self.log, marks=marks)
        for _, outcome in added:
            if outcome is not None and outcome.failure is not None:
                self.incomplete = (*self.incomplete, outcome.failure)
            self.done += 1

    def status(self, problem: str) -> WatchStatus:
        scored, failed = self.log.counts()
        return WatchStatus(scored, failed + len(self.settled_unpaired), self.coming, problem)

    def write(self) -> ScoreTable:
        """Write the table."""
        return self._write(self.unpaired)

    def write_if_new(self) -> None:
        """Write the table if there is news, and enough time has passed: a long one takes long to write."""
        begin, news = time.monotonic(), (self.done, self.settled_unpaired)
        if self.written == news or begin < self.next_table:
            return
        self._write(self.settled_unpaired)
        end = time.monotonic()
        self.written, self.next_table = news, end + _REST * (end - begin)

    def _write(self, unpaired: tuple[Failure, ...]) -> ScoreTable:
        self.log.check_place()
        self.log.sync()  # the table must not have more than the log after a power cut
        try:
            failed = {failure.case for failure in self.incomplete}
            rows = Stream(lambda: (row for row in self.log.rows() if row["case"] not in failed))
            failures = (*self.log.failures(), *self.incomplete, *unpaired)
            return self.writer.write(rows, failures, self.before)
        except FileNotFoundError:
            self.log.check_place()  # with its folder the log is gone, which says more
            raise


def watch_cases(
    look: Callable[[], Dataset],
    job: ScoreJob,
    run: ScoreRun,
    *,
    rhythm: Rhythm | None = None,
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows,
    tell: Callable[[WatchStatus], object] = lambda status: None,
) -> ScoreTable:
    """Score cases as they arrive, until interrupted or, if asked for, until nothing more comes.

    Rows are in the order in which cases arrived, and stay when files are moved away. A case whose files
    change is scored again. A watch that was stopped resumes.

    Parameters
    ----------
    look
        Returns the cases that are there now.
    job
        What is done with each case.
    run
        Where results go, and how the work is done.
    rhythm
        How often to look, and when a case is complete.
    finish
        Adds what depends on all rows, such as decisions, before they are written.
    tell
        Called with the status after each look.

    Raises
    ------
    SavedStateError
        If the log is deleted or replaced during the watch: what is written there would be lost.
    """
    check_output(run.out)
    rhythm, before = rhythm or Rhythm(), files_in(run.out)
    about = {"format": SCORES_FORMAT, **settings_of(job)}
    with (
        closing(run.executor),
        Sandbox(seconds=STAMP_SECONDS) as sandbox,
        RunLog(run.log_path, about, command=run.command) as log,
    ):
        job, about = merge_settings(run, log, job, about)
        if not run.resume:
            log.clear()
        watch = _Watch(
            *(job, run, log, TableWriter(run, about, finish), before, sandbox),
            *(Settling(rhythm.settle_s), Settling(rhythm.settle_s)),
        )
        try:
            with suppress(KeyboardInterrupt):  # how a watch usually ends
                _watch_until_idle(look, rhythm, watch, tell)
            scored = watch.write()
        except SavedStateError:
            if run.out.is_file() and not run.log_path.exists():  # what only the deleted log has
                with suppress(OSError):
                    watch.writer.write(Stream(log.rows), log.failures(), before)
            raise
        log.finish()
    return scored


def _watch_until_idle(
    look: Callable[[], Dataset], rhythm: Rhythm, watch: _Watch, tell: Callable[[WatchStatus], object]
) -> None:
    """Look, score, write and report until nothing has come for a while."""
    known, last_news = 0, time.monotonic()
    while True:
        watch.log.check_place()
        begin, problem = time.monotonic(), ""
        found: Dataset | None = None
        try:
            found = look()
        except (SegtrustError, OSError) as error:  # nothing has come yet, or the drive is away
            problem = str(error)
        took_s = time.monotonic() - begin
        if found is not None:
            watch.score_new(found)
        del found  # as long as the list of all files, and the next one is about to come
        watch.write_if_new()
        tell(watch.status(problem))
        now = time.monotonic()
        if watch.coming or watch.done != known:
            known, last_news = watch.done, now
        if rhythm.idle_s is not None and now - last_news >= rhythm.idle_s:
            return
        time.sleep(max(rhythm.every_s, _REST_OF_LOOKS * took_s))
