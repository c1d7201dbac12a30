"""The store contract on a SQLite file, with indexes that lag, follow at once, and in between."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.network.ports import Store
from hubbub.network.store import SqliteStore, open_store
from hubbub.network.store.place import Place
from hubbub.testing.store_contract import DurableStoreContract
from tests.contract.full_disk import full_disk


@pytest.mark.behaviour("S-7")
@pytest.mark.behaviour("M-22")
class TestSqliteFile(DurableStoreContract):
    def new_store(self, folder: Path) -> Store:
        return open_store(f"sqlite:{folder}/log.db")

    def refusing(self, store: Store) -> AbstractAsyncContextManager[None]:
        return full_disk(store)


class TestSqliteFileIndexedAtOnce(TestSqliteFile):
    def new_store(self, folder: Path) -> Store:
        return SqliteStore(Place(folder / "log.db"), tail=1)


class TestSqliteFileIndexedInBetween(TestSqliteFile):
    def new_store(self, folder: Path) -> Store:
        return SqliteStore(Place(folder / "log.db"), tail=5)
