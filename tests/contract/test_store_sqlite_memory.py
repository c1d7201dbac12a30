"""The store contract on SQLite in memory, where one connection reads and writes.

Its indexes lag by the default number of entries, so that nothing in these tests is indexed.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.network.ports import Store
from hubbub.network.store import open_store
from hubbub.testing.store_contract import StoreContract
from tests.contract.full_disk import full_disk


@pytest.mark.behaviour("S-7", "M-22")
class TestSqliteMemory(StoreContract):
    def new_store(self, folder: Path) -> Store:
        return open_store("sqlite::memory:")

    def refusing(self, store: Store) -> AbstractAsyncContextManager[None]:
        return full_disk(store)
