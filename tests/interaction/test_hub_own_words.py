"""A person may have several sockets: each sees what the others said, live and on its return."""

from __future__ import annotations

import pytest

from tests.interaction.peers import Frame, Network, Networks, config


def contents(events: list[Frame]) -> list[str]:
    return [event["message"]["content"] for event in events]


@pytest.mark.behaviour("P-14")
async def test_a_persons_other_socket_sees_what_this_one_sends(network: Network) -> None:
    await network.join("bob")
    laptop, phone = await network.join("ann"), await network.join("ann")
    await laptop.ask("send_text_message", to="bob", text="from the laptop")
    await phone.until(lambda: bool(phone.events))
    assert contents(phone.events) == ["from the laptop"]
    assert laptop.events == []


@pytest.mark.behaviour("P-14")
@pytest.mark.parametrize("operation", ["direct", "broadcast"])
async def test_a_socket_that_was_away_reads_its_persons_own_words_too(
    network: Network, operation: str
) -> None:
    await network.join("bob")
    laptop, phone = await network.join("ann"), await network.join("ann")
    cursor = {"epoch": phone.hello["epoch"], "seq": phone.ready["head"]}
    await phone.close()
    if operation == "direct":
        await laptop.ask("send_text_message", to="bob", text="meanwhile")
    else:
        await laptop.ask("broadcast_text_message", text="meanwhile")
    phone = await network.join("ann", cursor=cursor)
    await phone.until(lambda: bool(phone.events))
    assert contents(phone.events) == ["meanwhile"]


async def test_an_agent_that_was_away_is_not_sent_its_own_words(network: Network) -> None:
    ann, bot = await network.join("ann"), await network.join("bot", "agent")
    cursor = {"epoch": bot.hello["epoch"], "seq": bot.ready["head"]}
    await bot.ask("send_text_message", to="ann", text="mine")
    await bot.close()
    await network.gone("bot")
    await ann.ask("send_text_message", to="bot", text="yours")
    bot = await network.join("bot", "agent", cursor=cursor)
    await bot.until(lambda: bool(bot.events))
    assert contents(bot.events) == ["yours"]


@pytest.mark.behaviour("P-14")
async def test_a_socket_that_fell_behind_is_not_sent_what_it_said_itself(
    in_memory: Networks,
) -> None:
    few = config(network={"limits": {"unacknowledged": 2}})
    async with in_memory.start(few) as network:
        bob, ann = await network.join("bob"), await network.join("ann")
        for number in range(3):
            await bob.ask("send_text_message", to="ann", text=f"bob {number}")
        await ann.ask("send_text_message", to="bob", text="ann")
        await bob.ask("send_text_message", to="ann", text="bob 3")
        await ann.until(lambda: len(ann.events) == 2)
        await ann.send(op="ack", seq=ann.events[-1]["seq"])
        await ann.until(lambda: len(ann.events) == 4)
        assert contents(ann.events) == ["bob 0", "bob 1", "bob 2", "bob 3"]
