"""Turns that people end: the agent lets go of them at once, whatever it waits for."""

from __future__ import annotations

import asyncio

import pytest

from hubbub import Agent, Message
from tests.interaction.agent_rig import Gate, call, finish, rig, says, send
from tests.interaction.peers import Networks, config, eventually
from tests.interaction.test_agents_steering import held, playing

DESK = config(channels={"desk": {"members": "all"}})


@pytest.mark.behaviour("H-63")
@pytest.mark.parametrize("scope", ["turn", "thread", "agent", "all"])
async def test_a_question_to_a_model_is_not_waited_for(in_memory: Networks, scope: str) -> None:
    script = [
        says(send("ann", "never said"), hold="for ever"),
        says(send("ann", "here again"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1)
        said = await ann.say("bot", "go")
        await held(model, "for ever")
        await net.begun("bot-m1")
        target = {"turn": "bot-m1", "thread": said["thread_id"], "agent": "bot"}.get(scope)
        stopped = await ann.call("stop", scope=scope, target=target, reason="enough")
        assert stopped["turns"] == 1
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("cancelled", "stopped by ann: enough")
        if scope != "turn":
            await ann.call("resume", scope=scope, target=target)
        again = await ann.say("bot", "and now?")
        turn = await net.turn(f"bot-{again['id']}")
        assert turn.end is not None
        assert turn.end.outcome == "finished", "its only lane is free, and the model still silent"
        texts = [text for text in await ann.texts() if isinstance(text, str)]
        assert texts == ["here again"]


@pytest.mark.behaviour("H-63")
async def test_what_waits_for_a_lane_never_begins(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), finish(), hold="at work"),
        says(send("ann", "two"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory, DESK) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1)
        await ann.say("bot", "go")
        await held(model, "at work")
        posted = await ann.call("post_to_channel", channel="desk", text="@bot next")
        stopped = await ann.call("stop", scope="thread", target=posted["thread_id"])
        assert (stopped["turns"], stopped["wakes"]) == (0, 1)
        model.release("at work")
        await net.turn("bot-m1")
        await net.network.quiet()
        await ann.call("resume", scope="thread", target=posted["thread_id"])
        again = await ann.call("post_to_channel", channel="desk", text="@bot once more")
        turn = await net.turn(f"bot-{again['id']}")
        assert turn.start.messages == (again["id"],)
        assert len(model.requests) == 2


@pytest.mark.behaviour("H-63")
async def test_a_handler_and_its_tools_end_with_the_turn(in_memory: Networks) -> None:
    gate, ended = Gate(), asyncio.Event()

    class Slow(Agent):
        async def on_direct(self, message: Message) -> str:
            try:
                await gate.wait()
            finally:
                ended.set()
            return "never said"

    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("bot", Slow())
        await ann.say("bot", "go")
        await gate.until_reached()
        await ann.call("stop", scope="agent", target="bot")
        await eventually(ended.is_set)
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "cancelled"


@pytest.mark.behaviour("H-64")
async def test_an_agent_that_was_away_learns_what_was_ended(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), hold="for ever"),
        says(send("ann", "still here"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1)
        await ann.say("bot", "go")
        await held(model, "for ever")
        await net.begun("bot-m1")
        await net.cut("bot")
        await ann.call("stop", scope="turn", target="bot-m1")
        again = await ann.say("bot", "and now?")
        turn = await net.turn(f"bot-{again['id']}")
        assert turn.end is not None
        assert turn.end.outcome == "finished"
