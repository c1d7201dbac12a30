"""People who say something while a turn runs, or end it: what the agent makes of that."""

from __future__ import annotations

import asyncio
from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer
from tests.interaction.agent_rig import (
    Gate,
    Rig,
    arrived,
    call,
    ended,
    finish,
    heard,
    held,
    notice,
    playing,
    rig,
    says,
    send,
    wakes_of,
)
from tests.interaction.peers import Networks, Peer, config, eventually

DESK = config(channels={"desk": {"members": "all"}})


async def at_work(
    net: Rig, model: ModelServer, name: str = "bot", **settings: JsonValue
) -> tuple[Peer, str]:
    """Ann, and the turn of an agent that she has asked something: its model is at work."""
    ann = await net.person()
    await net.llm(name, model, **settings)
    said = await ann.say(name, "first")
    await held(model, "at work")
    return ann, f"{name}-{said['id']}"


async def steer(net: Rig, ann: Peer, text: str) -> None:
    """Ann says it, and the agent has it in its hands."""
    await arrived(net, (await ann.say("bot", text))["seq"])


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
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model, endpoint={"dialect": dialect})
        await steer(net, ann, "make it <two> & hurry")
        model.release("at work")
        turn = await net.turn("bot-m1")
        assert await heard(net, ann) == ["one coffee ordered", "made it two"]
        assert wakes_of(turn) == ["m1", "m2"]
        (steering,) = turn.steps[1].steered
        assert steering.reply == "required"
        _, second, third = [request.body.messages for request in model.requests]
        assert second[-1].role == "user"
        assert steering.text in second[-1].text
        read = ElementTree.fromstring(steering.text.partition("\n\n")[0])
        assert (read.tag, read.get("sender"), read.get("id")) == ("incoming_message", "ann", "m2")
        assert read.findtext("content") == "make it <two> & hurry"
        assert [m.text for m in third[: len(second)]] == [m.text for m in second], "it stays there"
        assert ended(turn).outcome == "finished"
        receipts = await ann.call("read_receipts", id="m2")
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
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model)
        await steer(net, ann, "and where is the other?")
        model.release("at work")
        turn = await net.turn("bot-m1")
        assert [c.error for c in turn.steps[2].calls] == ["reply_required"]
        assert [c.error for c in turn.steps[3].calls] == [None]
        assert (await ann.event())["message"]["content"] == "on it"
        told = (await ann.event())["message"]["content"]
        assert (told["code"], told["messages"]) == ("finished", ["m3"])
        assert await ann.texts() == []


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
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model, steer=configured)
        await arrived(net, (await ann.say("bot", "second", mode=mode))["seq"])
        model.release("at work")
        first = await net.turn("bot-m1")
        assert ended(first).outcome == "finished"
        if enters:
            assert wakes_of(first) == ["m1", "m2"]
        else:
            assert wakes_of(first) == ["m1"]
            assert wakes_of(await net.turn("bot-m2")) == ["m2"]


@pytest.mark.behaviour("H-65")
async def test_of_several_messages_each_goes_where_it_is_to(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(send("ann", "and three")),
        says(finish(), hold="ending"),
        says(send("ann", "and two, and four"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model)
        await ann.say("bot", "second", mode="queue")
        await steer(net, ann, "third")
        model.release("at work")
        await held(model, "ending")
        last = (await ann.say("bot", "last"))["seq"]
        await arrived(net, last)
        model.release("ending")
        assert wakes_of(await net.turn("bot-m1")) == ["m1", "m3"]
        assert wakes_of(await net.turn("bot-m2")) == ["m2", f"m{last}"]


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize("configured", ["steer", "interrupt"])
async def test_agents_and_other_threads_neither_steer_nor_interrupt(
    in_memory: Networks, configured: str
) -> None:
    boss = [says(send("bot", "from an agent"), finish())]
    script = [says(send("ann", "one"), hold="at work"), *[says(finish())] * 3]
    async with playing(*script) as model, playing(*boss) as other, rig(in_memory, DESK) as net:
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


async def revived(net: Rig, model: ModelServer) -> Turn:
    """The turn, whose process dies at a question and comes again."""
    await held(model, "dying")
    await net.kill("bot")
    await net.network.gone("bot")
    await net.llm("bot", model)
    return await net.turn("bot-m1")


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
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model)
        await steer(net, ann, "second")
        model.release("at work")
        turn = await revived(net, model)
        assert (turn.start.messages, wakes_of(turn)) == (("m1",), ["m1", "m2"])
        assert turn.attempts == 2
        *_, before, again = [r.body.messages for r in model.requests][: 4 if taken_in else 3]
        assert [m.text for m in again] == [m.text for m in before]
        assert await heard(net, ann) == ["second noted"]
        assert len(model.requests) == 4, "nothing is left that would wake it"


# Interruptions --------------------------------------------------------------------------------


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize("case", ["config", "says", "away"])
async def test_an_interruption_ends_the_turn_and_the_next_begins_with_it(
    in_memory: Networks, case: str
) -> None:
    script = [says(send("ann", "never said"), hold="at work"), says(send("ann", "tea"), finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model, steer="interrupt" if case == "config" else "steer")
        if case == "away":  # it hears of it when it is back
            await net.begun("bot-m1")
            await net.cut("bot")
        await ann.say("bot", "no, tea", mode=None if case == "config" else "interrupt")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        found = ended(first).outcome, ended(first).reason
        assert found == ("cancelled", "interrupted by ann")
        assert wakes_of(second) == ["m2"]
        assert "first" in (second.prompt or ""), "it sees what it was at"
        assert (await notice(ann, "cancelled"))["content"]["messages"] == ["m1"]
        assert await heard(net, ann) == ["tea"]


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

    async with rig(in_memory) as net:
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
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1)
        for scope in scopes:
            said = await ann.say("bot", "go")
            turn_id = f"bot-{said['id']}"
            await held(model, f"never {scope}")
            await net.begun(turn_id)
            target = {"turn": turn_id, "thread": said["thread_id"], "agent": "bot"}.get(scope)
            stopped = await ann.call("stop", scope=scope, target=target, reason="enough")
            assert stopped["turns"] == 1
            end = ended(await net.turn(turn_id))
            assert (end.outcome, end.reason) == ("cancelled", "stopped by ann: enough")
            if scope != "turn":
                await ann.call("resume", scope=scope, target=target)
            again = await ann.say("bot", "and now?")
            turn = await net.turn(f"bot-{again['id']}")
            assert ended(turn).outcome == "finished", "its only lane is free, the model silent"
            assert await heard(net, ann) == [scope]


@pytest.mark.behaviour("H-63")
async def test_what_waits_for_a_lane_never_begins(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), finish(), hold="at work"),
        says(send("ann", "two"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory, DESK) as net:
        ann, _ = await at_work(net, model, concurrency=1)
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


@pytest.mark.behaviour("H-64")
async def test_an_agent_that_was_away_learns_what_was_ended(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), hold="at work"),
        says(send("ann", "still here"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann, _ = await at_work(net, model, concurrency=1)
        await net.begun("bot-m1")
        await net.cut("bot")
        await ann.call("stop", scope="turn", target="bot-m1")
        again = await ann.say("bot", "and now?")
        assert ended(await net.turn(f"bot-{again['id']}")).outcome == "finished"
