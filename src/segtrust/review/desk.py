"""The desk: a run, its policies and its log of verdicts, and what can be asked of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from segtrust.engine.calibration import Calibration, read_reference, reference_beside, scoring_of
from segtrust.engine.decisions import Policies, load_policies, refuse_other_structures
from segtrust.engine.outcomes import Row
from segtrust.errors import SegtrustError, UnknownNameError, WrongContentError
from segtrust.io.tables import Table
from segtrust.review.cache import ByteCache
from segtrust.review.deciding import decide, policy_for
from segtrust.review.entries import Entry, Standings, Verdict
from segtrust.review.monitoring import Agreement, Monitor, Monitoring, agreement_of
from segtrust.review.pictures import Layer, OpenedCase, TilePlace, open_case, stamp_of_case
from segtrust.review.rows import Rows
from segtrust.review.run import Run, Snapshot, find_table
from segtrust.review.store import Store, database_url
from segtrust.review.thresholds import Numbers
from segtrust.review.tiles import box_of
from segtrust.review.worklist import Query, Verdicts, select
from segtrust.selective.targets import Target

__all__ = ["Desk", "Opening", "Page", "open_desk"]

_MOST_CASES = 1 << 30
"""Bytes of opened cases that are kept."""
_MOST_TILES = 64 << 20


@dataclass(frozen=True)
class Page:
    """Rows that are shown: how many there are in all, and the places of some."""

    total: int
    rows: list[dict[str, Any]]


@dataclass
class Desk:
    """All that the routes ask.

    Attributes
    ----------
    run, policies, store
        What is looked at, what decides, and where verdicts go.
    reference
        Confidences that the policies were made with, by structure.
    title
        Of the run.
    reviewer, minutes
        Name to begin with, and how long a review takes.
    """

    run: Run
    policies: Policies
    store: Store
    reference: Mapping[str, Sequence[float]] = field(default_factory=dict)
    title: str = ""
    reviewer: str = ""
    minutes: float = 5.0
    _lock: Lock = field(default_factory=Lock, init=False)
    _standings: Standings = field(default_factory=Standings, init=False)
    _numbers: dict[tuple[int, str | None], Numbers] = field(default_factory=dict, init=False)
    _cases: ByteCache[OpenedCase] = field(default_factory=lambda: ByteCache(_MOST_CASES), init=False)
    _tiles: ByteCache[bytes] = field(default_factory=lambda: ByteCache(_MOST_TILES), init=False)
    _monitor_lock: Lock = field(default_factory=Lock, init=False)

    def __post_init__(self) -> None:
        """Begin to watch."""
        self._monitor = Monitor(self.policies, self.reference)

    def warm_up(self) -> None:
        """Import and compile what the first look at a threshold needs, while somebody opens the page."""
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
        self, query: Query, *, threshold: float | None, reviewer: str, offset: int = 0, limit: int = 100
    ) -> Page:
        """Give a page of the worklist."""
        rows, standings = self.run.now().rows, self.standings()
        decisions = decide(rows, self.policies, threshold)
        verdicts = self._verdicts(rows, standings, reviewer)
        chosen = select(rows, decisions, verdicts, query)
        shown = [
            self._summary(
                rows, place, decisions.names[place], decisions.margins[place], verdicts.names[place]
            )
            for place in chosen[offset : offset + limit].tolist()
        ]
        return Page(int(chosen.size), shown)

    def _verdicts(self, rows: Rows, standings: Standings, reviewer: str) -> Verdicts:
        names, is_mine = np.full(rows.size, "", object), np.zeros(rows.size, bool)
        with self._lock:
            for key, holding in standings.all_holding():
                place = rows.place_of_key.get(key)
                if place is not None:
                    names[place] = holding[-1].verdict
                    is_mine[place] = any(each.reviewer == reviewer for each in holding)
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
            "verdict": verdict or None,
        }

    def summary(self, number: int, threshold: float | None = None) -> dict[str, Any]:
        """Give one row, as in a page."""
        rows, place = self._find(number)
        decisions, standings = decide(rows, self.policies, threshold), self.standings()
        with self._lock:
            holding = standings.holding(rows.keys[place])
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

    def case(self, number: int) -> OpenedCase:
        """Open the case of a row, or take it from those that were opened last.

        Raises
        ------
        SegtrustError
            If its files cannot be opened.
        """
        row, about = self._row(number)
        key = (number, stamp_of_case(row, about))
        with _telling(row):
            return self._cases.get(key, lambda: open_case(row, about), lambda case: case.memory)

    def _row(self, number: int) -> tuple[Row, Mapping[str, Any]]:
        rows, place = self._find(number)
        return rows.row(place), rows.table.about

    def tile(self, at: TilePlace, window: tuple[float, float] | None) -> bytes:
        """Draw a tile of a layer; grey values are stretched from the one end of the window to the other."""
        case = self.layer(at.number, at.layer)
        slices = case.shape[0] if case.dimensions == 3 else 1
        box = box_of(case.shape[-2:], at.level, at.row, at.column)
        if box is None or not 0 <= at.slice < slices:
            raise UnknownNameError("There is no such tile.")
        row, about = self._row(at.number)
        key = (at, window, stamp_of_case(row, about))
        with _telling(row):
            return self._tiles.get(key, lambda: case.tile(at.layer, at.slice, box, window), len)

    def layer(self, number: int, layer: Layer) -> OpenedCase:
        """Open a case that has a layer."""
        self._find(number)
        case = self.case(number)
        if layer not in case.layers:
            raise UnknownNameError(f"This case has no layer {layer}.")
        return case

    def volume(self, number: int, layer: Layer) -> bytes:
        """Give a layer of a volume as NIfTI."""
        case = self.layer(number, layer)
        if case.dimensions != 3:
            raise UnknownNameError("This case is no volume.")
        with _telling(self._row(number)[0]):
            return case.volume(layer)

    def numbers(self, structure: str | None) -> Numbers:
        """Give the cases of a structure as vectors."""
        snapshot = self.run.now()
        self._refuse_unknown(snapshot.rows, structure)
        key = (snapshot.version, structure)
        with self._lock:
            if key not in self._numbers:
                kept = {each: found for each, found in self._numbers.items() if each[0] == snapshot.version}
                self._numbers = {**kept, key: Numbers.of(snapshot.rows, self.policies, structure)}
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

    def agreement(self, structure: str | None) -> Agreement:
        """Compare the verdicts with the confidences."""
        rows = self.run.now().rows
        names = self._verdicts(rows, self.standings(), "").names
        of_it = np.ones(rows.size, bool) if structure is None else rows.texts("structure") == structure
        said = of_it & (names != "")
        return agreement_of(rows.confidence[said], names[said] == str(Verdict.ACCEPT), rows.confidence[of_it])

    def decide(
        self, number: int, verdict: Verdict, *, comment: str, reviewer: str, case: str | None = None
    ) -> Entry:
        """Write down a verdict on a row; of another case than was meant, as after a restart, none is."""
        rows, place = self._find(number)
        key = rows.keys[place]
        if case is not None and case != key[1]:
            raise WrongContentError(f"The row {number} is now that of the case {key[1]}. Reload the page.")
        policy = policy_for(self.policies, key[2])
        digest = str(rows.row(place).get("policy") or "") if policy is None else policy.digest
        return self.store.add(key, verdict, comment=comment, reviewer=reviewer, policy=digest)

    def number_of(self, entry: Entry, rows: Rows) -> int | None:
        """Give the number of the row that an entry is about; ``None`` where it is gone."""
        place = rows.place_of_key.get(entry.key)
        return None if place is None else int(rows.numbers[place])

    def holds(self, entries: Sequence[Entry]) -> list[bool]:
        """Tell of entries whether they hold now."""
        standings = self.standings()
        with self._lock:
            holding = {entry.id for _, found in standings.all_holding() for entry in found}
        return [entry.id in holding for entry in entries]


@contextmanager
def _telling(row: Row) -> Iterator[None]:
    """Say of which case files cannot be read, whatever a library makes of them."""
    try:
        yield
    except SegtrustError:
        raise
    except Exception as error:  # one bad file must not stop the desk
        raise WrongContentError(
            f"{row['case']}: its files cannot be read ({type(error).__name__}: {error})."
        ) from error


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
    policies, reference = _policies(opening)
    run = Run(table, policies)
    _check_policies(policies, run.now())
    title = opening.name or (table.parent.resolve().name if opening.path.is_dir() else table.stem)
    store = Store.open(database_url(opening.database, table.parent), title if opening.database else "")
    return Desk(run, policies, store, reference, title, reviewer, minutes)


def _policies(opening: Opening) -> tuple[Policies, Mapping[str, Sequence[float]]]:
    if opening.policy is None:
        return {}, {}
    found = load_policies(opening.policy)
    reference = read_reference(reference_beside(opening.policy), found)
    return {name: each.for_predictor(opening.predictor) for name, each in found.items()}, reference


def _check_policies(policies: Policies, snapshot: Snapshot) -> None:
    """Refuse a policy of other structures, or of confidences that were made otherwise."""
    table: Table = snapshot.rows.table
    if policies:
        refuse_other_structures(policies, snapshot.rows.known("structure"))
    for policy in policies.values():
        if table.about.get("estimators"):
            policy.check_scoring(scoring_of(table, Calibration(policy.scoring.estimator, (Target(1.0),))))
