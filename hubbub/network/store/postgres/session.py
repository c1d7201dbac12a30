"""A connection to Postgres that accepts the queries written for SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import Buffer
from psycopg.types.string import StrDumperUnknown

from hubbub.network.store.database import Rows

__all__ = ["COPY_DELIVERIES", "COPY_MESSAGES", "PostgresSession"]

COPY_MESSAGES = "COPY message FROM STDIN (FORMAT BINARY)"
COPY_DELIVERIES = "COPY delivery FROM STDIN (FORMAT BINARY)"
_COLUMNS = {
    COPY_MESSAGES: [
        "int8",
        "int8",
        "int8",
        "int8",
        "text",
        "text",
        "int8",
        "text",
        "text",
        "text",
        "bytea",
        "int8",
    ],
    COPY_DELIVERIES: ["text", "int8", "text", "text"],
}

_DIFFERENT = re.compile(
    r"(?P<literal>'(?:[^']|'')*')"
    r"|(?P<placeholder>\?(?P<number>\d*)|(?<!:):(?P<name>[a-z_]+))"
    r"|CAST\((?P<value>[\w.\"]+) AS (?P<type>BLOB|TEXT)\)"
    r"|(?P<ordered>CROSS JOIN)(?=\s[\w\s():]+?\s(?:ON|USING)\b)"
)


@cache
def translated(sql: str) -> str:
    """The query for psycopg, without SQLite's hint for the join order, as Postgres has
    statistics."""

    def other(match: re.Match[str]) -> str:
        if literal := match["literal"]:
            return literal.replace("%", "%%")
        if match["placeholder"]:
            key = match["name"] or (match["number"] and f"p{match['number']}")
            return f"%({key})s" if key else "%s"
        if match["ordered"]:
            return "JOIN"
        return f"{'as_bytes' if match['type'] == 'BLOB' else 'as_text'}({match['value']})"

    return _DIFFERENT.sub(other, sql)


class _TextDumper(StrDumperUnknown):
    """Stores NUL, which Postgres does not allow in text, as the replacement character."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace("\0", "�"))


class PostgresSession:
    """A `Database`, used by one thread. The writes of a transaction go through one pipeline, so
    that a batch takes few round trips however many statements it has."""

    def __init__(self, connection: psycopg.Connection[Any]):
        self.connection = connection
        connection.adapters.register_dumper(str, _TextDumper)
        self.in_transaction = False
        self.batch = 0
        """Number of the last write transaction that was committed."""
        self._pipeline = ExitStack()

    @property
    def closed(self) -> bool:
        return self.connection.closed

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._pipeline.close()
        self.connection.close()

    def execute(self, sql: str, parameters: Any = (), /) -> Rows:
        if sql in _COLUMNS:
            return self.copy(sql, parameters, _COLUMNS[sql])
        if begun := _TRANSACTION.get(sql):
            return begun(self)
        if "?1" in sql:
            parameters = {f"p{n}": value for n, value in enumerate(parameters, 1)}
        # Without parameters psycopg leaves percent signs as they are.
        return self.connection.execute(translated(sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object:
        for each in parameters:
            self.execute(sql, each)
        return None

    def _begin(self) -> Rows:
        self.in_transaction = True
        self._pipeline.enter_context(self.connection.pipeline())
        self.connection.execute("BEGIN")
        return self.connection.execute("SELECT begin_batch(%s)", (self.batch + 1,))

    def _begin_snapshot(self) -> Rows:
        self.in_transaction = True
        return self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _commit(self) -> Rows:
        rows = self.connection.execute("COMMIT")
        self._pipeline.close()  # raises the pipeline's first error
        self.batch += 1
        self.in_transaction = False
        return rows

    def _roll_back(self) -> Rows:
        with suppress(psycopg.Error):
            self._pipeline.close()
        self.in_transaction = False
        return self.connection.execute("ROLLBACK")

    def copy(self, sql: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> Rows:
        """Run a COPY with these rows; `types` are required in binary format."""
        self._pipeline.close()  # Postgres does not support COPY in a pipeline
        cursor = self.connection.cursor()
        with cursor.copy(sql) as copy:
            if types:
                copy.set_types(types)
            for row in rows:
                copy.write_row(row)
        return cursor


_TRANSACTION = {
    "BEGIN": PostgresSession._begin_snapshot,
    "BEGIN IMMEDIATE": PostgresSession._begin,
    "COMMIT": PostgresSession._commit,
    "ROLLBACK": PostgresSession._roll_back,
}
