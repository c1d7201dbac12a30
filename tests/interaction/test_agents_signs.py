"""What the others see of a Python agent while it works."""

from __future__ import annotations

import asyncio

import pytest

from hubbub import Agent, Message
from tests.interaction.agent_rig import rig
from tests.interaction.peers import Networks


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"


async def test_a_turn_that_takes_long_is_shown_until_it_ends(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Agent):
        async def on_direct(self, message: Message) -> str:
            await go_on.wait()
            return "done"

    monkeypatch.setattr("hubbub.agents.handlers.SHOWN_AFTER_S", 0.01)
    go_on = asyncio.Event()
    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("slow", Slow())
        await ann.say("slow", "go")
        shown = await ann.signal("activity")
        assert (shown["sender"], shown["thread_id"]) == ("slow", "dm.ann.slow")
        assert shown["data"] == {"state": "thinking"}
        go_on.set()
        assert (await ann.signal("activity"))["data"] == {"state": "idle"}
        assert (await ann.event())["message"]["content"] == "done"


@pytest.mark.parametrize("within", [0.05, 60])
async def test_a_turn_that_fails_or_takes_too_long_is_idle_too(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch, within: float
) -> None:
    class Stuck(Agent):
        async def on_direct(self, message: Message) -> None:
            await fail.wait()
            raise ValueError("broken")

    monkeypatch.setattr("hubbub.agents.handlers.SHOWN_AFTER_S", 0.0)
    fail = asyncio.Event()
    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("stuck", Stuck(), turn_timeout=within)
        await ann.say("stuck", "go")
        assert (await ann.signal("activity"))["data"] == {"state": "thinking"}
        if within > 1:
            fail.set()
        assert (await ann.signal("activity"))["data"] == {"state": "idle"}


async def test_a_quick_turn_makes_no_noise(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.agents.handlers.SHOWN_AFTER_S", 60.0)
    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("echo", Echo())
        await ann.say("echo", "hello")
        await ann.event()
        await net.turn("echo-m1")
        assert [s for s in ann.signals if s["type"] == "activity"] == []
