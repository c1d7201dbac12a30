"""Empty databases of a Postgres that starts with the first of them and stops with the process."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer

__all__ = ["empty_database"]

_FREE: list[str] = []
"""URLs of databases that no test uses at the moment."""
_NUMBERS = count(1)


@cache
def _server() -> PostgresServer:
    from tests.postgres_server import running_postgres  # not every environment has psycopg

    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running_postgres())


@contextmanager
def empty_database() -> Iterator[str]:
    """The URL of a database without our schema."""
    import psycopg

    url = _FREE.pop() if _FREE else _server().new_database(f"network{next(_NUMBERS)}")
    with psycopg.connect(url) as db:
        db.execute("DROP SCHEMA IF EXISTS hubbub CASCADE")
    try:
        yield url
    finally:
        _FREE.append(url)
