"""Networks of real processes, on a machine that may be busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from hubbub.client import client
from tests.e2e.support.forked import DEADLINE_S

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer


@pytest.fixture(autouse=True, scope="session")
def _patient() -> Iterator[None]:
    """Clients wait for a hub that gets no processor time for ten seconds while its agents start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "HANDSHAKE_S", DEADLINE_S)
        yield


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A Postgres server of the test's own."""
    from tests.postgres_server import running_postgres  # not every environment has psycopg

    with running_postgres() as server:
        yield server
