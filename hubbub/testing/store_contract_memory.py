"""The part of the store's contract about what participants remember."""

from __future__ import annotations

from hubbub.network.ports import Store
from hubbub.network.queries import MemoriesOf, MemoryValue
from hubbub.network.records import Forgotten, Remembered
from hubbub.network.stored import StoredMemory
from hubbub.testing.store_contract_log import StoreMaker
from hubbub.testing.store_rows import write

__all__ = ["MemoryContract"]


class MemoryContract(StoreMaker):
    """Keys and their values, each participant's own."""

    async def test_what_is_remembered_is_each_participants_own(self, store: Store) -> None:
        await write(store, Remembered("bob", "k", "1"), Remembered("alice", "k", '"é"'))
        assert await store.read(MemoryValue("bob", "k")) == b"1"
        assert await store.read(MemoryValue("alice", "k")) == '"é"'.encode()
        assert await store.read(MemoryValue("carol", "k")) is None
        assert await store.read(MemoryValue("bob", "K")) is None
        assert await store.read(MemoriesOf("carol", 99)) == []

    async def test_what_was_remembered_or_forgotten_last_counts(self, store: Store) -> None:
        await write(store, Remembered("bob", "k", "1"), Remembered("bob", "k", "2"))
        assert await store.read(MemoryValue("bob", "k")) == b"2"
        await write(store, Forgotten("bob", "k"), Forgotten("bob", "never"))
        assert await store.read(MemoryValue("bob", "k")) is None
        await write(store, Remembered("bob", "k", "3"), Forgotten("bob", "k"))
        await write(store, Forgotten("bob", "k"), Remembered("bob", "j", "null"))
        assert await store.read(MemoriesOf("bob", 9)) == [StoredMemory("j", 4, b"null")]

    async def test_keys_come_in_order_and_long_values_without_their_text(
        self, store: Store
    ) -> None:
        for key in ("b", "a", "B", "_"):
            await write(store, Remembered("bob", key, '"é"'))
        await write(store, Remembered("bob", "a", '"éé"'))
        assert await store.read(MemoriesOf("bob", 4)) == [
            StoredMemory("B", 4, '"é"'.encode()),
            StoredMemory("_", 4, '"é"'.encode()),
            StoredMemory("a", 6, None),
            StoredMemory("b", 4, '"é"'.encode()),
        ]
