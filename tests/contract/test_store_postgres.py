"""The store contract on a real Postgres, which `make test-postgres` starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from hubbub.network.ports import Store
from hubbub.network.store import open_store
from hubbub.testing.store_contract import DurableStoreContract
from tests.contract.postgres_server import PostgresServer, running_postgres

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.mark.behaviour("S-7", "M-22")
class TestPostgres(DurableStoreContract):
    @pytest.fixture(autouse=True)
    def _empty_database(self, server: PostgresServer) -> None:
        self.url = server.url()
        with psycopg.connect(self.url) as db:
            db.execute("DROP SCHEMA IF EXISTS hubbub CASCADE")

    def new_store(self, folder: Path) -> Store:
        return open_store(self.url)

    @asynccontextmanager
    async def refusing(self, store: Store) -> AsyncIterator[None]:
        """The server refuses what is large as it does on a full disk."""
        large = (
            "CREATE TRIGGER filled BEFORE INSERT ON {} FOR EACH ROW WHEN ({}) EXECUTE FUNCTION f()"
        )
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("SET search_path = hubbub")
            db.execute(
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$"
            )
            db.execute(large.format("message", "length(new.body) > 50000").encode())
            db.execute(large.format("mod_page", "true").encode())
            yield
            db.execute("DROP FUNCTION f() CASCADE")
