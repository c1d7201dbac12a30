"""The means of these tests must themselves hold."""

from __future__ import annotations

import asyncio

from tests.interaction.peers import Networks


async def test_who_reads_the_answer_of_another_hands_it_over(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        first, second = [await ann.post("list_channels") for _ in range(2)]
        answers = await asyncio.gather(ann.answer(second), ann.answer(first))
    assert [answer["ref"] for answer in answers] == [second, first]
