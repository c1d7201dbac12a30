"""The means of these tests must themselves hold."""

from __future__ import annotations

import asyncio

import pytest

from tests.interaction.peers import Network, config

pytestmark = pytest.mark.asyncio(loop_scope="module")
NETWORK = config(channels={"desk": {"members": "all"}})


async def test_who_reads_the_answer_of_another_hands_it_over(shared: Network) -> None:
    ann = await shared.join("ann")
    first, second = [await ann.post("list_channels") for _ in range(2)]
    answers = await asyncio.gather(ann.answer(second), ann.answer(first))
    assert [answer["ref"] for answer in answers] == [second, first]


async def test_what_shows_in_the_log_only_is_found_after_its_commit(shared: Network) -> None:
    names = shared.fresh("ann", "bob")
    assert names != shared.fresh("ann", "bob")
    ann, bob = [await shared.join(name) for name in names]
    before = shared.hub.kernel.log.head

    async def grown() -> int | None:
        return shared.hub.kernel.log.head if shared.hub.kernel.log.head > before + 1 else None

    waiting = asyncio.create_task(shared.recorded(grown))
    for text in ("one", "two"):
        await ann.say(names[1], text)
    assert await waiting == before + 2
    assert await bob.texts() == ["one", "two"]
    assert {channel["name"] for channel in bob.ready["channels"]} == {"desk"}
