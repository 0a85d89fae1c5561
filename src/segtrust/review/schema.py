"""The tables of the log of verdicts, and what refuses to change them. Imported where the log is opened."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    event,
    select,
)
from sqlalchemy.schema import CreateIndex, CreateTable

__all__ = ["REQUESTS", "VERDICTS", "format_of", "prepare", "set_up_connections"]

_TABLES = MetaData()
_FORMATS = Table(
    "segtrust_formats", _TABLES, Column("name", String(40), primary_key=True), Column("format", String(40))
)
VERDICTS = Table(
    "segtrust_verdicts",
    _TABLES,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run", Text, nullable=False),
    Column("set_name", Text, nullable=False),
    Column("case_name", Text, nullable=False),
    Column("structure", Text, nullable=False),
    Column("verdict", String(10), nullable=False),
    Column("comment", Text, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("time", String(40), nullable=False),
    Column("policy", String(64), nullable=False),
    Column("digest", String(80), nullable=False),
    Column("confidence", Double, nullable=True),
    Column("decision", String(10), nullable=False),
    Column("undoes", Integer, ForeignKey("segtrust_verdicts.id"), nullable=True, unique=True),
    sqlite_autoincrement=True,
)
REQUESTS = Table(
    "segtrust_requests",
    _TABLES,
    Column("run", Text, primary_key=True),
    Column("request", String(64), primary_key=True),
    Column("verdict", Integer, ForeignKey("segtrust_verdicts.id"), nullable=False, unique=True),
)
"""Which request wrote which verdict, so that one that is sent again is not written again. A table of its own:
logs of releases that did not have it stay as they are."""
_BY_RUN = Index("segtrust_verdicts_by_run", VERDICTS.c.run, VERDICTS.c.id)
_NAME = "verdicts"
_PAUSE_S = 0.02
_REFUSAL = "the log of verdicts is append-only"
_LOCK = 7_305_110_947
"""Number of the lock under which PostgreSQL makes the tables; any will do that nobody else takes."""

_APPENDED = {
    VERDICTS.name: "SELECT 1 FROM segtrust_verdicts WHERE id = NEW.id OR undoes = NEW.undoes",
    REQUESTS.name: "SELECT 1 FROM segtrust_requests WHERE (run = NEW.run AND request = NEW.request) "
    "OR verdict = NEW.verdict",
}
"""Tables to which rows are only added, and what finds rows whose place a new one would take."""
_SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{change.lower()} BEFORE {change} "
    f"ON {table} {when} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    for table, taken in _APPENDED.items()
    for change, when in (
        ("UPDATE", ""),
        ("DELETE", ""),
        # INSERT OR REPLACE removes a row without asking those who watch for removals.
        ("INSERT", f"WHEN EXISTS ({taken})"),
    )
)
_POSTGRES_TRIGGERS = (
    "CREATE OR REPLACE FUNCTION segtrust_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    *(
        f"CREATE OR REPLACE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE "
        f"ON {table} FOR EACH STATEMENT EXECUTE FUNCTION segtrust_refuse_change()"
        for table in _APPENDED
    ),
)


def set_up_connections(engine: Engine, *, busy_ms: int) -> None:
    """Set up each connection to a SQLite file: readers and a writer side by side, and no verdict lost."""
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        for setting in (f"busy_timeout = {busy_ms}", "synchronous = FULL", "foreign_keys = ON"):
            cursor.execute(f"PRAGMA {setting}")
        _write_ahead(cursor, time.monotonic() + busy_ms / 1000.0)
        cursor.close()


def _write_ahead(cursor: Any, until: float) -> None:
    """Let readers and a writer work side by side; of several who ask for it first SQLite refuses some."""
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def prepare(connection: Connection, wanted: str) -> str | None:
    """Make what is not there yet, and give the format of the log; one of another is not touched."""
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    connection.execute(CreateTable(_FORMATS, if_not_exists=True))
    found = format_of(connection)
    if found in (None, wanted):
        _create(connection, is_postgres)
    if found is None:
        connection.execute(_FORMATS.insert().values(name=_NAME, format=wanted))
    return found or wanted


def _create(connection: Connection, is_postgres: bool) -> None:
    """Make the log, and what refuses changes."""
    connection.execute(CreateTable(VERDICTS, if_not_exists=True))
    connection.execute(CreateTable(REQUESTS, if_not_exists=True))
    connection.execute(CreateIndex(_BY_RUN, if_not_exists=True))
    for trigger in _POSTGRES_TRIGGERS if is_postgres else _SQLITE_TRIGGERS:
        connection.exec_driver_sql(trigger)


def format_of(connection: Connection) -> str | None:
    """Give the format that the log says it has."""
    return connection.execute(select(_FORMATS.c.format).where(_FORMATS.c.name == _NAME)).scalar()
