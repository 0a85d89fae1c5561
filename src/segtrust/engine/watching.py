"""Folders that are watched: cases are scored as they arrive, and left alone while they are being written."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from segtrust.engine.journal import Journal, mark_of
from segtrust.engine.outcomes import Outcome
from segtrust.engine.replaced import cases_in
from segtrust.engine.run import stamps_for
from segtrust.engine.score_table import (
    FORMAT,
    PACKAGES,
    PART,
    PREDICTOR,
    Scored,
    ScoreRun,
    TableOfRun,
    check_output,
    settings_of,
)
from segtrust.engine.scoring import ScoreJob
from segtrust.engine.taking_over import MADE_OF, take_over
from segtrust.errors import ParameterError, SavedStateError, SegtrustError
from segtrust.io import CaseFiles, Dataset, Failure, ScoreRow, Stream

__all__ = ["News", "Rhythm", "Settling", "watch_cases"]

_REST = 10.0
"""So many times as long as a table took to write, it rests before it is written again."""
_REST_OF_LOOKS = 2.0
"""So many times as long as a look took."""
_AT_ONCE = 256
"""Cases of which all that tells of a change is held at a time: there may be many, and few are new."""


@dataclass(frozen=True)
class Rhythm:
    """When a folder is looked at, and for how long.

    Attributes
    ----------
    every_s
        Seconds between looks; more where a look takes long.
    settle_s
        Seconds for which the files of a case must not have changed.
    idle_s
        Seconds without anything new after which the watch ends; ``None`` for never.
    """

    every_s: float = 1.0
    settle_s: float = 2.0
    idle_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        for name, value in (("settle", self.settle_s), ("idle", self.idle_s), ("every", self.every_s)):
            if value is not None and not 0 <= value < float("inf"):
                raise ParameterError(f"{name}: expected seconds, 0 or more, got {value!r}.")


@dataclass
class Settling:
    """Which cases have come to rest: what tells of a change in their files has been the same for a while.

    Examples
    --------
    >>> settling = Settling(2.0)
    >>> settling.look({"a": "1 kB"}, now=0.0), settling.look({"a": "2 kB"}, now=2.0)
    (set(), set())
    >>> settling.look({"a": "2 kB"}, now=4.0)
    {'a'}
    """

    seconds: float
    _since: dict[str, tuple[Any, float]] = field(default_factory=dict, init=False)

    def look(self, stamps: Mapping[str, Any], now: float) -> set[str]:
        """Take in how the cases are now, and give those that have not changed for long enough."""
        self._since = {case: self._seen(case, stamp, now) for case, stamp in stamps.items()}
        return {case for case, (_, since) in self._since.items() if now - since >= self.seconds}

    def _seen(self, case: str, stamp: Any, now: float) -> tuple[Any, float]:
        known, since = self._since.get(case, (None, now))
        return stamp, since if known == stamp else now


@dataclass(frozen=True)
class News:
    """How a watch stands.

    Attributes
    ----------
    scored
        Cases so far.
    failed
        Cases so far, and files that belong to none now.
    coming
        Cases whose files are still being written.
    problem
        Why the folder could not be looked at; empty where it could.
    """

    scored: int
    failed: int
    coming: int
    problem: str = ""


@dataclass
class _Watch:
    """What is done about the cases of a folder; what is known of them is in the diary, on the disk."""

    job: ScoreJob
    run: ScoreRun
    journal: Journal
    settling: Settling
    settling_alone: Settling
    unpaired: tuple[Failure, ...] = ()
    alone: tuple[Failure, ...] = ()
    """Those that have been so for as long as a case is left alone: partners do not come at the same time."""
    coming: int = 0
    done: int = 0

    @classmethod
    def of(cls, job: ScoreJob, run: ScoreRun, journal: Journal, settle_s: float) -> _Watch:
        return cls(job, run, journal, Settling(settle_s), Settling(settle_s))

    def take_in(self, found: Dataset) -> None:
        """Score the cases that are complete and new, or have changed."""
        self._take_in_unpaired(found.failures)
        new = self._new(found.cases)
        marks = {name: mark_of(stamp) for name, (_, stamp) in new.items()}
        at_rest = self.settling.look(marks, time.monotonic())
        ready = [case for case, _ in new.values() if case.id in at_rest]
        self.coming = len(new) - len(ready)
        with closing(self.run.engine.run(self.job, ready)) as finished:
            for case, outcome in finished:
                self._keep(outcome, new[case.id][1])

    def _take_in_unpaired(self, unpaired: tuple[Failure, ...]) -> None:
        told = {f"{each.file}: {each.reason}": each for each in unpaired}
        at_rest = self.settling_alone.look(dict.fromkeys(told), time.monotonic())
        self.unpaired = unpaired
        self.alone = tuple(each for key, each in told.items() if key in at_rest)

    def _new(self, cases: Sequence[CaseFiles]) -> dict[str, tuple[CaseFiles, Any]]:
        """Give the cases that are there and not as they were tried, each with what tells of a change."""
        found: dict[str, tuple[CaseFiles, Any]] = {}
        for at in range(0, len(cases), _AT_ONCE):
            some = [case for case in cases[at : at + _AT_ONCE] if case.probabilities.path.exists()]
            stamps = stamps_for(self.job, some)
            found |= {
                case.id: (case, stamps[case.id])
                for case in some
                if not self.journal.knows(case.id, stamps[case.id])
            }
        return found

    def _keep(self, outcome: Outcome, stamp: Any) -> None:
        self.journal.check_place()
        self.journal.add(outcome, stamp)
        self.done += 1
        self.run.advance(1)

    def news(self, problem: str) -> News:
        scored, failed = self.journal.counts()
        return News(scored, failed + len(self.alone), self.coming, problem)


@dataclass
class _Paced:
    """The table of a watch; where it is long it is not written for every case that arrives."""

    table: TableOfRun
    before: Collection[str]
    """Cases of the table that was there when the watch began."""
    _next: float = 0.0
    _written: tuple[int, tuple[Failure, ...]] = (-1, ())

    def write(self, watch: _Watch, *, at_once: bool = False) -> Scored | None:
        """Write the table if there is news, at once or when enough time has passed."""
        begin, news = time.monotonic(), (watch.done, watch.alone)
        if not at_once and (self._written == news or begin < self._next):
            return None
        watch.journal.bring_to_disk()  # a power cut must not leave less in it than in the table
        try:
            scored = self._write(watch, watch.unpaired if at_once else watch.alone)
        except FileNotFoundError:
            watch.journal.check_place()  # with the folder the diary is gone, which says more
            raise
        self._written, end = news, time.monotonic()
        self._next = end + _REST * (end - begin)
        return scored

    def rescue(self, watch: _Watch) -> None:
        """Write what only a diary has that was deleted, unless another run has begun there since."""
        run = self.table.run
        if run.out.is_file() and not run.journal_path.exists():
            with suppress(OSError):  # why the watch ends is being told already
                self._write(watch, watch.alone)

    def _write(self, watch: _Watch, unpaired: tuple[Failure, ...]) -> Scored:
        rows = Stream(watch.journal.rows)
        failures = [*watch.journal.failures(), *watch.journal.damage()]
        table = replace(self.table, about={**self.table.about, MADE_OF: watch.journal.size})
        return table.write(rows, failures, Dataset(failures=unpaired), self.before)


def watch_cases(
    look: Callable[[], Dataset],
    job: ScoreJob,
    run: ScoreRun,
    *,
    rhythm: Rhythm | None = None,
    finish: Callable[[Sequence[ScoreRow]], Sequence[ScoreRow]] = lambda rows: rows,
    tell: Callable[[News], object] = lambda news: None,
) -> Scored:
    """Score cases as they arrive, until interrupted or, if wanted, until nothing more comes.

    Rows stand in the order in which cases arrived, and stay when files are moved away. A case whose files
    change is scored again, one that failed is tried again then. Like any run, one that was killed goes on.
    What the diary has lost is taken from the table that is there; what cannot be made good is among the
    failures. A diary that is deleted meanwhile ends the watch: what it writes there would be lost.

    Parameters
    ----------
    look
        Gives the cases that are there now.
    job
        What is done with each.
    run
        Where results go, and how the work is done.
    rhythm
        How often is looked, and when a case is complete.
    finish
        Adds what depends on all rows, such as decisions, before they are written.
    tell
        Told how the watch stands whenever that has changed.

    Raises
    ------
    SavedStateError
        If the diary is deleted or replaced while the watch goes on.
    """
    check_output(run.out)
    about = {"format": FORMAT, **settings_of(job)}
    rhythm, table = rhythm or Rhythm(), _Paced(TableOfRun(run, about, finish), cases_in(run.out))
    with Journal(run.journal_path, about, run.resume, run.command) as journal:
        if run.resume:
            take_over(run.out, journal, about, (PREDICTOR, PACKAGES, PART))
        watch = _Watch.of(job, run, journal, rhythm.settle_s)
        try:
            with suppress(KeyboardInterrupt):  # how a watch usually ends
                for problem in _looks(look, rhythm, watch):
                    table.write(watch)
                    tell(watch.news(problem))
            scored = table.write(watch, at_once=True)
        except SavedStateError:
            table.rescue(watch)
            raise
    assert scored is not None  # written at once
    return scored


def _looks(look: Callable[[], Dataset], rhythm: Rhythm, watch: _Watch) -> Iterator[str]:
    """Look again and again, take in what is there, and give why that cannot be told: it may be, later."""
    known, last_news = 0, time.monotonic()
    while True:
        watch.journal.check_place()
        begin = time.monotonic()
        found, problem = _look(look)
        took_s = time.monotonic() - begin
        if found is not None:
            watch.take_in(found)
        del found  # as long as the list of all files, and the next one is about to come
        yield problem
        now = time.monotonic()
        if watch.coming or watch.done != known:
            known, last_news = watch.done, now
        if rhythm.idle_s is not None and now - last_news >= rhythm.idle_s:
            return
        time.sleep(max(rhythm.every_s, _REST_OF_LOOKS * took_s))


def _look(look: Callable[[], Dataset]) -> tuple[Dataset | None, str]:
    try:
        return look(), ""
    except (SegtrustError, OSError) as error:  # nothing has come yet, or the drive is away
        return None, str(error)
