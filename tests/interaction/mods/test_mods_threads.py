"""The thread of a mod, which everyone can read and only the mod can post to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Input
from hubbub.testing.network import LocalNetwork

pytestmark = pytest.mark.behaviour("M-23")


class News(Input):
    text: str
    key: str = "k"


class Posted(BaseModel):
    pass


class Crier(Mod):
    """Posts the text of its callers in its thread."""

    name = "crier"
    thread = True

    @operation()
    def cry(self, call: Calling, args: News) -> Posted:
        """Post a text."""
        self.host.notice("mod.crier", args.text, {"key": args.key}, args.key, to=("ann",))
        return Posted()


class Mute(Mod):
    """Has no thread."""

    name = "mute"


def crier() -> Crier:
    return Crier(ModConfig())


async def notice(client: Client) -> Event:
    """The next message in a thread of a mod."""
    async for item in client.events():
        if isinstance(item, Event) and item.message.type == "mod":
            return item
    raise AssertionError("the connection has ended")


async def read(client: Client) -> list[str]:
    page = await client.call("read_thread", thread="mod_crier")
    assert isinstance(page, dict)
    messages = page["messages"]
    assert isinstance(messages, list)
    return [str(each["text_representation"]) for each in messages if isinstance(each, dict)]


async def test_a_mods_thread_reaches_everyone_once_and_wakes_no_agent() -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        ann = await network.join("ann", "human")
        bot = await network.join("bot", "agent")
        for text, key in (("one", "a"), ("one again", "a"), ("two", "b")):
            await bot.call("cry", text=text, key=key)
        for client in (ann, bot):
            for text, key in (("one", "a"), ("two", "b")):
                event = await notice(client)
                message = event.message
                assert (event.wake, message.text, message.mentions) == (None, text, ("ann",))
                assert (message.thread_id, message.sender_id) == ("mod.crier", "hub")
                assert message.sender_kind == "system"
                assert message.content == {
                    "notice": "crier", "code": "crier", "mod": "crier", "key": key,
                }  # fmt: skip
        bob = await network.join("bob", "human")
        assert await read(bob) == ["one", "two"]
        await ann.call("cry", text="late", key="c")
        assert (await notice(bob)).message.text == "late"
        # Others can neither post there nor reply.
        for who in (ann, bot):
            for to in ("mod.crier", "mod_crier"):
                with pytest.raises(OperationError, match="only the mod itself posts") as caught:
                    await who.call("send_text_message", to=to, text="me too")
                assert caught.value.code == "forbidden"
        with pytest.raises(OperationError, match="only the mod itself posts"):
            await ann.call("reply", message_id=message.id, text="what?")


async def test_participants_from_before_the_mod_can_read_its_thread(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with LocalNetwork(store=store) as network:
        await network.join("ann", "human")
    for key in ("first", "second"):
        async with LocalNetwork(store=store, mods=[crier()]) as network:
            ann = await network.join("ann", "human")
            await ann.call("cry", text=key, key=key)
            while (await notice(ann)).message.text != key:
                pass  # unacknowledged messages of the first run come again
    async with LocalNetwork(store=store) as network:  # without the mod
        assert await read(await network.join("ann", "human")) == ["first", "second"]


async def test_a_mod_that_asks_for_no_thread_has_none() -> None:
    async with LocalNetwork(mods=[Mute(ModConfig())]) as network:
        ann = await network.join("ann", "human")
        with pytest.raises(OperationError) as caught:
            await ann.call("read_thread", thread="mod_mute")
        assert caught.value.code == "unknown_thread"
