"""The store contract on a SQLite file, whose indexes lag behind the log by a few entries."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.network.ports import Store
from hubbub.network.store import SqliteStore
from hubbub.network.store.location import SqliteLocation
from hubbub.testing.store_contract import DurableStoreContract
from tests.contract.full_disk import full_disk


@pytest.mark.behaviour("S-7", "M-22")
class TestSqliteFile(DurableStoreContract):
    def new_store(self, folder: Path) -> Store:
        return SqliteStore(SqliteLocation(folder / "log.db"), tail=5)

    def refusing(self, store: Store) -> AbstractAsyncContextManager[None]:
        return full_disk(store)
