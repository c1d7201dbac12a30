"""Handlers that raise what would end the whole process: the turn fails, the agent goes on."""

from __future__ import annotations

import asyncio

import pytest

from hubbub import Agent, Message
from tests.interaction.agent_rig import rig
from tests.interaction.peers import Networks, config, soon

DESK = config(channels={"desk": {"members": "all"}})


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


ESCAPES = {
    "exit": SystemExit("bye"),
    "interrupt": KeyboardInterrupt(),
    "close": GeneratorExit(),
    "cancel": asyncio.CancelledError(),
    "unspeakable": Unspeakable(),
}


class Fragile(Agent):
    def __init__(self) -> None:
        self.overheard: list[str] = []

    async def on_direct(self, message: Message) -> str:
        if message.text in ESCAPES:
            raise ESCAPES[message.text]
        return f"heard {message.text}"

    async def on_channel_message(self, message: Message) -> None:
        self.overheard.append(message.text)
        if message.text in ESCAPES:
            raise ESCAPES[message.text]


@pytest.mark.parametrize("what", ESCAPES)
async def test_a_handler_that_raises_anything_ends_its_turn_and_nothing_else(
    in_memory: Networks, what: str
) -> None:
    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("echo", Fragile())
        await ann.say("echo", what)
        async with soon():
            notice = (await ann.event())["message"]
        assert notice["sender_kind"] == "system"
        turn = await net.turn("echo-m1")
        assert turn.end is not None
        assert turn.end.outcome == "handler_error"
        assert turn.end.reason.startswith(type(ESCAPES[what]).__name__)
        await ann.say("echo", "me")
        assert (await ann.event())["message"]["content"] == "heard me"


@pytest.mark.parametrize("what", ESCAPES)
async def test_so_does_one_that_only_listens(in_memory: Networks, what: str) -> None:
    fragile = Fragile()
    async with rig(in_memory, DESK) as net:
        ann = await net.person()
        await net.python("echo", fragile)
        await ann.call("post_to_channel", channel="desk", text=what)
        await ann.call("post_to_channel", channel="desk", text="more")
        await ann.say("echo", "me")
        assert (await ann.event())["message"]["content"] == "heard me"
        async with soon():
            while len(fragile.overheard) < 2:  # noqa: ASYNC110 - the handler announces nothing
                await asyncio.sleep(0)
        assert fragile.overheard == [what, "more"]
