"""Messages, interruptions and stops of people while a turn runs."""

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
from tests.interaction.peers import Networks, config, soon
from tests.interaction.scripted import Scene, scene

DESK = config(channels={"desk": {"members": "all"}})


@asynccontextmanager
async def at_work(
    networks: Networks, *answers: AnyAnswer, file: NetworkFile | None = None, **config: Any
) -> AsyncIterator[Scene]:
    """An agent whose model is at work for Ann."""
    async with scene(networks, *answers, file=file, **config) as s:
        await s.say("first")
        await s.held("at work")
        yield s


# Steering --------------------------------------------------------------------------------------


@pytest.mark.behaviour("Y-4")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_message_during_a_turn_is_shown_in_the_next_model_call(
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
        (steered,) = turn.steps[1].steered
        assert steered.reply == "required"
        _, second, third = [request.body.messages for request in s.model.requests]
        assert second[-1].role == "user"
        assert steered.text in second[-1].text
        shown = ElementTree.fromstring(steered.text.partition("\n\n")[0])
        assert (shown.tag, shown.get("sender")) == ("incoming_message", "ann")
        assert (shown.get("id"), shown.findtext("content")) == ("m2", "make it <two> & hurry")
        assert [m.text for m in third[: len(second)]] == [m.text for m in second], "and stays"
        assert ended(turn).outcome == "finished"
        receipts = await s.ann.call("read_receipts", id="m2")
        receipt = next(r for r in receipts["receipts"] if r["participant"] == "bot")
        assert (receipt["turn"], receipt["state"]) == ("bot-m1", "ended"), "no turn of its own"


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
        content = (await s.ann.event())["message"]["content"]
        assert (content["code"], content["messages"]) == ("finished", ["m3"])
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
async def test_the_sender_or_the_config_decides_whether_a_message_steers_or_waits(
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
async def test_each_of_several_messages_steers_or_waits_as_its_mode_says(
    in_memory: Networks,
) -> None:
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
async def test_a_steering_message_is_shown_once_and_in_its_place_despite_a_crash(
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
        assert len(s.model.requests) == 4, "the message starts no other turn"


# Interruptions ---------------------------------------------------------------------------------


@pytest.mark.behaviour("H-66")
@pytest.mark.parametrize("case", ["config", "message", "away"])
async def test_an_interruption_ends_the_turn_and_starts_the_next(
    in_memory: Networks, case: str
) -> None:
    script = [says(send("ann", "never said"), hold="at work"), says(send("ann", "tea"), finish())]
    async with at_work(in_memory, *script, steer="interrupt" if case == "config" else "steer") as s:
        if case == "away":  # it learns of it when it is back
            await s.net.begun("bot-m1")
            await s.net.cut("bot")
        await s.ann.say("bot", "no, tea", mode=None if case == "config" else "interrupt")
        first, second = await s.net.turn("bot-m1"), await s.net.turn("bot-m2")
        assert ended(first).outcome == "cancelled"
        assert ended(first).reason == "interrupted by ann"
        assert wakes_of(second) == ["m2"]
        assert "first" in (second.prompt or ""), "it sees the interrupted task"
        assert (await notice(s.ann, "cancelled"))["content"]["messages"] == ["m1"]
        assert await heard(s.net, s.ann) == ["tea"]


@pytest.mark.behaviour("H-66")
async def test_a_person_gets_a_notice_when_another_interrupts_their_turn(
    in_memory: Networks,
) -> None:
    script = [says(call("list_channels"), hold="at work"), says(send("ben", "on it"), finish())]
    async with scene(in_memory, *script) as s:
        ben = await s.net.person("ben")
        await s.ann.say(["ben", "bot"], "find me a train")
        await s.held("at work")
        await ben.say(["ann", "bot"], "a flight!", mode="interrupt")
        await s.net.turn("bot-m2")
        message = await notice(s.ann, "cancelled")
        assert message["content"]["messages"] == ["m1"]
        assert "interrupted by ben" in message["text_representation"]


@pytest.mark.behaviour("H-63", "H-66")
async def test_a_python_handler_is_cancelled_with_its_turn(in_memory: Networks) -> None:
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
        for ending in ("interrupt", "stop"):
            slow = await net.ask(ann, "slow")
            await gate.until_reached()
            if ending == "interrupt":
                quick = await net.turn(await net.ask(ann, "quick", mode="interrupt"))
                assert ended(quick).outcome == "finished"
            else:
                await ann.call("stop", scope="agent", target="bot")
            async with soon():
                await released.wait()
            assert ended(await net.turn(slow)).outcome == "cancelled", ending
            gate.reached.clear()
            released.clear()
        assert await heard(net, ann) == ["done: quick"]


# Stops -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-63")
async def test_a_stopped_turn_does_not_wait_for_its_model(in_memory: Networks) -> None:
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
            turn_id = await s.say()
            await s.held(f"never {scope}")
            await s.net.begun(turn_id)
            target = {"turn": turn_id, "thread": "dm.ann.bot", "agent": "bot"}.get(scope)
            stopped = await s.ann.call("stop", scope=scope, target=target, reason="enough")
            assert stopped["turns"] == 1
            end = ended(await s.net.turn(turn_id))
            assert (end.outcome, end.reason) == ("cancelled", "stopped by ann: enough")
            if scope != "turn":
                await s.ann.call("resume", scope=scope, target=target)
            turn = await s.turn("and now?")
            assert ended(turn).outcome == "finished", "its only lane is free"
            assert await heard(s.net, s.ann) == [scope]


@pytest.mark.behaviour("H-63")
async def test_a_stop_drops_a_wake_that_waits_for_a_lane(in_memory: Networks) -> None:
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
async def test_an_agent_that_was_away_learns_of_a_stop(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), hold="at work"),
        says(send("ann", "still here"), finish()),
    ]
    async with at_work(in_memory, *script, concurrency=1) as s:
        await s.net.begun("bot-m1")
        await s.net.cut("bot")
        await s.ann.call("stop", scope="turn", target="bot-m1")
        assert ended(await s.turn("and now?")).outcome == "finished"
