from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from benchmarks.fill import BATCH, PARTICIPANTS, fill
from hubbub.network.ports import Store
from hubbub.network.queries import PendingWakes
from hubbub.network.store import open_store
from hubbub.protocol.messages import Message

COUNT = BATCH + 100


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("sqlite::memory:")
    await opened.open()
    yield opened
    await opened.close()


async def test_a_filled_log_has_the_messages_as_they_travel(store: Store) -> None:
    await fill(store, COUNT)
    entries = await store.log(0, COUNT, COUNT)
    assert [entry.seq for entry in entries] == list(range(1, COUNT + 1))
    messages = [Message.model_validate_json(entry.body) for entry in entries]
    assert [message.seq for message in messages] == [entry.seq for entry in entries]
    kinds = [message.type for message in messages]
    assert kinds.count("direct") > kinds.count("channel") > 0
    page = await store.thread_page(1, None, COUNT)
    positions = [Message.model_validate_json(body).tseq for body in page]
    assert positions == list(range(1, len(page) + 1)), "dense in each thread"
    assert await store.read(PendingWakes("past1", COUNT)) == [], (
        "nobody of the past has a wake to answer"
    )
    reached = [await store.events(f"past{n}", 0, 500, 500, False) for n in range(PARTICIPANTS)]
    assert sum(map(len, reached)) > 500  # a channel's message reaches its members
