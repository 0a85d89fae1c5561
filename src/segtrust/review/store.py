"""The log of verdicts, in a database: rows are added, and none is ever changed or removed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from segtrust._optional import require
from segtrust.errors import (
    OthersVerdictError,
    ParameterError,
    SavedStateError,
    UndoneVerdictError,
    UnknownVerdictError,
)
from segtrust.review.entries import Entry, Seen, Verdict
from segtrust.review.rows import Key

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Store", "database_url"]

FORMAT = "segtrust-verdicts-2"
_BUSY_MS = 30_000
"""How long a writer waits for others before it gives up."""


def database_url(database: str, folder: Path) -> str | Path:
    """Give the address of the log, or a file beside the run where none is given.

    Examples
    --------
    >>> database_url("postgresql://desk@db/verdicts", Path("run"))
    'postgresql+psycopg://desk@db/verdicts'
    >>> database_url("", Path("/data/run")).as_posix()
    '/data/run/verdicts.sqlite'
    """
    if not database:
        return folder / "verdicts.sqlite"
    kind, separator, rest = database.partition("://")
    if kind in ("postgresql", "postgres"):
        return f"postgresql+psycopg://{rest}"
    if not separator or kind not in ("postgresql+psycopg", "sqlite"):
        raise ParameterError(
            f"database: expected postgresql://… or sqlite:///…, got {kind if separator else database!r}."
        )
    return database


@dataclass(frozen=True)
class Store:
    """The verdicts of one run.

    Attributes
    ----------
    engine
        Of the database.
    run
        Tells runs apart that share a database, and tables that share a folder.
    """

    engine: Engine
    run: str = ""

    @classmethod
    def open(cls, place: str | Path, run: str = "") -> Self:
        """Open a log, or begin one, at an address or in a file of SQLite.

        Raises
        ------
        SavedStateError
            If the database cannot be reached, is something else, or of another release.
        """
        sqlalchemy = require("sqlalchemy", extra="review")
        if isinstance(place, str) and place.startswith("postgresql"):
            require("psycopg", extra="review")
        try:
            url = place if isinstance(place, str) else sqlalchemy.URL.create("sqlite", database=str(place))
            engine = sqlalchemy.create_engine(url, pool_pre_ping=True)
        except (sqlalchemy.exc.ArgumentError, ValueError):  # what it says may hold the password
            raise ParameterError(
                "database: expected an address such as postgresql://name@host/verdicts."
            ) from None
        found = cls(engine, run)
        _keep_to_oneself(engine)
        with found._reaching():
            found._prepare()
        return found

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def add(
        self, key: Key, verdict: Verdict, seen: Seen, *, comment: str, reviewer: str, request: str = ""
    ) -> Entry:
        """Add a verdict on a row, with what the reviewer was shown of it.

        Where ``request`` names what was sent, it is written once, however often it comes: whoever got no
        answer sends the same again.

        Raises
        ------
        ParameterError
            If another verdict was sent under this name.
        """
        said = {"verdict": str(verdict), "comment": comment, "reviewer": reviewer}
        known = self.written_by(request)
        entry = known or self._insert(key, request, **said, **vars(seen))
        if (entry.key, entry.verdict, entry.comment, entry.reviewer) != (key, *said.values()):
            raise ParameterError(f"request: expected a new one, got that of verdict {entry.id}.")
        return entry

    def written_by(self, request: str) -> Entry | None:
        """Give what a request has written; ``None`` where it has not come yet, or has no name."""
        if not request:
            return None
        with self.engine.connect() as connection:
            return self._written_by(connection, request)

    def undo(self, entry_id: int, reviewer: str) -> Entry:
        """Add that a verdict is taken back.

        Raises
        ------
        UnknownVerdictError, OthersVerdictError, UndoneVerdictError
            If there is nothing that this reviewer can take back. Of two who try at once one is refused: an
            entry can be named by one undo only.
        """
        from sqlalchemy.exc import IntegrityError

        entry = self._find(entry_id)
        if entry is None:
            raise UnknownVerdictError(f"There is no verdict of the number {entry_id}.")
        if entry.reviewer != reviewer:
            raise OthersVerdictError(f"This verdict is of {entry.reviewer}: only they can take it back.")
        if entry.undoes is not None:
            raise UndoneVerdictError("This takes back a verdict, and cannot be taken back. Decide anew.")
        try:
            return self._insert(
                entry.key, "", verdict="", comment="", reviewer=reviewer, undoes=entry_id, **vars(entry.seen)
            )
        except IntegrityError:
            raise UndoneVerdictError("This verdict has been taken back already.") from None

    def entries(self, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Give the entries of this run later than a number, oldest first."""
        table = verdicts_table()
        wanted = table.select().where(table.c.run == self.run, table.c.id > after).order_by(table.c.id)
        with self.engine.connect() as connection:
            return [_entry(row) for row in connection.execute(wanted.limit(limit)).mappings()]

    def _find(self, entry_id: int) -> Entry | None:
        table = verdicts_table()
        wanted = table.select().where(table.c.run == self.run, table.c.id == entry_id)
        with self.engine.connect() as connection:
            found = connection.execute(wanted).mappings().first()
        return None if found is None else _entry(found)

    def _insert(self, key: Key, request: str, **values: Any) -> Entry:
        """Write an entry, and by which request it came, both or none; one that has come before is given."""
        table = verdicts_table()
        named = dict(zip(("set_name", "case_name", "structure"), key, strict=True))
        with self.engine.begin() as connection:
            self._queue(connection)
            known = self._written_by(connection, request) if request else None
            if known is not None:
                return known
            time = datetime.now(UTC).isoformat(timespec="milliseconds")
            statement = table.insert().values(run=self.run, **named, time=time, **values).returning(table)
            entry = _entry(connection.execute(statement).mappings().one())
            if request:
                came = {"run": self.run, "request": request, "verdict": entry.id}
                connection.execute(requests_table().insert().values(came))
            return entry

    def _written_by(self, connection: Connection, request: str) -> Entry | None:
        table, requests = verdicts_table(), requests_table()
        wanted = table.select().join(requests, requests.c.verdict == table.c.id)
        wanted = wanted.where(requests.c.run == self.run, requests.c.request == request)
        found = connection.execute(wanted).mappings().first()
        return None if found is None else _entry(found)

    def _queue(self, connection: Connection) -> None:
        """Let writers come one after the other, so that numbers and times appear in their order.

        Who has asked for all entries up to a number must not find a lower one later. SQLite has one writer,
        who takes the place before looking whether a request has come: else two could find that it has not.
        """
        if self._is_postgres:
            connection.exec_driver_sql("LOCK TABLE segtrust_verdicts IN SHARE ROW EXCLUSIVE MODE")
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    @property
    def _is_postgres(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            shown = self.engine.url.render_as_string(hide_password=True)
            said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            hint = " (is its folder there, and can it be written to?)" if "unable to open" in said else ""
            raise SavedStateError(
                f"{shown}: expected a database of verdicts, got: {said}{hint}. Choose another: --database."
            ) from error

    def _prepare(self) -> None:
        """Make the tables where they are not there, and what refuses changes; several may do so at once."""
        from segtrust.review import schema

        schema.set_up_connections(self.engine, busy_ms=_BUSY_MS)
        with self.engine.begin() as connection:
            found = schema.prepare(connection, FORMAT)
        if found != FORMAT:
            raise SavedStateError(
                f"{self.engine.url.render_as_string(hide_password=True)}: expected format {FORMAT!r}, got "
                f"{found!r}, of another version of segtrust. Use that version, or another database."
            )


def _keep_to_oneself(engine: Engine) -> None:
    """Let nobody else read a log that is begun in a file; what is there keeps the rights that it has.

    What SQLite writes beside a file has the same rights. Where it cannot be made SQLite says why.
    """
    file = engine.url.database
    if engine.dialect.name == "sqlite" and file and file != ":memory:":
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def verdicts_table() -> Any:
    """Give the table of the log."""
    from segtrust.review.schema import VERDICTS

    return VERDICTS


def requests_table() -> Any:
    """Give the table of the requests that have written to the log."""
    from segtrust.review.schema import REQUESTS

    return REQUESTS


def _entry(row: Any) -> Entry:
    return Entry(
        id=row["id"],
        time=row["time"],
        reviewer=row["reviewer"],
        set=row["set_name"],
        case=row["case_name"],
        structure=row["structure"],
        verdict=row["verdict"],
        comment=row["comment"],
        seen=Seen(row["policy"], row["digest"], row["confidence"], row["decision"]),
        undoes=row["undoes"],
    )
