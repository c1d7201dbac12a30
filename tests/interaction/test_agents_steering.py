"""People who say something while a turn runs, or end it: what the agent makes of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from xml.etree import ElementTree

import pytest

from hubbub import Agent, Message
from hubbub.config.models import NetworkFile
from hubbub.testing.model_script import AnyAnswer
from tests.interaction.agent_harness import (
    Gate,
    arrived,
    call,
    ended,
    finish,
    harness,
    heard,
    held,
    notice,
    playing,
    says,
    send,
    wakes_of,
)
from tests.interaction.peers import Networks, config, eventually
from tests.interaction.scripted import Scene, scene

DESK = config(channels={"desk": {"members": "all"}})


@asynccontextmanager
async def at_work(
    networks: Networks, *answers: AnyAnswer, file: NetworkFile | None = None, **config: Any
) -> AsyncIterator[Scene]:
    """Ann has asked the agent for something, and its model is at work."""
    async with scene(networks, *answers, file=file, **config) as s:
        await s.say("first")
        await s.held("at work")
        yield s


# Messages that enter --------------------------------------------------------------------------


@pytest.mark.behaviour("Y-4")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_message_in_a_running_turn_enters_with_the_next_question(
    in_memory: Networks, dialect: str
) -> None:
    script = [
        says(send("ann", "one coffee ordered"), hold="at work"),
        says(send("ann", "made it two")),
        says(finish("both served")),
    ]
    async with at_work(in_memory, *script, endpoint={"dialect": dialect}) as s:
        await s.steer("make it <two> & hurry")
        s.model.release("at work")
        turn = await s.net.turn("bot-m1")
        assert await heard(s.net, s.ann) == ["one coffee ordered", "made it two"]
        assert wakes_of(turn) == ["m1", "m2"]
        (steering,) = turn.steps[1].steered
        assert steering.reply == "required"
        _, second, third = [request.body.messages for request in s.model.requests]
        assert second[-1].role == "user"
        assert steering.text in second[-1].text
        read = ElementTree.fromstring(steering.text.partition("\n\n")[0])
        assert (read.tag, read.get("sender"), read.get("id")) == ("incoming_message", "ann", "m2")
        assert read.findtext("content") == "make it <two> & hurry"
        assert [m.text for m in third[: len(second)]] == [m.text for m in second], "it stays there"
        assert ended(turn).outcome == "finished"
        receipts = await s.ann.call("read_receipts", id="m2")
        told = next(r for r in receipts["receipts"] if r["participant"] == "bot")
        assert (told["turn"], told["state"]) == ("bot-m1", "ended"), "it starts none of its own"


@pytest.mark.behaviour("Y-5")
async def test_a_silent_finish_after_steering_is_asked_about_once(in_memory: Networks) -> None:
    script = [
        says(send("ann", "on it")),
        says(call("list_channels"), hold="at work"),
        says(finish("enough")),
        says(finish("not for me")),
    ]
    async with at_work(in_memory, *script) as s:
        await s.steer("and where is the other?")
        s.model.release("at work")
        turn = await s.net.turn("bot-m1")
        assert [c.error for c in turn.steps[2].calls] == ["reply_required"]
        assert [c.error for c in turn.steps[3].calls] == [None]
        assert (await s.ann.event())["message"]["content"] == "on it"
        told = (await s.ann.event())["message"]["content"]
        assert (told["code"], told["messages"]) == ("finished", ["m3"])
        assert await s.ann.texts() == []


@pytest.mark.behaviour("H-65")
@pytest.mark.parametrize(
    ("configured", "mode", "enters"),
    [
        ("queue", None, False),
        ("steer", "queue", False),
        ("interrupt", "queue", False),
        ("queue", "steer", True),
        ("interrupt", "steer", True),
    ],
)
async def test_its_sender_or_the_config_says_whether_a_message_enters_or_waits(
    in_memory: Networks, configured: str, mode: str | None, enters: bool
) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(send("ann", "two")) if enters else says(finish()),
        says(finish()) if enters else says(send("ann", "two"), finish()),
    ]
    async with at_work(in_memory, *script, steer=configured) as s:
        await s.arrived((await s.ann.say("bot", "second", mode=mode))["seq"])
        s.model.release("at work")
        first = await s.net.turn("bot-m1")
        assert ended(first).outcome == "finished"
        if enters:
            assert wakes_of(first) == ["m1", "m2"]
        else:
            assert wakes_of(first) == ["m1"]
            assert wakes_of(await s.net.turn("bot-m2")) == ["m2"]


@pytest.mark.behaviour("H-65")
async def test_of_several_messages_each_goes_where_it_is_to(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(send("ann", "and three")),
        says(finish(), hold="ending"),
        says(send("ann", "and two, and four"), finish()),
    ]
    async with at_work(in_memory, *script) as s:
        await s.ann.say("bot", "second", mode="queue")
        await s.steer("third")
        s.model.release("at work")
        await s.held("ending")
        last = (await s.ann.say("bot", "last"))["seq"]
        await s.arrived(last)
        s.model.release("ending")
        assert wakes_of(await s.net.turn("bot-m1")) == ["m1", "m3"]
        assert wakes_of(await s.net.turn("bot-m2")) == ["m2", f"m{last}"]


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize("configured", ["steer", "interrupt"])
async def test_agents_and_other_threads_neither_steer_nor_interrupt(
    in_memory: Networks, configured: str
) -> None:
    boss = [says(send("bot", "from an agent"), finish())]
    script = [says(send("ann", "one"), hold="at work"), *[says(finish())] * 3]
    async with playing(*script) as model, playing(*boss) as other, harness(in_memory, DESK) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1, steer=configured)
        await net.llm("boss", other)
        await ann.say(["bot", "boss"], "hello you two")
        await held(model, "at work")
        last = await ann.call("post_to_channel", channel="desk", text="@bot look here")
        await net.turn("boss-m1")
        await arrived(net, last["seq"])
        model.release("at work")
        turn = await net.turn("bot-m1")
        assert (wakes_of(turn), ended(turn).outcome) == (["m1"], "finished")


@pytest.mark.behaviour("Y-6")
@pytest.mark.parametrize("taken_in", [False, True])
async def test_a_message_enters_once_and_in_its_place_although_the_process_dies(
    in_memory: Networks, taken_in: bool
) -> None:
    answer = says(send("ann", "second noted"))
    script: list[AnyAnswer] = [
        says(call("list_channels"), hold="at work"),
        *([answer] if taken_in else []),
        says(finish("never heard"), hold="dying"),
        *([] if taken_in else [answer]),
        says(finish("all done")),
    ]
    async with at_work(in_memory, *script) as s:
        await s.steer("second")
        s.model.release("at work")
        await s.held("dying")
        await s.restart()
        turn = await s.net.turn("bot-m1")
        assert (turn.start.messages, wakes_of(turn)) == (("m1",), ["m1", "m2"])
        assert turn.attempts == 2
        *_, before, again = [r.body.messages for r in s.model.requests][: 4 if taken_in else 3]
        assert [m.text for m in again] == [m.text for m in before]
        assert await heard(s.net, s.ann) == ["second noted"]
        assert len(s.model.requests) == 4, "nothing is left that would wake it"


# Interruptions --------------------------------------------------------------------------------


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize("case", ["config", "says", "away"])
async def test_an_interruption_ends_the_turn_and_the_next_begins_with_it(
    in_memory: Networks, case: str
) -> None:
    script = [says(send("ann", "never said"), hold="at work"), says(send("ann", "tea"), finish())]
    async with at_work(in_memory, *script, steer="interrupt" if case == "config" else "steer") as s:
        if case == "away":  # it hears of it when it is back
            await s.net.begun("bot-m1")
            await s.net.cut("bot")
        await s.ann.say("bot", "no, tea", mode=None if case == "config" else "interrupt")
        first, second = await s.net.turn("bot-m1"), await s.net.turn("bot-m2")
        found = ended(first).outcome, ended(first).reason
        assert found == ("cancelled", "interrupted by ann")
        assert wakes_of(second) == ["m2"]
        assert "first" in (second.prompt or ""), "it sees what it was at"
        assert (await notice(s.ann, "cancelled"))["content"]["messages"] == ["m1"]
        assert await heard(s.net, s.ann) == ["tea"]


@pytest.mark.behaviour("H-66")
async def test_who_is_interrupted_by_somebody_else_is_told(in_memory: Networks) -> None:
    script = [says(call("list_channels"), hold="at work"), says(send("ben", "on it"), finish())]
    async with scene(in_memory, *script) as s:
        ben = await s.net.person("ben")
        await s.ann.say(["ben", "bot"], "find me a train")
        await s.held("at work")
        await ben.say(["ann", "bot"], "a flight!", mode="interrupt")
        await s.net.turn("bot-m2")
        told = await notice(s.ann, "cancelled")
        assert told["content"]["messages"] == ["m1"]
        assert "interrupted by ben" in told["text_representation"]


@pytest.mark.behaviour("H-63", "H-66")
async def test_a_handler_in_python_ends_with_its_turn(in_memory: Networks) -> None:
    gate, released = Gate(), asyncio.Event()

    class Slow(Agent):
        async def on_direct(self, message: Message) -> str:
            if message.text == "slow":
                try:
                    await gate.wait()
                finally:
                    released.set()
            return f"done: {message.text}"

    async with harness(in_memory) as net:
        ann = await net.person()
        await net.python("bot", Slow())
        for n, ending in enumerate(("interrupt", "stop")):
            said = await ann.say("bot", "slow")
            await gate.until_reached()
            if ending == "interrupt":
                again = await ann.say("bot", "quick", mode="interrupt")
                assert ended(await net.turn(f"bot-{again['id']}")).outcome == "finished"
            else:
                await ann.call("stop", scope="agent", target="bot")
            await eventually(released.is_set)
            assert ended(await net.turn(f"bot-{said['id']}")).outcome == "cancelled", n
            gate.reached.clear()
            released.clear()
        assert await heard(net, ann) == ["done: quick"]


# Stops ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-63")
async def test_a_question_of_a_stopped_turn_is_not_waited_for(in_memory: Networks) -> None:
    scopes = ["turn", "thread", "agent", "all"]
    script = [
        answer
        for scope in scopes
        for answer in (
            says(send("ann", "never said"), hold=f"never {scope}"),
            says(send("ann", scope), finish()),
        )
    ]
    async with scene(in_memory, *script, concurrency=1) as s:
        for scope in scopes:
            said = await s.ann.say("bot", "go")
            turn_id = f"bot-{said['id']}"
            await s.held(f"never {scope}")
            await s.net.begun(turn_id)
            target = {"turn": turn_id, "thread": said["thread_id"], "agent": "bot"}.get(scope)
            stopped = await s.ann.call("stop", scope=scope, target=target, reason="enough")
            assert stopped["turns"] == 1
            end = ended(await s.net.turn(turn_id))
            assert (end.outcome, end.reason) == ("cancelled", "stopped by ann: enough")
            if scope != "turn":
                await s.ann.call("resume", scope=scope, target=target)
            again = await s.ann.say("bot", "and now?")
            turn = await s.net.turn(f"bot-{again['id']}")
            assert ended(turn).outcome == "finished", "its only lane is free, the model silent"
            assert await heard(s.net, s.ann) == [scope]


@pytest.mark.behaviour("H-63")
async def test_what_waits_for_a_lane_never_begins(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), finish(), hold="at work"),
        says(send("ann", "two"), finish()),
    ]
    async with at_work(in_memory, *script, file=DESK, concurrency=1) as s:
        posted = await s.ann.call("post_to_channel", channel="desk", text="@bot next")
        stopped = await s.ann.call("stop", scope="thread", target=posted["thread_id"])
        assert (stopped["turns"], stopped["wakes"]) == (0, 1)
        s.model.release("at work")
        await s.net.turn("bot-m1")
        await s.net.network.quiet()
        await s.ann.call("resume", scope="thread", target=posted["thread_id"])
        again = await s.ann.call("post_to_channel", channel="desk", text="@bot once more")
        turn = await s.net.turn(f"bot-{again['id']}")
        assert turn.start.messages == (again["id"],)
        assert len(s.model.requests) == 2


@pytest.mark.behaviour("H-64")
async def test_an_agent_that_was_away_learns_what_was_ended(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), hold="at work"),
        says(send("ann", "still here"), finish()),
    ]
    async with at_work(in_memory, *script, concurrency=1) as s:
        await s.net.begun("bot-m1")
        await s.net.cut("bot")
        await s.ann.call("stop", scope="turn", target="bot-m1")
        again = await s.ann.say("bot", "and now?")
        assert ended(await s.net.turn(f"bot-{again['id']}")).outcome == "finished"
