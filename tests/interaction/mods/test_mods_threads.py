"""The thread of a mod: everybody reads it, and nobody but the mod speaks there."""

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


class Told(BaseModel):
    pass


class Crier(Mod):
    """Says what it is told in its own thread."""

    name = "crier"
    thread = True

    @operation()
    def cry(self, call: Calling, args: News) -> Told:
        """Have something said."""
        self.host.notice("mod.crier", args.text, {"key": args.key}, args.key, to=("ann",))
        return Told()


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
    raise AssertionError("the connection is over")


async def read(client: Client) -> list[str]:
    page = await client.call("read_thread", thread="mod_crier")
    assert isinstance(page, dict)
    messages = page["messages"]
    assert isinstance(messages, list)
    return [str(each["text_representation"]) for each in messages if isinstance(each, dict)]


async def test_what_a_mod_says_in_its_thread_reaches_everybody_and_wakes_nobody() -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        ann = await network.join("ann", "human")
        bot = await network.join("bot", "agent")
        await bot.call("cry", text="hear, hear")
        for client in (ann, bot):
            event = await notice(client)
            said = event.message
            assert event.wake is None
            assert (said.thread_id, said.sender_kind, said.sender_id) == (
                "mod.crier",
                "system",
                "hub",
            )
            assert said.text == "hear, hear"
            assert said.content == {"notice": "crier", "code": "crier", "mod": "crier", "key": "k"}
            assert said.mentions == ("ann",)


async def test_a_notice_is_posted_one_time_under_its_key() -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        ann = await network.join("ann", "human")
        for text, key in (("one", "a"), ("one again", "a"), ("two", "b")):
            await ann.call("cry", text=text, key=key)
        assert [(await notice(ann)).message.text for _ in range(2)] == ["one", "two"]
        assert await read(ann) == ["one", "two"]


async def test_who_comes_later_reads_what_was_said_before() -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        ann = await network.join("ann", "human")
        await ann.call("cry", text="early")
        await notice(ann)
        bob = await network.join("bob", "human")
        assert await read(bob) == ["early"]
        await ann.call("cry", text="late", key="2")
        assert (await notice(bob)).message.text == "late"


async def test_those_who_were_there_before_the_mod_read_its_thread_too(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with LocalNetwork(store=store) as network:
        await network.join("ann", "human")
    for key in ("first", "second"):
        async with LocalNetwork(store=store, mods=[crier()]) as network:
            ann = await network.join("ann", "human")
            await ann.call("cry", text=key, key=key)
            while (await notice(ann)).message.text != key:
                pass  # what was not acknowledged in the run before comes again
    assert await _read_again(store) == ["first", "second"]


async def _read_again(store: str) -> list[str]:
    """What is in the thread in a network without the mod."""
    async with LocalNetwork(store=store) as network:
        return await read(await network.join("ann", "human"))


@pytest.mark.parametrize("kind", ["human", "agent"])
@pytest.mark.parametrize("to", ["mod.crier", "mod_crier"])
async def test_nobody_but_the_mod_speaks_in_its_thread(kind: str, to: str) -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        who = await network.join("who", "human" if kind == "human" else "agent")
        with pytest.raises(OperationError, match="only the mod itself speaks") as caught:
            await who.call("send_text_message", to=to, text="me too")
        assert caught.value.code == "forbidden"


async def test_nobody_answers_below_what_a_mod_has_said() -> None:
    async with LocalNetwork(mods=[crier()]) as network:
        ann = await network.join("ann", "human")
        await ann.call("cry", text="hear")
        said = await notice(ann)
        with pytest.raises(OperationError, match="only the mod itself speaks"):
            await ann.call("reply", message_id=said.message.id, text="what?")


async def test_a_mod_that_asks_for_no_thread_has_none() -> None:
    async with LocalNetwork(mods=[Mute(ModConfig())]) as network:
        ann = await network.join("ann", "human")
        with pytest.raises(OperationError) as caught:
            await ann.call("read_thread", thread="mod_mute")
        assert caught.value.code == "unknown_thread"
