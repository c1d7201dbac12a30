"""People who say something while a turn runs, and the turn that hears it."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Refusal, Script
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, config, eventually, soon

DESK = config(channels={"desk": {"members": "all"}})
DIALECTS = ["native", "tool_call", "final_output"]


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


async def held(model: ModelServer, name: str) -> None:
    async with soon():
        await model.held(name)


async def steer(net: Rig, ann: Peer, text: str) -> None:
    """Ann says it, and the agent has it in its hands."""
    seq = (await ann.say("bot", text))["seq"]
    await arrived(net, seq)


async def arrived(net: Rig, seq: int) -> None:
    client = net.clients["bot"]
    await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)


async def heard(net: Rig, ann: Peer) -> list[str]:
    await net.network.quiet()
    return await ann.texts()


async def with_talk_around(networks: Networks, **how: JsonValue) -> Turn:
    """A turn of an agent configured like this, during which an agent speaks in its thread, and a
    person in another one."""
    boss = [says(send("bot", "from an agent"), finish())]
    script = [
        says(send("ann", "one"), hold="at work"),
        says(finish()),
        says(finish()),
        says(finish()),
    ]
    async with playing(*script) as model, playing(*boss) as other, rig(networks, DESK) as net:
        ann = await net.person()
        await net.llm("bot", model, concurrency=1, **how)
        await net.llm("boss", other)
        await ann.say(["bot", "boss"], "hello you two")
        await held(model, "at work")
        last = await ann.call("post_to_channel", channel="desk", text="@bot look here")
        await net.turn("boss-m1")
        await arrived(net, last["seq"])
        model.release("at work")
        return await net.turn("bot-m1")


def wakes_of(turn: Turn) -> list[str]:
    return [*turn.start.messages, *(s.message for step in turn.steps for s in step.steered)]


@pytest.mark.behaviour("Y-4")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_message_in_a_running_turn_enters_with_the_next_question(
    in_memory: Networks, dialect: str
) -> None:
    script = [
        says(send("ann", "one coffee ordered"), hold="at work"),
        says(send("ann", "made it two")),
        says(finish("both served")),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, endpoint={"dialect": dialect})
        await ann.say("bot", "a coffee")
        await held(model, "at work")
        await steer(net, ann, "make it <two> & hurry")
        model.release("at work")
        turn = await net.turn("bot-m1")
        assert await heard(net, ann) == ["one coffee ordered", "made it two"]
        assert wakes_of(turn) == ["m1", "m2"]
        (steering,) = turn.steps[1].steered
        assert steering.reply == "required"
        asked = model.requests[1].body.messages[-1]
        assert asked.role == "user"
        assert steering.text in asked.text
        element = steering.text.partition("\n\n")[0]
        read = ElementTree.fromstring(element)
        assert (read.tag, read.get("sender"), read.get("id")) == ("incoming_message", "ann", "m2")
        assert read.findtext("content") == "make it <two> & hurry"
        assert turn.end is not None
        assert turn.end.outcome == "finished"
        assert len(model.requests) == 3, "it starts no turn of its own"
        receipts = await ann.call("read_receipts", id="m2")
        told = next(r for r in receipts["receipts"] if r["participant"] == "bot")
        assert (told["turn"], told["state"]) == ("bot-m1", "ended")


async def test_the_next_questions_show_it_in_the_same_place(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), hold="at work"),
        says(call("list_channels")),
        says(send("ann", "done"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "go")
        await held(model, "at work")
        await steer(net, ann, "faster")
        model.release("at work")
        await net.turn("bot-m1")
        second, third = (request.body.messages for request in model.requests[1:])
        assert [m.role for m in third] == [
            *("system", "user", "assistant", "tool", "user", "assistant", "tool"),
        ]
        assert [m.text for m in third[:5]] == [m.text for m in second]


@pytest.mark.behaviour("Y-5")
async def test_a_reply_to_what_was_said_last_is_asked_for(in_memory: Networks) -> None:
    script = [
        says(send("ann", "the first answer"), hold="at work"),
        says(finish("enough")),
        says(finish("really")),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "one")
        await held(model, "at work")
        model.release("at work")
        await ann.event()
        turn = await net.turn("bot-m1")
        assert len(turn.steps) == 2, "who was answered waits for nothing"


@pytest.mark.behaviour("Y-5")
async def test_a_silent_finish_after_steering_is_asked_about_once_and_told(
    in_memory: Networks,
) -> None:
    script = [
        says(send("ann", "on it")),
        says(call("list_channels"), hold="at work"),
        says(finish("enough")),
        says(finish("not for me")),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "one")
        await held(model, "at work")
        await steer(net, ann, "and where is the other?")
        model.release("at work")
        turn = await net.turn("bot-m1")
        assert [c.error for c in turn.steps[2].calls] == ["reply_required"]
        assert [c.error for c in turn.steps[3].calls] == [None]
        assert (await ann.event())["message"]["content"] == "on it"
        notice = (await ann.event())["message"]["content"]
        assert (notice["code"], notice["messages"]) == ("finished", ["m3"])
        assert await heard(net, ann) == []


async def test_what_comes_with_the_last_answer_is_the_next_turns(in_memory: Networks) -> None:
    script = [
        says(send("ann", "bye"), finish(), hold="ending"),
        says(send("ann", "hello again"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "one")
        await held(model, "ending")
        await steer(net, ann, "two")
        model.release("ending")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert wakes_of(first) == ["m1"]
        assert wakes_of(second) == ["m2"]


async def test_an_agent_that_queues_hears_it_in_the_next_turn(in_memory: Networks) -> None:
    script = [
        says(send("ann", "one"), hold="at work"),
        says(finish()),
        says(send("ann", "two"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, steer="queue")
        await ann.say("bot", "first")
        await held(model, "at work")
        await steer(net, ann, "second")
        model.release("at work")
        assert wakes_of(await net.turn("bot-m1")) == ["m1"]
        assert wakes_of(await net.turn("bot-m2")) == ["m2"]


async def test_agents_and_other_threads_do_not_steer(in_memory: Networks) -> None:
    turn = await with_talk_around(in_memory)
    assert wakes_of(turn) == ["m1"]


class TestDyingWhileSteered:
    async def test_a_message_that_no_answer_has_taken_in_enters_again(
        self, networks: Networks
    ) -> None:
        script = [
            says(call("list_channels"), hold="one"),
            says(finish("never heard"), hold="dying"),
            says(send("ann", "both done")),
            says(finish()),
        ]
        async with playing(*script) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "first")
            await held(model, "one")
            await steer(net, ann, "second")
            model.release("one")
            await held(model, "dying")
            await net.kill("bot")
            await net.network.gone("bot")
            await net.llm("bot", model)
            turn = await net.turn("bot-m1")
            assert wakes_of(turn) == ["m1", "m2"]
            assert turn.attempts == 2
            again = model.requests[2].body.messages
            assert [m.text for m in again] == [m.text for m in model.requests[1].body.messages]
            assert await heard(net, ann) == ["both done"]
            assert len(model.requests) == 4

    @pytest.mark.behaviour("Y-6")
    async def test_one_that_was_taken_in_is_shown_where_it_was(self, networks: Networks) -> None:
        script = [
            says(call("list_channels"), hold="one"),
            says(send("ann", "second noted")),
            says(finish("never heard"), hold="dying"),
            says(finish("all done")),
        ]
        async with playing(*script) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "first")
            await held(model, "one")
            await steer(net, ann, "second")
            model.release("one")
            await held(model, "dying")
            await net.kill("bot")
            await net.network.gone("bot")
            await net.llm("bot", model)
            turn = await net.turn("bot-m1")
            assert turn.start.messages == ("m1",)
            assert wakes_of(turn) == ["m1", "m2"]
            again = model.requests[3].body.messages
            assert [m.text for m in again] == [m.text for m in model.requests[2].body.messages]
            assert await heard(net, ann) == ["second noted"]
            assert len(model.requests) == 4, "nothing is left that would wake it"


@pytest.mark.parametrize("end", ["model_error", "timeout"])
async def test_a_turn_that_fails_leaves_it_to_the_next(in_memory: Networks, end: str) -> None:
    broken = Refusal(status=400, message="no", hold="two")
    script = [
        says(call("list_channels"), hold="one"),
        broken if end == "model_error" else says(finish(), hold="two"),
        says(send("ann", "here I am"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, turn_timeout="2s" if end == "timeout" else "60s")
        await ann.say("bot", "first")
        await held(model, "one")
        await steer(net, ann, "second")
        model.release("one")
        await held(model, "two")
        if end == "model_error":
            model.release("two")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert first.end is not None
        assert first.end.outcome == end
        assert wakes_of(first) == ["m1"]
        assert wakes_of(second) == ["m2"]
