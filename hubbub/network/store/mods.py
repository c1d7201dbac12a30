"""Tables of mods, in the same database and the same transactions as the log.

Every table name begins with the mod's own (`polls_vote`). SQLite's authorizer checks, once per
statement text, which tables it touches. Mods run inside the hub and are trusted; this only keeps
their mistakes out of other tables.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from hubbub.errors import UserError
from hubbub.mods.loader import table_prefix
from hubbub.mods.operation import Statement, Value
from hubbub.network.records import ModRows
from hubbub.network.store.connection import disk_trouble
from hubbub.network.store.database import transaction

__all__ = ["bring_up", "mod_rows", "with_tables", "write_mod_rows"]

_ASKING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_FUNCTION}
_ROWS = {
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
}
_ON_TABLES = {
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_CREATE_TRIGGER,
    sqlite3.SQLITE_DROP_INDEX,
    sqlite3.SQLITE_DROP_TRIGGER,
}
"""Objects that belong to a table, which is the second argument."""
_SCHEMA = _ON_TABLES | {
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_CREATE_VTABLE,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_DROP_VIEW,
    sqlite3.SQLITE_DROP_VTABLE,
    sqlite3.SQLITE_REINDEX,
}
_INTERNAL = {"sqlite_master", "sqlite_temp_master", "sqlite_sequence", "sqlite_stat1"}
"""Tables that SQLite itself writes when the schema changes."""

_LISTS = {"json_each", "json_tree"}
"""Table-valued functions."""
_CONNECTING = {
    *((sqlite3.SQLITE_UPDATE, name) for name in ("type", "name", "tbl_name", "rootpage", "sql")),
    (sqlite3.SQLITE_READ, "ROWID"),
}
"""Actions that SQLite reports on its schema when it first uses a virtual table. No statement can
actually perform them."""

Authorizer = Callable[[int, str | None, str | None, str | None, str | None], int]


def _reading_only(prefix: str, action: int, one: str | None, *more: str | None) -> int:
    if _connects(action, one, *more):
        return sqlite3.SQLITE_OK
    if action in _ROWS and action != sqlite3.SQLITE_READ:
        return sqlite3.SQLITE_DENY
    return _rows_only(prefix, action, one, *more)


def _rows_only(prefix: str, action: int, one: str | None, two: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        fine = (two or "").lower() != "load_extension"
    elif action == sqlite3.SQLITE_PRAGMA:
        fine = one == "data_version"  # used by FTS
    else:
        lists = action == sqlite3.SQLITE_READ and one in _LISTS
        own = action in _ROWS and _own(one, prefix)
        fine = own or lists or action in _ASKING or _connects(action, one, two)
    return sqlite3.SQLITE_OK if fine else sqlite3.SQLITE_DENY


def _connects(action: int, one: str | None, two: str | None, *_: str | None) -> bool:
    return one == "sqlite_master" and (action, two) in _CONNECTING


def _schema_too(
    prefix: str, action: int, one: str | None, two: str | None, *more: str | None
) -> int:
    if action == sqlite3.SQLITE_ALTER_TABLE:
        return sqlite3.SQLITE_OK if _own(two, prefix) else sqlite3.SQLITE_DENY
    if action in _ON_TABLES and not _own(two, prefix):
        return sqlite3.SQLITE_DENY
    if action in _SCHEMA:
        return sqlite3.SQLITE_OK if _own(one, prefix) else sqlite3.SQLITE_DENY
    if action in _ROWS and one in _INTERNAL:
        return sqlite3.SQLITE_OK
    return _rows_only(prefix, action, one, two, *more)


def _own(name: str | None, prefix: str) -> bool:
    # SQLite names the index of a UNIQUE column after its table.
    return (name or "").removeprefix("sqlite_autoindex_").startswith(prefix)


@contextmanager
def _held_to(db: sqlite3.Connection, rule: Callable[..., int], mod: str) -> Iterator[None]:
    db.set_authorizer(partial(rule, table_prefix(mod)))
    try:
        yield
    finally:
        db.set_authorizer(None)


def bring_up(db: sqlite3.Connection, mod: str, scripts: Mapping[int, str]) -> None:
    """Run a mod's new scripts, each in its own transaction.

    Raises `UserError` for a script that fails or touches other tables, for tables of a newer
    version of the mod, and for a mod whose table names are taken; `sqlite3.DatabaseError` when the
    disk refuses.
    """
    row = db.execute("SELECT version FROM mod_schema WHERE mod = ?", (mod,)).fetchone()
    version = row[0] if row else 0
    if not row:
        _check_names_are_free(db, mod)
    if version > len(scripts):
        raise UserError(
            f"the tables of the mod {mod} have version {version}, written by a newer one, and this "
            f"one knows versions up to {len(scripts)}: update the mod"
        )
    for number in range(version + 1, len(scripts) + 1):
        try:
            with transaction(db):
                _run_script(db, mod, scripts[number])
                db.execute("INSERT OR REPLACE INTO mod_schema VALUES (?, ?)", (mod, number))
        except sqlite3.DatabaseError as error:
            if disk_trouble(error):
                raise
            raise UserError(
                f"the mod {mod}: its script {number:04} fails: {error}; all names in it must begin "
                f"with {table_prefix(mod)}"
            ) from error


def with_tables(db: sqlite3.Connection) -> Sequence[str]:
    """The names of mods with tables."""
    return [name for (name,) in db.execute("SELECT mod FROM mod_schema ORDER BY mod")]


def _check_names_are_free(db: sqlite3.Connection, mod: str) -> None:
    """A new mod `turn` would own tables of the hub, and `docs` those of a mod `docs_old`."""
    mine = table_prefix(mod).lower()
    names = [name.lower() for (name,) in db.execute("SELECT name FROM sqlite_master")]
    others = [table_prefix(other).lower() for (other,) in db.execute("SELECT mod FROM mod_schema")]
    taken = any(name.startswith(mine) for name in names)
    if taken or any(mine.startswith(other) for other in others):
        raise UserError(
            f"the mod {mod}: tables whose names begin with {mine} already exist: give it another "
            "name"
        )


def _run_script(db: sqlite3.Connection, mod: str, script: str) -> None:
    """Run one statement at a time, as `executescript` would end the transaction."""
    with _held_to(db, _schema_too, mod):
        for statement in _statements(script):
            _check_goes_on(statement)
            db.execute(statement)


def _statements(script: str) -> Iterator[str]:
    start = 0
    for at, character in enumerate(script):
        if character == ";" and sqlite3.complete_statement(script[start : at + 1]):
            yield script[start : at + 1]
            start = at + 1
    if script[start:].strip():
        yield script[start:]


_ROLLBACK = re.compile(r"\brollback\b", re.IGNORECASE)


def _check_goes_on(sql: str) -> None:
    """Raises `sqlite3.DatabaseError` for statements that could end the shared transaction, such as
    `OR ROLLBACK`, which SQLite's authorizer does not report."""
    if _ROLLBACK.search(sql):
        raise sqlite3.ProgrammingError("ROLLBACK would undo other writes: use ABORT")


