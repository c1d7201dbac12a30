"""What becomes of a message in the thread of a turn that runs: its sender says, or the config."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from tests.interaction.agent_rig import Gate, call, finish, notice, rig, says, send
from tests.interaction.peers import Networks
from tests.interaction.test_agents_steering import (
    arrived,
    heard,
    held,
    playing,
    wakes_of,
    with_talk_around,
)


@pytest.mark.behaviour("H-65")
@pytest.mark.parametrize("steer", ["steer", "interrupt"])
async def test_a_message_that_is_to_queue_waits_for_the_next_turn(
    in_memory: Networks, steer: str
) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(finish()),
        says(send("ann", "two"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, steer=steer)
        await ann.say("bot", "first")
        await held(model, "at work")
        await arrived(net, (await ann.say("bot", "second", mode="queue"))["seq"])
        model.release("at work")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert (wakes_of(first), wakes_of(second)) == (["m1"], ["m2"])
        assert first.end is not None
        assert first.end.outcome == "finished"


@pytest.mark.behaviour("H-65")
@pytest.mark.parametrize("steer", ["queue", "interrupt"])
async def test_a_message_that_is_to_steer_enters_the_turn_that_runs(
    in_memory: Networks, steer: str
) -> None:
    script = [says(send("ann", "one"), hold="at work"), says(send("ann", "both")), says(finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, steer=steer)
        await ann.say("bot", "first")
        await held(model, "at work")
        await arrived(net, (await ann.say("bot", "second", mode="steer"))["seq"])
        model.release("at work")
        assert wakes_of(await net.turn("bot-m1")) == ["m1", "m2"]


@pytest.mark.behaviour("H-65")
async def test_of_several_each_goes_where_it_is_to(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(send("ann", "and three")),
        says(finish()),
        says(send("ann", "and two"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "first")
        await held(model, "at work")
        await ann.say("bot", "second", mode="queue")
        await arrived(net, (await ann.say("bot", "third"))["seq"])
        model.release("at work")
        assert wakes_of(await net.turn("bot-m1")) == ["m1", "m3"]
        assert wakes_of(await net.turn("bot-m2")) == ["m2"]


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize(
    ("steer", "how"), [("interrupt", {}), ("steer", {"mode": "interrupt"})], ids=["config", "says"]
)
async def test_an_interruption_ends_the_turn_and_the_next_begins_with_it(
    in_memory: Networks, steer: str, how: dict[str, JsonValue]
) -> None:
    script = [says(send("ann", "never said"), hold="at work"), says(send("ann", "tea"), finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, steer=steer)
        await ann.say("bot", "coffee")
        await held(model, "at work")
        await ann.say("bot", "no, tea", **how)
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert first.end is not None
        assert (first.end.outcome, first.end.reason) == ("cancelled", "interrupted by ann")
        assert wakes_of(second) == ["m2"]
        assert second.start.prompt is not None
        assert "coffee" in second.start.prompt, "it sees what it was at"
        assert (await notice(ann, "cancelled"))["content"]["messages"] == ["m1"]
        assert await heard(net, ann) == ["tea"]


@pytest.mark.behaviour("H-66")
async def test_an_agent_that_was_away_meanwhile_is_interrupted_when_it_is_back(
    in_memory: Networks,
) -> None:
    script = [says(send("ann", "never said"), hold="at work"), says(send("ann", "tea"), finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "coffee")
        await held(model, "at work")
        await net.begun("bot-m1")
        await net.cut("bot")
        await ann.say("bot", "no, tea", mode="interrupt")
        first = await net.turn("bot-m1")
        assert first.end is not None
        assert first.end.reason == "interrupted by ann"
        assert wakes_of(await net.turn("bot-m2")) == ["m2"]


@pytest.mark.behaviour("H-66")
async def test_who_is_interrupted_by_somebody_else_is_told(in_memory: Networks) -> None:
    script = [says(call("list_channels"), hold="at work"), says(send("ben", "on it"), finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann, ben = await net.person(), await net.person("ben")
        await net.llm("bot", model)
        await ann.say(["ben", "bot"], "find me a train")
        await held(model, "at work")
        await ben.say(["ann", "bot"], "a flight!", mode="interrupt")
        await net.turn("bot-m2")
        told = await notice(ann, "cancelled")
        assert told["content"]["messages"] == ["m1"]
        assert "interrupted by ben" in told["text_representation"]


@pytest.mark.behaviour("H-66")
async def test_agents_do_not_interrupt_and_other_threads_are_left_alone(
    in_memory: Networks,
) -> None:
    turn = await with_talk_around(in_memory, steer="interrupt")
    assert turn.end is not None
    assert turn.end.outcome == "finished"


@pytest.mark.behaviour("H-66")
async def test_a_handler_in_python_is_interrupted_where_the_message_says_so(
    in_memory: Networks,
) -> None:
    gate = Gate()

    class Slow(Agent):
        async def on_direct(self, message: Message) -> str:
            if message.text == "slow":
                await gate.wait()
            return f"done: {message.text}"

    async with rig(in_memory) as net:
        ann = await net.person()
        await net.python("bot", Slow())
        await ann.say("bot", "slow")
        await gate.until_reached()
        await ann.say("bot", "quick", mode="interrupt")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert first.end is not None
        assert first.end.outcome == "cancelled"
        assert second.end is not None
        assert second.end.outcome == "finished"
        await notice(ann, "cancelled")
        assert await heard(net, ann) == ["done: quick"]
