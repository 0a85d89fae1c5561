"""The desk: a run, its policies and its log of verdicts, and what can be asked of them together."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from segtrust.engine import (
    PICTURE_SECONDS,
    Policies,
    Sandbox,
    check_policies,
    check_structures,
    files_of_row,
    find_table,
    is_running,
    load_policies,
    log_beside,
    policies_for_rows,
)
from segtrust.errors import PolicyError, SegtrustError, UnknownNameError, WrongContentError
from segtrust.io import ScoreRow, Table, companions_of
from segtrust.review.audit import AUDIT_SHARE, Audit
from segtrust.review.cache import ByteCache
from segtrust.review.changes import change_of
from segtrust.review.deciding import decide, policy_for
from segtrust.review.entries import Entry, Seen, Standings, Verdict, on_map
from segtrust.review.monitoring import Agreement, Alarm, Monitor, Monitoring, agreement_of
from segtrust.review.pictures import CaseView, Layer, OpenedCase, TilePlace, ask_case, stamp_of_case
from segtrust.review.rows import Key, Rows
from segtrust.review.run import Run, Snapshot
from segtrust.review.store import Store, database_url
from segtrust.review.thresholds import Numbers
from segtrust.review.tiles import box_of, level_count
from segtrust.review.worklist import Query, Verdicts, select

__all__ = ["Desk", "Opening", "Page", "Said", "open_desk"]

_READERS = 2
"""Processes that read case files: one file that hangs does not keep the other cases waiting."""
_MOST_CASES = 1 << 17
"""Cases of which it is known how they can be looked at, and whether their files have changed."""
_MOST_TILES = 64 << 20


@dataclass(frozen=True)
class Page:
    """Rows that are shown: how many there are in all, some of them, and the place of one that was sought."""

    total: int
    rows: list[dict[str, Any]]
    place: int | None = None


@dataclass(frozen=True)
class Said:
    """A verdict as it was sent: what, by whom, and the name of the request, empty where it has none."""

    verdict: Verdict
    comment: str
    reviewer: str
    request: str = ""


@dataclass
class Desk:
    """All that the routes ask.

    Attributes
    ----------
    run, policies, store
        What is looked at, what decides, and where verdicts go.
    title
        Of the run.
    reviewer, minutes
        Name to begin with, and how long a review takes.
    audit_share
        Share of the accepted cases that is audited.
    instance
        Tells a desk from one that was started before on the same run: numbers of rows may be others.
    reader
        Reads the files of cases, in processes of its own: a file that ends or stops its reader is an error of
        its case.
    """

    run: Run
    policies: Policies
    store: Store
    title: str = ""
    reviewer: str = ""
    minutes: float = 5.0
    audit_share: float = AUDIT_SHARE
    instance: str = field(default_factory=lambda: secrets.token_hex(8), init=False)
    reader: Sandbox = field(default_factory=lambda: Sandbox(_READERS, seconds=PICTURE_SECONDS), init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _standings: Standings = field(default_factory=Standings, init=False)
    _numbers: dict[tuple[int, str | None], Numbers] = field(default_factory=dict, init=False)
    _views: ByteCache[CaseView] = field(default_factory=lambda: ByteCache(_MOST_CASES), init=False)
    _changes: ByteCache[str] = field(default_factory=lambda: ByteCache(_MOST_CASES), init=False)
    _companions: ByteCache[list[Path]] = field(default_factory=lambda: ByteCache(_MOST_CASES), init=False)
    _tiles: ByteCache[bytes] = field(default_factory=lambda: ByteCache(_MOST_TILES), init=False)
    _monitor_lock: Lock = field(default_factory=Lock, init=False)
    _stand: tuple[int, Policies] = field(default=(-1, {}), init=False)
    _alarms: tuple[int, list[Alarm]] = field(default=(-1, []), init=False)

    def __post_init__(self) -> None:
        """Begin to watch."""
        self._monitor = Monitor(self.policies)

    def standing_policies(self, snapshot: Snapshot) -> Policies:
        """Give the policies as they stand for the rows of a moment: new ones may bring other masks along."""
        with self._lock:
            known, found = self._stand
            if known != snapshot.version:
                found = _standing(self.policies, snapshot.rows.table)
                self._stand = snapshot.version, found
            return found

    def close(self) -> None:
        """Close the log of verdicts, and end the processes that read files."""
        self.store.close()
        self.reader.close()

    def warm_up(self) -> None:
        """Import and compile what the first looks need, while somebody opens the page."""
        with suppress(SegtrustError):
            self.reader.call(level_count, (1, 1))  # starts a process
        with suppress(SegtrustError):
            numbers = self.numbers(None)
            numbers.at_threshold(0.5, self.minutes)
            numbers.drawn()

    def standings(self) -> Standings:
        """Give what holds, with all that others have said meanwhile."""
        with self._lock:
            self._standings.take(self.store.entries(self._standings.last_id))
            return self._standings

    def page(
        self,
        query: Query,
        *,
        threshold: float | None,
        reviewer: str,
        window: tuple[int, int] = (0, 100),
        find: int | None = None,
    ) -> Page:
        """Give a page of the worklist: ``window`` is the first row and how many; and the place of a row."""
        rows, standings = self.run.now().rows, self.standings()
        decisions = decide(rows, self.policies, threshold)
        verdicts = self._verdicts(rows, standings, reviewer)
        chosen = select(rows, decisions, verdicts, query)
        shown = [
            self._summary(
                rows, place, decisions.names[place], decisions.margins[place], verdicts.names[place]
            )
            for place in chosen[window[0] : sum(window)].tolist()
        ]
        found = np.flatnonzero(rows.numbers[chosen] == (-1 if find is None else find))
        return Page(int(chosen.size), shown, int(found[0]) if found.size else None)

    def _verdicts(self, rows: Rows, standings: Standings, reviewer: str) -> Verdicts:
        names, is_mine = np.full(rows.size, "", object), np.zeros(rows.size, bool)
        with self._lock:
            for key, holding in standings.all_holding():
                place = rows.place_of_key.get(key)
                said = [] if place is None else on_map(holding, rows.digest(place))
                if said:
                    names[place] = said[-1].verdict
                    is_mine[place] = any(each.reviewer == reviewer for each in said)
        return Verdicts(names, is_mine)

    @staticmethod
    def _summary(rows: Rows, place: int, decision: str, margin: float, verdict: str) -> dict[str, Any]:
        texts = {name: rows.texts(name)[place] for name in ("case", "structure", "set", "group")}
        return {
            "number": int(rows.numbers[place]),
            **texts,
            "confidence": _known(rows.confidence[place]),
            "margin": _known(margin),
            "decision": decision or None,
            "dice": _known(rows.dice[place]),
            "digest": rows.digest(place),
            "verdict": verdict or None,
        }

    def summary(self, number: int, threshold: float | None = None) -> dict[str, Any]:
        """Give one row, as in a page."""
        rows, place = self._find(number)
        decisions, standings = decide(rows, self.policies, threshold), self.standings()
        with self._lock:
            holding = on_map(standings.holding(rows.keys[place]), rows.digest(place))
        verdict = holding[-1].verdict if holding else ""
        return self._summary(rows, place, decisions.names[place], decisions.margins[place], verdict)

    def scores(self, number: int) -> dict[str, float]:
        """Give all numbers of a row."""
        rows, place = self._find(number)
        found = {name: _known(value) for name, value in rows.row(place).items() if _is_number(value)}
        return {name: value for name, value in found.items() if value is not None}

    def history(self, number: int) -> list[Entry]:
        """Give all that was said of a row, oldest first."""
        rows, place = self._find(number)
        standings = self.standings()
        with self._lock:
            return standings.history(rows.keys[place])

    def _find(self, number: int) -> tuple[Rows, int]:
        rows = self.run.now().rows
        if number not in rows.places:
            raise UnknownNameError(f"There is no row of the number {number}.")
        return rows, rows.places[number]

    def case(self, number: int) -> CaseView:
        """Return how the case of a row can be looked at.

        Raises
        ------
        SegtrustError
            If its files cannot be opened, or have changed since they were scored.
        """
        row, about = self._row(number)
        key = self._check_unchanged(number, row, about)
        return self._views.get(key, lambda: self._ask(key, row, about, OpenedCase.view), lambda _: 1)

    def _ask(
        self, key: Hashable, row: ScoreRow, about: Mapping[str, Any], question: Any, *arguments: Any
    ) -> Any:
        """Ask an opened case something, in a process that reads its files."""
        return self._read(row, about, ask_case, key, row, about, question, *arguments)

    def _read(self, row: ScoreRow, about: Mapping[str, Any], function: Any, *arguments: Any) -> Any:
        files = files_of_row(row, about)
        refs = [ref for ref in (*files.maps, files.mask, files.truth, files.image) if ref is not None]
        try:
            return self.reader.call(function, *arguments, files=refs)
        except SegtrustError:
            raise
        except Exception as error:  # whatever a library makes of the files: they must not stop the desk
            raise WrongContentError(
                f"{row['case']}: its files cannot be read ({type(error).__name__}: {error})."
            ) from error

    def _stamp(self, number: int, row: ScoreRow, about: Mapping[str, Any]) -> Hashable:
        """Return what changes with a row and its files."""

        def find_companions(path: Path) -> list[Path]:
            state = path.stat()
            key = (path, state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino)
            return self._companions.get(key, lambda: self._read(row, about, companions_of, path), lambda _: 1)

        return number, stamp_of_case(row, about, find_companions)

    def _check_unchanged(self, number: int, row: ScoreRow, about: Mapping[str, Any]) -> Hashable:
        """Check that the files of a row are those that were scored, and return their stamp.

        Each state of them is examined once.
        """
        key = self._stamp(number, row, about)
        change = self._changes.get(key, lambda: self._read(row, about, change_of, row, about), lambda _: 1)
        if change:
            raise WrongContentError(change)
        return key

    def _row(self, number: int) -> tuple[ScoreRow, Mapping[str, Any]]:
        rows, place = self._find(number)
        return rows.row(place), rows.table.about

    def tile(self, at: TilePlace, window: tuple[float, float] | None) -> bytes:
        """Draw a tile of a layer; grey values are stretched from the one end of the window to the other."""
        case = self.layer(at.number, at.layer)
        slices = case.shape[0] if case.dimensions == 3 else 1
        box = box_of((case.plane.rows, case.plane.columns), at.level, at.row, at.column)
        if box is None or not 0 <= at.slice < slices:
            raise UnknownNameError("There is no such tile.")
        row, about = self._row(at.number)
        key = self._stamp(at.number, row, about)

        def draw() -> bytes:
            tile: bytes = self._ask(key, row, about, OpenedCase.tile, at.layer, at.slice, box, window)
            return tile

        return self._tiles.get((at, window, key), draw, len)

    def layer(self, number: int, layer: Layer) -> CaseView:
        """Return how a case that has a layer can be looked at."""
        case = self.case(number)
        if layer not in case.layers:
            raise UnknownNameError(f"This case has no layer {layer}.")
        return case

    def volume(self, number: int, layer: Layer) -> bytes:
        """Return a layer of a volume as NIfTI."""
        if self.layer(number, layer).dimensions != 3:
            raise UnknownNameError("This case is no volume.")
        row, about = self._row(number)
        volume: bytes = self._ask(self._stamp(number, row, about), row, about, OpenedCase.volume, layer)
        return volume

    def numbers(self, structure: str | None) -> Numbers:
        """Give the cases of a structure as vectors."""
        snapshot = self.run.now()
        self._refuse_unknown(snapshot.rows, structure)
        key, policies = (snapshot.version, structure), self.standing_policies(snapshot)
        with self._lock:
            if key not in self._numbers:
                kept = {each: found for each, found in self._numbers.items() if each[0] == snapshot.version}
                self._numbers = {**kept, key: Numbers.of(snapshot.rows, policies, structure)}
            return self._numbers[key]

    @staticmethod
    def _refuse_unknown(rows: Rows, structure: str | None) -> None:
        if structure is not None and structure not in rows.known("structure"):
            raise UnknownNameError(f"There is no structure {structure!r}.")

    def monitoring(self, structure: str | None) -> Monitoring:
        """Compare the confidences with those of the calibration."""
        rows = self.run.now().rows
        self._refuse_unknown(rows, structure)
        with self._monitor_lock:
            return self._monitor.look(rows, structure)

    def alarms(self) -> list[Alarm]:
        """Tell which policies promise nothing of the new cases; found once for each state of the table."""
        snapshot = self.run.now()
        with self._monitor_lock:
            if self._alarms[0] != snapshot.version:
                self._alarms = snapshot.version, self._monitor.alarms(snapshot.rows)
            return self._alarms[1]

    def agreement(self, structure: str | None) -> Agreement:
        """Compare the verdicts with the confidences."""
        rows = self.run.now().rows
        names = self._verdicts(rows, self.standings(), "").names
        of_it = np.ones(rows.size, bool) if structure is None else rows.texts("structure") == structure
        said = of_it & (names != "")
        return agreement_of(rows.confidence[said], names[said] == str(Verdict.ACCEPT), rows.confidence[of_it])

    def audit(self, structure: str | None) -> Audit | None:
        """Return what the verdicts on a random share of the accepted cases say about the guarantee.

        ``None`` if no policy decides on this structure.
        """
        snapshot = self.run.now()
        rows = snapshot.rows
        self._refuse_unknown(rows, structure)
        verdicts = self._verdicts(rows, self.standings(), "").names
        return self._monitor.audit(
            rows, structure, verdicts, finished=snapshot.finished, share=self.audit_share
        )

    def decide(self, number: int, said: Said, meant: Mapping[str, str]) -> Entry:
        """Write down a verdict on a row; of another case or map than was meant none is.

        Numbers are others after a restart, and a case may be scored again while somebody looks at it: also
        between a request and its repetition, which is answered as the first one was.
        """
        known = self.store.written_by(said.request)
        key, seen = self._shown(number) if known is None else (known.key, known.seen)
        if known is None:
            row, about = self._row(number)
            if row.get("file"):
                self._check_unchanged(number, row, about)
        names: tuple[str, ...] = ("set", "case", "structure", "digest")
        there: dict[str, str] = dict(zip(names, (*key, seen.digest), strict=True))
        if any(there[name] != value for name, value in meant.items()):
            raise WrongContentError(
                f"This is no longer what was looked at: now {' · '.join(filter(None, key))}, or its map "
                "or mask was made anew. Look at it again."
            )
        words = {"comment": said.comment, "reviewer": said.reviewer, "request": said.request}
        return self.store.add(key, said.verdict, seen, **words)

    def _shown(self, number: int) -> tuple[Key, Seen]:
        """Give the case of a row, and what a reviewer is shown of it, for the log."""
        rows, place = self._find(number)
        key = rows.keys[place]
        policy = policy_for(self.policies, key[2])
        told = rows.row(place).get("policy") if policy is None else policy.fingerprint
        decision = decide(rows, self.policies).names[place]
        confidence = _known(rows.confidence[place])
        return key, Seen(str(told or ""), rows.digest(place), confidence, str(decision))

    def number_of(self, entry: Entry, rows: Rows) -> int | None:
        """Give the number of the row that an entry is about; ``None`` where it is gone."""
        place = rows.place_of_key.get(entry.key)
        return None if place is None else int(rows.numbers[place])

    def holds(self, entries: Sequence[Entry]) -> list[bool]:
        """Tell of entries whether they hold now."""
        standings, rows = self.standings(), self.run.now().rows
        with self._lock:
            found = {key: standings.holding(key) for key in {entry.key for entry in entries}}
        places = {key: rows.place_of_key.get(key) for key in found}
        digests = {key: "" if place is None else rows.digest(place) for key, place in places.items()}
        holding = {entry.id for key, said in found.items() for entry in on_map(said, digests[key])}
        return [entry.id in holding for entry in entries]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True)
class Opening:
    """What a desk is opened on.

    Attributes
    ----------
    path
        A folder of `evaluate` or `triage`, or a table of scores.
    policy
        That decides, or ``None``.
    predictor
        Which model made the maps; the promise holds for the policy's own.
    database
        Where verdicts go; a file beside the table where it is empty.
    name
        Of the run; that of its folder or table where it is empty.
    """

    path: Path
    policy: Path | None = None
    predictor: str = ""
    database: str = ""
    name: str = ""


def open_desk(opening: Opening, *, reviewer: str = "", minutes: float = 5.0) -> Desk:
    """Open a run, its policy and its log.

    Raises
    ------
    SegtrustError
        If one of them cannot be used, or the policy is for other cases.
    """
    table = find_table(opening.path)
    loaded = {} if opening.policy is None else load_policies(opening.policy)
    policies = {name: policy.for_predictor(opening.predictor) for name, policy in loaded.items()}
    run = Run(table, policies)
    if not is_running(log_beside(table)):
        run.now()  # or say at once why it cannot be read; while it is written that may pass
    if policies:
        rows = run.now().rows
        check_structures(policies, rows.known("structure"))
        check_policies(policies, rows.table)
    title = opening.name or name_of(table)
    # A folder may hold several tables: each has verdicts of its own, whichever way it is opened.
    store = Store.open(
        database_url(opening.database, table.parent), title if opening.database else table.name
    )
    return Desk(run, policies, store, title, reviewer, minutes)


def _standing(policies: Policies, table: Table) -> Policies:
    """Give policies as they stand for a table, which may have been made anew since the desk was opened."""
    try:
        check_policies(policies, table)
    except PolicyError as error:
        return {name: policy.estimated(str(error)) for name, policy in policies.items()}
    return policies_for_rows(policies, table.rows)


def name_of(table: Path) -> str:
    """Name a run by its folder, whichever way it is opened; of other tables in it also by theirs.

    Examples
    --------
    >>> name_of(Path("/runs/monday/scores.parquet")), name_of(Path("/runs/monday/fold0.csv"))
    ('monday', 'monday/fold0')
    """
    folder = table.parent.resolve().name
    return folder if table.stem == "scores" else f"{folder}/{table.stem}"
