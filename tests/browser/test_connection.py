"""No message is lost or duplicated when the connection or the hub fails."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.operations import ThreadPage
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room
from tests.e2e.support.cables import tcp_cable
from tests.e2e.test_up import Up, start
from tests.unit.configs.people import Person

GENERAL = "channel.general"
_REACHES_THE_EDGE = "(it) => it.getBoundingClientRect().right === innerWidth"


async def all_texts(person: Person) -> list[str]:
    """The texts of #general at the hub."""
    page = await person.client.call("read_thread", thread="channel_general", limit=100)
    return [str(message.content) for message in ThreadPage.model_validate(page).messages]


async def shown(desk: Desk) -> list[str]:
    """The ids of the drawn messages once all are loaded; there must be no duplicates."""
    await expect(desk.conversation.locator(".skeleton")).to_have_count(0)
    ids = [message.id for message in await desk.messages()]
    assert [id for id, count in Counter(ids).items() if count > 1] == []
    return ids


async def test_a_hub_restart_loses_no_messages_and_no_draft(desks: Desks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with Room.open(store=store) as room:
        desk = await desks.sit(room, "ann", GENERAL)
        desk.expect_losses()
        await desk.says("before")
    await desk.notices_the_loss()
    for n in range(3):
        await desk.submit(f"into the dark {n}")
    await expect(desk.message("into the dark 2")).to_have_attribute("data-state", "waiting")
    await desk.composer.press_sequentially("half a sentence")
    async with Room.open(store=store, port=room.port) as room:
        for n in range(3):
            await desk.is_stored(f"into the dark {n}")
        await expect(desk.composer).to_have_value("half a sentence")
        await desk.send()
        await desk.is_stored("half a sentence")
        bob = await room.join("bob")
        await bob.posts("general", "after")
        await desk.sees("after")
        dark = [f"into the dark {n}" for n in range(3)]
        assert await all_texts(bob) == ["before", *dark, "half a sentence", "after"]
        assert len(await shown(desk)) == 6
        await desks.leave()


async def test_a_crash_behind_a_gateway_shows_as_a_move_and_each_message_is_sent_once(
    desks: Desks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HUBBUB_GATEWAY_TOKEN", "a token for gateways")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        hub = f"127.0.0.1:{free.getsockname()[1]}"
    network = {
        "name": "moving",
        "store": f"sqlite:{tmp_path}/hub.db",
        "auth": "open",
        "listen": hub,
        "gateway_token": "${HUBBUB_GATEWAY_TOKEN}",
    }
    config = tmp_path / "network.yaml"
    config.write_text(json.dumps({"network": network, "channels": {"general": {}}}))
    async with (
        _running("up", str(config), "--no-agents") as first,
        _running("gateway", "--hubs", hub, "--listen", "127.0.0.1:0") as gateway,
    ):
        url = str(gateway.lines[-1]["url"])
        desk = await desks.sit(url, "ann", GENERAL)
        desk.expect_losses()
        desk.complaints.expect("503")  # files of the page that are loaded on demand
        await desk.says("before")
        await desk.submit("in the very moment")
        first.process.kill()
        connection = desk.page.locator(".connection")
        await expect(connection).to_have_attribute("data-state", "moving")
        await expect(connection).to_contain_text("is moving to another hub")
        dark = [f"into the dark {n}" for n in range(3)]
        for text in dark:
            await desk.submit(text)
            await expect(desk.message(text)).to_contain_text("Waiting for the hub")
        await desk.composer.press_sequentially("half a sentence")
        async with _running("up", str(config), "--no-agents"):
            for text in ("in the very moment", *dark):
                await desk.is_stored(text)
                await expect(desk.message(text)).not_to_contain_text("Waiting for the hub")
            await expect(connection).to_be_empty()
            await expect(desk.composer).to_have_value("half a sentence")
            async with Client(WebSocketTransport(url), "bob", "human") as client:
                page = await client.call("read_thread", thread="channel_general", limit=100)
            texts = [message.content for message in ThreadPage.model_validate(page).messages]
            assert texts == ["before", "in the very moment", *dark]
            assert len(await shown(desk)) == 5
            await desks.leave()


@asynccontextmanager
async def _running(*command: str) -> AsyncIterator[Up]:
    """Run a `hubbub` command within the context."""
    started = Up(await start(*command, "--json"))
    try:
        await started.event("up")
        yield started
    finally:
        if started.process.returncode is None:
            started.process.terminate()
        await started.ended()


async def test_a_hub_with_another_log_replaces_everything_on_the_page(desks: Desks) -> None:
    async with Room.open() as room:
        bob, desk = await room.join("bob"), await desks.sit(room, "ann", GENERAL)
        desk.expect_losses()
        await desk.says("before")
        await bob.posts("general", "@ann of the old log")
        await desk.visit("inbox")
        await expect(desk.main.get_by_role("link", name="of the old log")).to_be_visible()
    await desk.notices_the_loss()
    async with Room.open(port=room.port):
        await desk.is_joined()
        await expect(desk.main).not_to_contain_text("of the old log")
        await desk.visit("thread", GENERAL)
        await expect(desk.main).to_contain_text("No messages in #general yet")
        await desk.says("of the new log")
        assert [message.id for message in await desk.messages()] == ["m1"]
        await desks.leave()


async def test_an_unacknowledged_message_survives_a_reload(desks: Desks, room: Room) -> None:
    async with tcp_cable(room.address) as cable:
        desk = await desks.sit(cable.url, "ann", GENERAL)
        desk.expect_losses()
        cable.silence()
        await desk.submit("said and not heard")
        await expect(desk.message("said and not heard")).to_have_attribute("data-state", "sending")
        cable.cut()
        cable.mend()
        await desk.page.reload()
        await desk.is_stored("said and not heard")
        await desks.leave()
    assert await all_texts(await room.join("bob")) == ["said and not heard"]


async def test_a_reload_during_a_stream_of_messages_loses_nothing(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room, "ann", GENERAL)

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
    assert words == [f"word {n}" for n in range(60 - len(words), 60)], "without a hole"


async def test_messages_of_both_sides_arrive_after_an_offline_period(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    async with tcp_cable(room.address) as cable:
        desk = await desks.sit(cable.url, "ann", GENERAL, new=True)
        desk.expect_losses()
        await desk.says("before")
        await desk.context.set_offline(True)
        cable.cut()
        await desk.notices_the_loss()
        await desk.submit("from the tunnel")
        await expect(desk.message("from the tunnel")).to_contain_text("Waiting for the hub")
        for n in range(40):
            await bob.posts("general", f"meanwhile {n}.")
        cable.mend()
        await desk.context.set_offline(False)
        await desk.sees("meanwhile 39.")
        await desk.is_stored("from the tunnel")
        await desk.to_the_end()
        await desk.sees("meanwhile 39.")
        await desks.leave()
    texts = await all_texts(bob)
    assert Counter(texts).most_common(1)[0][1] == 1
    assert texts.count("from the tunnel") == 1


async def test_a_silent_connection_is_detected_when_a_message_is_sent(
    desks: Desks, room: Room
) -> None:
    async with tcp_cable(room.address) as cable:
        desk = await desks.sit("about:blank", new=True)
        desk.expect_losses()
        await desk.page.clock.install()
        await desk.page.goto(cable.url)
        await desk.join_as("ann")
        await desk.open_thread(GENERAL)
        cable.silence()
        await desk.submit("hello?")
        await desk.page.clock.fast_forward(30_000)
        await desk.notices_the_loss()
        cable.mend()
        await desk.page.clock.fast_forward(30_000)
        await desk.is_stored("hello?")
        await desks.leave()
    assert await all_texts(await room.join("bob")) == ["hello?"]


async def test_no_error_is_shown_after_rejoining_when_a_request_was_pending(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    for n in range(80):
        await bob.posts("general", f"line {n}")
    async with tcp_cable(room.address) as cable:
        desk = await desks.sit(cable.url, "ann")
        desk.expect_losses()
        cable.silence()
        await desk.open_thread(GENERAL)
        await desk.choose_in_own_menu("Leave")
        cable.mend()
        await desk.join_as("ann")
        assert await desk.page.locator(".announcer").inner_text() == ""
        await desks.leave()


@pytest.mark.behaviour("U-9")
async def test_failed_loads_are_retried(desks: Desks, room: Room) -> None:
    again = "Retrying"
    async with tcp_cable(room.address) as cable:
        desk = await desks.sit("about:blank", new=True)
        desk.expect_losses()
        cable.cut_after(20_000)  # bytes: more than the page itself, far less than its files
        await desk.page.goto(cable.url)
        await expect(desk.page.get_by_role("status")).to_contain_text(again)
        cable.mend()
        await desk.join_as("ann")
        cable.cut()
        await desk.notices_the_loss()
        for view in ("network", "control"):
            await desk.visit(view)
            await expect(desk.main.get_by_role("status")).to_contain_text(again)
        await desk.page.get_by_role("button", name="Create a channel").click()
        late = desk.page.locator(".note", has_text="has not loaded yet").last
        await expect(late).to_be_in_viewport()
        assert await desk.main.evaluate(_REACHES_THE_EDGE)
        cable.mend()
        await desk.page.get_by_role("dialog", name="channel").press("Escape")
        await expect(desk.main.get_by_role("heading", level=1)).to_be_visible()
        await desks.leave()
