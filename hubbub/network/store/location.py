"""The location of a SQLite store: `sqlite:<path>` or `sqlite::memory:`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hubbub.config.paths import POSTGRES
from hubbub.errors import UserError

__all__ = ["SqliteLocation", "cluster_extra", "parse_url"]

_SCHEME = "sqlite:"
_MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class SqliteLocation:
    """A SQLite database: a file, or in memory if `path` is None."""

    path: Path | None

    @property
    def database(self) -> str:
        """The argument for `sqlite3.connect`."""
        return _MEMORY if self.path is None else str(self.path)

    def __str__(self) -> str:
        return "the store in memory" if self.path is None else str(self.path)


@contextmanager
def cluster_extra() -> Iterator[None]:
    """Report a missing extra when Postgres modules are imported."""
    try:
        yield
    except ImportError as error:
        raise UserError(
            "a store on Postgres needs psycopg: pip install 'hubbub[cluster]'"
        ) from error


def parse_url(url: str) -> SqliteLocation:
    """The location in a SQLite URL. Raises `UserError` for any other URL."""
    if url.startswith(POSTGRES):
        raise UserError(
            "this works on a SQLite file, but this network's store is in Postgres: use Postgres' "
            "own programs (pg_dump, pg_restore)"
        )
    scheme, rest = url[: len(_SCHEME)], url[len(_SCHEME) :]
    if scheme != _SCHEME or not rest:
        raise UserError(
            f"store {url!r} is not understood: write sqlite:<file>, for example sqlite:hubbub.db, "
            "sqlite::memory: for a store that is lost at the end, or postgresql://<user>@<host>/"
            "<database>"
        )
    if rest == _MEMORY:
        return SqliteLocation(None)
    path = Path(rest).expanduser()
    if path.is_dir():
        raise UserError(f"store {url!r} is a folder: name a file in it, sqlite:{rest}/hubbub.db")
    if not path.parent.is_dir():
        raise UserError(f"store {url!r}: the folder {path.parent} does not exist, create it first")
    return SqliteLocation(path)