_vetted: set[tuple[str, str, bool]] = set()
"""(mod, SQL, only reads) of statements that touch only the mod's tables, in any database."""
VETTED = 10_000
"""Limit of the cache, in case a mod puts values into its SQL."""


def _vet(
    db: sqlite3.Connection, mod: str, sql: str, values: Sequence[Value], *, reads: bool
) -> None:
    """Raises `sqlite3.DatabaseError` ("not authorized") for a statement on other tables."""
    # Once per statement, as setting an authorizer makes SQLite prepare all statements again.
    if (mod, sql, reads) in _vetted:
        return
    _check_goes_on(sql)
    with _held_to(db, _reading_only if reads else _rows_only, mod):
        db.execute(f"EXPLAIN {sql}", values).close()
    if len(_vetted) >= VETTED:
        _vetted.clear()
    _vetted.add((mod, sql, reads))


def write_mod_rows(db: sqlite3.Connection, rows: Sequence[ModRows]) -> None:
    """Write the rows of mods, each group completely or not at all.

    A group that cannot be written gets the error in `refused`, and the transaction continues.
    """
    for group in rows:
        group.refused = None
        db.execute("SAVEPOINT mod")
        try:
            for statement in group.statements:
                _write(db, group.mod, statement)
        except Exception as error:  # a mod's statement can be anything
            if isinstance(error, sqlite3.Error) and disk_trouble(error):
                raise  # nothing of the batch is written
            group.refused = error
            db.execute("ROLLBACK TO mod")
        db.execute("RELEASE mod")


class _Conflict(Exception):
    """A statement changed a different number of rows than required."""


def _write(db: sqlite3.Connection, mod: str, statement: Statement) -> None:
    _vet(db, mod, statement.sql, statement.values, reads=False)
    changed = db.execute(statement.sql, statement.values).rowcount
    if statement.rows is not None and changed != statement.rows:
        raise _Conflict(f"{changed} rows changed instead of {statement.rows}")


def mod_rows(
    db: sqlite3.Connection, mod: str, sql: str, values: Sequence[Value]
) -> Sequence[tuple[Value, ...]]:
    """Rows of a mod's own tables. Raises `ValueError` for an invalid query."""
    try:
        _vet(db, mod, sql, values, reads=True)
        return db.execute(sql, values).fetchall()
    except sqlite3.Error as error:
        if disk_trouble(error):
            raise
        raise ValueError(f"the mod {mod} made an invalid query: {error}") from error
