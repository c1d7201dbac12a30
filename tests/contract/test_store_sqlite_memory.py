"""The store contract on SQLite in memory, where one connection reads and writes."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.network.ports import Store
from hubbub.network.store import SqliteStore, open_store
from hubbub.network.store.place import Place
from hubbub.testing.store_contract import StoreContract
from tests.contract.full_disk import full_disk


@pytest.mark.behaviour("S-7")
@pytest.mark.behaviour("M-22")
class TestSqliteMemory(StoreContract):
    def new_store(self, folder: Path) -> Store:
        return open_store("sqlite::memory:")

    def refusing(self, store: Store) -> AbstractAsyncContextManager[None]:
        return full_disk(store)


class TestSqliteMemoryIndexedInBetween(TestSqliteMemory):
    def new_store(self, folder: Path) -> Store:
        return SqliteStore(Place(None), tail=5)
