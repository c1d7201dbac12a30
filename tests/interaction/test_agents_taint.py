"""Turns that have read something from outside the network, and what that changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction.agent_harness import Harness, call, finish, harness, says, send
from tests.interaction.approval_harness import Shop, parked, replies, script, the_call
from tests.interaction.peers import Networks, Peer, eventually

PUBLISH = says(call("publish", text="hello"))
FETCH, ADD = says(call("fetch", page="news")), says(call("add", a=1, b=2))


@asynccontextmanager
async def at_shop(
    networks: Networks, folder: Path, played: Script, *tools: str, **config: Any
) -> AsyncIterator[tuple[Harness, Peer, Shop]]:
    """An agent with the tools of a shop, whose model plays the script."""
    async with ModelServer(played) as model, harness(networks) as net:
        ann, shop = await net.person(), Shop(net, model, folder)
        await shop.start(*tools, **config)
        yield net, ann, shop


async def marks(ann: Peer) -> list[bool]:
    """Of each message that agents have sent to her by now: whether it is marked as from outside."""
    events = await ann.sync()
    said = [e["message"] for e in events if e["message"]["sender_kind"] == "agent"]
    return [message.get("untrusted", False) for message in said]


class TestConfirm:
    @pytest.mark.behaviour("H-88", "H-90")
    async def test_nobody_is_asked_about_a_step_before_which_nothing_came_from_outside(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        both = says(call("fetch", page="news"), call("publish", text="hello"))
        played = script(ADD, both, replies("ok"))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            await ann.say("bot", "publish it")
            turn = await net.turn("bot-m1")
            assert the_call(turn, "publish").result == "published"
            assert shop.done == ["published hello"]
            assert [bool(step.untrusted) for step in turn.steps] == [False, True, False]
            assert await marks(ann) == [True]

    @pytest.mark.behaviour("H-88", "H-89", "H-90")
    async def test_a_person_is_asked_after_a_tool_has_brought_something_from_outside(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        played = script(FETCH, PUBLISH, replies("ok"))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            await ann.say("bot", "publish the news")
            (approval,) = await parked(net, ann)
            assert "from outside" in approval["reason"]
            assert shop.done == []
            await ann.call("approve", id=approval["id"])
            turn = await net.turn("bot-m1")
            assert shop.done == ["published hello"]
            assert turn.steps[0].untrusted == ("fetch",)
            assert await marks(ann) == [True]

    @pytest.mark.behaviour("H-90")
    async def test_the_operator_says_what_is_from_outside_and_what_needs_a_person(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        played = script(FETCH, PUBLISH, says(call("add", a=1, b=1)), says(call("pay", amount=1)))
        settings: JsonValue = {
            "fetch": {"untrusted": False},
            "add": {"untrusted": True},
            "pay": {"confirm": "untrusted"},
        }
        async with at_shop(in_memory, tmp_path, played, tool_settings=settings) as (net, ann, shop):
            await ann.say("bot", "go on")
            (approval,) = await parked(net, ann)
            assert approval["tool"] == "pay"
            assert shop.done == ["published hello"]

    @pytest.mark.behaviour("H-88")
    async def test_a_turn_that_is_taken_up_again_knows_what_it_has_read(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        held = says(call("publish", text="hello"), hold="before")
        played = script(FETCH, held, PUBLISH, replies("ok"))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            await ann.say("bot", "publish the news")
            await shop.model.held("before")
            await net.network.quiet()
            await net.kill("bot")
            await shop.start()
            (approval,) = await parked(net, ann)
            await ann.call("deny", id=approval["id"])
            turn = await net.turn("bot-m1")
            assert (turn.attempts, shop.done) == (2, [])
            shop.model.release("before")


class TestMessages:
    @pytest.mark.behaviour("H-88", "H-90")
    async def test_a_message_that_carries_something_from_outside_is_enough(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        async with at_shop(in_memory, tmp_path, script(PUBLISH, replies("ok"))) as (net, ann, _):
            await ann.say("bot", "publish this mail: hello", untrusted=True)
            (approval,) = await parked(net, ann)
            await ann.call("approve", id=approval["id"])
            turn = await net.turn("bot-m1")
            assert not any(step.untrusted for step in turn.steps)
            assert await marks(ann) == [True]

    @pytest.mark.behaviour("H-88")
    async def test_so_is_one_that_was_said_before_or_that_the_turn_reads_in_another_thread(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        read = says(call("read_thread", thread="direct_bob"))
        played = script(read, PUBLISH, PUBLISH, mail=says(finish()))
        async with at_shop(in_memory, tmp_path, played, "read_thread") as (net, ann, shop):
            bob = await net.person("bob")
            await bob.say("bot", "a mail came: hello", untrusted=True)
            await net.turn("bot-m1")
            seq = (await ann.say("bot", "publish what bob has"))["seq"]
            await parked(net, ann, f"bot-m{seq}")
            assert '"untrusted": true' in shop.model.requests[-1].body.messages[-1].text
            said = await bob.say("bot", "publish it")
            await parked(net, bob, f"bot-{said['id']}")

    @pytest.mark.behaviour("H-88")
    async def test_and_one_by_which_a_person_steers_the_turn(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        first = says(call("add", a=1, b=2), hold="at work")
        async with at_shop(in_memory, tmp_path, script(first, PUBLISH, PUBLISH)) as (
            net,
            ann,
            shop,
        ):
            await ann.say("bot", "work")
            await shop.model.held("at work")
            seq = (await ann.say("bot", "use this mail: hello", untrusted=True))["seq"]
            client = net.clients["bot"]
            await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)
            shop.model.release("at work")
            (approval,) = await parked(net, ann)
            assert approval["tool"] == "publish"

    @pytest.mark.behaviour("H-88", "H-89")
    async def test_what_a_helper_has_read_its_turn_has_read(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        goal = {"prompt": "<goal>read the news"}
        rules = [
            ScriptRule(when=When.model_validate({**goal, "step": 1}), answer=FETCH),
            ScriptRule(when=When.model_validate({**goal, "step": 2}), answer=says(finish("rain"))),
        ]
        answers: list[ScriptedAnswer] = [
            says(call("fork", goal="read the news")),
            PUBLISH,
            replies("ok"),
        ]
        played = Script(rules=rules, answers=list(answers))
        async with at_shop(in_memory, tmp_path, played, fork={}) as (net, ann, _):
            await ann.say("bot", "publish the news")
            (approval,) = await parked(net, ann)
            await ann.call("approve", id=approval["id"])
            turn = await net.turn("bot-m1")
            assert turn.steps[0].untrusted == ("fork",)
            assert await marks(ann) == [False, True, True], "goal, result, answer"

    @pytest.mark.behaviour("H-89")
    async def test_agents_hand_the_mark_on_to_each_other(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        class Relay(Agent):
            async def on_direct(self, message: Message) -> None:
                await self.send("ann", message.text)

        async with at_shop(
            in_memory, tmp_path, script(FETCH, says(send("relay", "news"), finish()))
        ) as (net, ann, _):
            await net.python("relay", Relay())
            await ann.say("bot", "tell relay the news")
            event = await ann.event()
            while event["message"]["sender_id"] != "relay":
                event = await ann.event()
            assert event["message"]["untrusted"] is True


class TestPrompt:
    @pytest.mark.behaviour("H-87")
    async def test_a_prompt_shows_who_speaks_and_what_is_from_outside(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        clerk_speaks = says(send("clerk", "hello"), finish())
        played = script(clerk_speaks, paid=says(finish()), mail=says(finish()))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            clerk = await net.network.join("clerk", "agent")
            model = shop.model
            await ann.say("bot", "say hello to clerk")
            await net.turn("bot-m1")
            await ann.call("take_over", agent="clerk")
            seq = (await ann.say("bot", "it is paid", on_behalf_of="clerk"))["seq"]
            await net.turn(f"bot-m{seq}")
            shown = incoming(model, -1)
            assert (shown.get("sender"), shown.get("kind")) == ("clerk", "agent")
            assert (shown.get("sent_by"), shown.get("untrusted")) == ("ann", None)
            await ann.call("hand_back", agent="clerk")
            seq = (await clerk.say("bot", "a mail: hello", untrusted=True))["seq"]
            await net.turn(f"bot-m{seq}")
            shown = incoming(model, -1)
            assert (shown.get("sent_by"), shown.get("untrusted")) == (None, "true")
            assert 'untrusted="true"' in model.requests[-1].body.messages[0].text, "it is explained"


def incoming(model: ModelServer, request: int) -> ElementTree.Element:
    """The last message that a prompt shows as incoming."""
    prompt = model.requests[request].body.messages[1].text
    conversation = prompt[prompt.index("<conversation>") : prompt.rindex("\n\n")]
    return ElementTree.fromstring(conversation).findall(".//incoming_message")[-1]
