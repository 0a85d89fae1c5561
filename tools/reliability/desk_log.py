"""What reviewers were told by a desk, held against what the desk has kept."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

__all__ = ["Heard", "Kept", "faults", "read_kept"]

Entry = Mapping[str, Any]

_SAME = (
    *("id", "time", "reviewer", "set", "case", "structure", "verdict", "comment"),
    *("policy", "digest", "confidence", "decision", "undoes"),
)
"""What of an entry never changes; whether it holds, and in which row, may."""
_TRIGGERS = {
    f"segtrust_{table}_no_{change}"
    for table in ("verdicts", "requests")
    for change in ("update", "delete", "insert")
}


@dataclass
class Heard:
    """The log of one reviewer.

    Attributes
    ----------
    reviewer
        Who.
    answered
        Entries that the desk said yes with, in the order in which they were asked for.
    unanswered
        Verdicts that were sent, given up, and never answered: these may be kept or not.
    """

    reviewer: str
    answered: list[Entry] = field(default_factory=list)
    unanswered: list[Entry] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Keep the log in a file, a line for each entry."""
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"answered": True, **each}) for each in self.answered]
        lines += [json.dumps({"answered": False, **each}) for each in self.unanswered]
        (folder / f"{self.reviewer}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")


@dataclass(frozen=True)
class Kept:
    """What a desk has kept.

    Attributes
    ----------
    exported
        As JSON.
    table
        Rows of the CSV.
    rows
        Of the database itself.
    integrity, triggers
        What SQLite says of the file, and what refuses changes in it.
    """

    exported: Sequence[Entry]
    table: Sequence[Mapping[str, str]]
    rows: Sequence[Entry]
    integrity: Sequence[str]
    triggers: frozenset[str]


def read_kept(client: httpx.Client, database: Path) -> Kept:
    """Ask a desk for all that it has, and look into its database beside it."""
    exported = client.get("/api/export.json").raise_for_status().json()
    text = client.get("/api/export.csv").raise_for_status().text
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    with sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM segtrust_verdicts ORDER BY id")]
        checks = [
            *connection.execute("PRAGMA integrity_check"),
            *connection.execute("PRAGMA foreign_key_check"),
        ]
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.close()
    told = [str(tuple(each)) for each in checks]
    return Kept(exported, table, rows, told, frozenset(each["name"] for each in triggers))


def faults(heard: Sequence[Heard], kept: Kept) -> list[str]:
    """Say what was lost, doubled, altered, put in another order, or never sent; nothing if all is well."""
    found = [_of_answers(heard, kept), _of_others(heard, kept), _of_standing(kept), _of_copies(kept)]
    return [each for part in found for each in part]


def _of_answers(heard: Sequence[Heard], kept: Kept) -> Iterator[str]:
    """Hold each answer against what is kept under its number, and the order of those of each reviewer."""
    by_id = {entry["id"]: entry for entry in kept.exported}
    for each in heard:
        for entry in each.answered:
            there = by_id.get(entry["id"])
            if there is None:
                yield f"lost: {entry['id']} of {each.reviewer}"
            elif any(there[name] != entry[name] for name in _SAME):
                yield f"altered: {entry} is kept as {there}"
        numbers = [(entry["id"], entry["time"]) for entry in each.answered]
        if numbers != sorted(numbers) or len(set(numbers)) < len(numbers):
            yield f"another order: those of {each.reviewer}"


def _of_others(heard: Sequence[Heard], kept: Kept) -> Iterator[str]:
    """Find what is kept twice, or was never sent. Every comment is another one."""
    answered = Counter(entry["id"] for each in heard for entry in each.answered)
    yield from (f"answered twice: {number}" for number, count in answered.items() if count > 1)
    comments = Counter(entry["comment"] for entry in kept.exported if entry["verdict"])
    yield from (f"doubled: {comment!r}" for comment, count in comments.items() if count > 1)
    given_up = {(each.reviewer, sent["comment"]) for each in heard for sent in each.unanswered}
    for entry in kept.exported:
        if entry["id"] not in answered and (entry["reviewer"], entry["comment"]) not in given_up:
            yield f"never sent, or not answered: {entry}"


def _of_standing(kept: Kept) -> Iterator[str]:
    """Tell anew what holds: the last verdict of each reviewer on each case that was not taken back."""
    undone = {entry["undoes"] for entry in kept.exported}
    last = {}
    for entry in kept.exported:
        if entry["verdict"] and entry["id"] not in undone:
            last[entry["reviewer"], entry["set"], entry["case"], entry["structure"]] = entry["id"]
    holding = set(last.values())
    for entry in kept.exported:
        if entry["holds"] != (entry["id"] in holding):
            yield f"holds or not: {entry}"


def _of_copies(kept: Kept) -> Iterator[str]:
    """Compare the table and the database with the export, and look at the database itself."""
    expected = [(each["id"], each["reviewer"], each["comment"]) for each in kept.exported]
    if [(int(each["id"]), each["reviewer"], each["comment"]) for each in kept.table] != expected:
        yield "the CSV is not the JSON"
    if [(each["id"], each["reviewer"], each["comment"]) for each in kept.rows] != expected:
        yield "the database is not the JSON"
    if [each["id"] for each in kept.rows] != list(range(1, len(kept.rows) + 1)):
        yield "the numbers have holes"
    if kept.integrity != ["('ok',)"]:
        yield f"SQLite says of its file: {kept.integrity}"
    if kept.triggers != _TRIGGERS:
        yield f"of the triggers there are {sorted(kept.triggers)}"
