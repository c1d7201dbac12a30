"""Agents that wait a moment for more before they begin."""

from __future__ import annotations

import pytest

from tests.interaction.agent_rig import arrived, finish, held, playing, rig, says, send, wakes_of
from tests.interaction.peers import Networks, config

DESK = config(channels={"desk": {"members": "all"}})


@pytest.mark.behaviour("H-67")
async def test_a_turn_begins_with_all_that_came_while_the_agent_waited(
    in_memory: Networks,
) -> None:
    async with playing(says(send("ann", "all of it"), finish())) as model, rig(in_memory) as net:
        ann, zed = await net.person(), await net.network.join("zed", "agent")
        await net.llm("bot", model, debounce="60s")
        await zed.say(["ann", "bot"], "one thing")
        await arrived(net, (await zed.say(["ann", "bot"], "another"))["seq"])
        assert not model.requests, "nobody in a hurry has said anything"
        await ann.say(["zed", "bot"], "now")
        assert wakes_of(await net.turn("bot-m1")) == ["m1", "m2", "m3"]


@pytest.mark.behaviour("H-67")
async def test_a_person_who_talks_to_the_agent_does_not_wait(in_memory: Networks) -> None:
    async with playing(says(send("ann", "hello"), finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, debounce="60s")
        await ann.say("bot", "hello")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "finished"


@pytest.mark.behaviour("H-67")
async def test_the_wait_ends_by_itself(in_memory: Networks) -> None:
    async with playing(says(finish())) as model, rig(in_memory, DESK) as net:
        ann = await net.person()
        await net.llm("bot", model, debounce="20ms")
        await ann.call("post_to_channel", channel="desk", text="@bot, when you have time")
        assert wakes_of(await net.turn("bot-m1")) == ["m1"]


@pytest.mark.behaviour("H-67")
async def test_what_came_while_a_turn_ran_has_waited_already(in_memory: Networks) -> None:
    script = [says(send("ann", "yes"), finish(), hold="at work"), says(finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann, zed = await net.person(), await net.network.join("zed", "agent")
        await net.llm("bot", model, debounce="60s")
        await ann.say(["zed", "bot"], "go")
        await held(model, "at work")
        await arrived(net, (await zed.say(["ann", "bot"], "me too"))["seq"])
        model.release("at work")
        assert wakes_of(await net.turn("bot-m1")) == ["m1"]
        assert wakes_of(await net.turn("bot-m2")) == ["m2"]
