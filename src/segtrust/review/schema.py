"""The tables of the log of verdicts, and what refuses to change them. Imported where the log is opened."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
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

__all__ = ["VERDICTS", "create", "format_of", "set_up_connections"]

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
    Column("undoes", Integer, ForeignKey("segtrust_verdicts.id"), nullable=True, unique=True),
    sqlite_autoincrement=True,
)
_BY_RUN = Index("segtrust_verdicts_by_run", VERDICTS.c.run, VERDICTS.c.id)
_NAME = "verdicts"
_PAUSE_S = 0.02
_REFUSAL = "the log of verdicts is append-only"
_LOCK = 7_305_110_947
"""Number of the lock under which PostgreSQL makes the tables; any will do that nobody else takes."""

_SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER IF NOT EXISTS segtrust_verdicts_no_{change.lower()} BEFORE {change} "
    f"ON segtrust_verdicts BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    for change in ("UPDATE", "DELETE")
)
_POSTGRES_TRIGGERS = (
    "CREATE OR REPLACE FUNCTION segtrust_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE OR REPLACE TRIGGER segtrust_verdicts_no_change BEFORE UPDATE OR DELETE OR TRUNCATE "
    "ON segtrust_verdicts FOR EACH STATEMENT EXECUTE FUNCTION segtrust_refuse_change()",
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


def create(connection: Connection, wanted: str) -> None:
    """Make what is not there yet, and what refuses changes."""
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    for table in (_FORMATS, VERDICTS):
        connection.execute(CreateTable(table, if_not_exists=True))
    connection.execute(CreateIndex(_BY_RUN, if_not_exists=True))
    for trigger in _POSTGRES_TRIGGERS if is_postgres else _SQLITE_TRIGGERS:
        connection.exec_driver_sql(trigger)
    if format_of(connection) is None:
        connection.execute(_FORMATS.insert().values(name=_NAME, format=wanted))


def format_of(connection: Connection) -> str | None:
    """Give the format that the log says it has."""
    return connection.execute(select(_FORMATS.c.format).where(_FORMATS.c.name == _NAME)).scalar()
