"""Reloads, restarts, dead wires: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from playwright.async_api import expect

from hubbub.protocol.operations import ThreadPage
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room
from tests.browser.support.wire import laid
from tests.unit.configs.people import Person


async def everything(person: Person, thread: str = "channel_general") -> list[str]:
    """The texts of a thread as the hub has it."""
    page = await person.client.call("read_thread", thread=thread, limit=100)
    return [str(message.content) for message in ThreadPage.model_validate(page).messages]


async def shown(desk: Desk) -> list[str]:
    """The ids that are drawn, which must be different ones."""
    ids = [message.id for message in await desk.messages()]
    assert [id for id, count in Counter(ids).items() if count > 1] == []
    return ids


async def test_a_restart_of_the_hub_while_one_types_loses_nothing(
    desks: Desks, network: Network
) -> None:
    bob = await network.join("bob")
    desk = await desks.sit(network.page)
    desk.expect_losses()
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    await desk.says("before")
    await desk.write("half a sen")
    await network.kill()
    await desk.notices_the_loss()
    await desk.composer.press_sequentially("tence")
    await network.start()
    await desk.is_joined()
    await expect(desk.composer).to_have_value("half a sentence")
    await desk.send()
    await desk.is_stored("half a sentence")
    await bob.posts("general", "after")
    await desk.sees("after")
    assert await everything(bob) == ["before", "half a sentence", "after"]
    assert len(await shown(desk)) == 3


async def test_what_is_sent_while_the_hub_is_away_arrives_once(
    desks: Desks, network: Network
) -> None:
    desk = await desks.sit(network.page)
    desk.expect_losses()
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    await network.kill()
    await desk.notices_the_loss()
    for n in range(3):
        await desk.write(f"into the dark {n}")
        await desk.send()
    await expect(desk.message("into the dark 2")).to_have_attribute("data-state", "sending")
    await network.start()
    for n in range(3):
        await desk.is_stored(f"into the dark {n}")
    bob = await network.join("bob")
    assert await everything(bob) == [f"into the dark {n}" for n in range(3)]
    assert len(await shown(desk)) == 3


async def test_what_was_sent_into_the_dark_survives_a_reload(desks: Desks, room: Room) -> None:
    async with laid(room.port) as wire:
        desk = await desks.sit(wire.url)
        desk.expect_losses()
        await desk.join_as("ann")
        await desk.open_thread("channel.general")
        wire.silence()
        await desk.write("said and not heard")
        await desk.send()
        await expect(desk.message("said and not heard")).to_have_attribute("data-state", "sending")
        wire.mend()
        wire.cut()
        wire.mend()
        await desk.page.reload()
        await desk.is_stored("said and not heard")
    bob = await room.join("bob")
    assert await everything(bob) == ["said and not heard"]


async def test_a_reload_in_the_middle_of_a_stream_loses_nothing(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.open_thread("channel.general")

    async def stream(words: range) -> None:
        for n in words:
            await bob.posts("general", f"word {n}.")

    await stream(range(6))
    await desk.sees("word 5.")
    streaming = asyncio.create_task(stream(range(6, 60)))
    await desk.page.reload()
    await streaming
    await desk.sees("word")
    await desk.to_the_end()
    await desk.sees("word 59.")
    ids = await shown(desk)
    assert ids == sorted(ids, key=lambda id: int(id[1:])), "in the order of the log"
    words = [re.findall(r"word \d+", said.text)[-1] for said in await desk.messages()]
    first = 60 - len(words)
    assert words == [f"word {n}" for n in range(first, 60)], "without a hole"


async def test_a_draft_survives_a_reload(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    await desk.write("not ready yet")
    await desk.page.reload()
    await expect(desk.composer).to_have_value("not ready yet")


async def test_a_while_offline_and_back(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    async with laid(room.port) as wire:
        desk = await desks.sit(wire.url)
        desk.expect_losses()
        await desk.join_as("ann")
        await desk.open_thread("channel.general")
        await desk.says("before")
        await desk.context.set_offline(True)
        wire.cut()
        await desk.notices_the_loss()
        await desk.write("from the tunnel")
        await desk.send()
        for n in range(40):
            await bob.posts("general", f"meanwhile {n}.")
        wire.mend()
        await desk.context.set_offline(False)
        await desk.sees("meanwhile 39.")
        await desk.is_stored("from the tunnel")
        await desk.to_the_end()
        await desk.sees("meanwhile 39.")
    texts = await everything(bob)
    assert Counter(texts).most_common(1)[0][1] == 1
    assert texts.count("from the tunnel") == 1


async def test_a_silent_wire_is_noticed_when_one_speaks(desks: Desks, room: Room) -> None:
    async with laid(room.port) as wire:
        desk = await desks.sit("about:blank")
        desk.expect_losses()
        await desk.page.clock.install()
        await desk.page.goto(wire.url)
        await desk.join_as("ann")
        await desk.open_thread("channel.general")
        wire.silence()
        await desk.write("hello?")
        await desk.send()
        await desk.page.clock.fast_forward(30_000)
        await desk.notices_the_loss()
        wire.mend()
        await desk.page.clock.fast_forward(30_000)
        await desk.is_stored("hello?")
    bob = await room.join("bob")
    assert await everything(bob) == ["hello?"]
