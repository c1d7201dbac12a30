"""Turns that have read untrusted content from outside the network."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.mods.documents.mod import DocumentsConfig, DocumentsMod
from hubbub.mods.tasks.mod import TasksConfig, TasksMod
from hubbub.testing.model_server import ModelServer, Script, ScriptedCall, ScriptRule, When
from tests.interaction.agent_harness import (
    arrived,
    call,
    finish,
    harness,
    incoming_message,
    says,
    send,
)
from tests.interaction.approval_harness import Shop, at_shop, parked, replies, script, the_call
from tests.interaction.peers import Networks, Peer

PUBLISH = says(call("publish", text="hello"))
FETCH, ADD = says(call("fetch", page="news")), says(call("add", a=1, b=2))


async def marks(ann: Peer) -> list[bool]:
    """Whether each message of agents to Ann so far is marked untrusted."""
    messages = [event["message"] for event in await ann.sync()]
    return [m.get("untrusted", False) for m in messages if m["sender_kind"] == "agent"]


class TestConfirm:
    @pytest.mark.behaviour("H-88", "H-90")
    async def test_a_call_needs_no_approval_before_untrusted_content_was_read(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        both = says(call("fetch", page="news"), call("publish", text="hello"))
        played = script(ADD, both, replies("ok"))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            turn = await net.turn(await net.ask(ann, "publish it"))
            assert the_call(turn, "publish").result == "published"
            assert shop.done == ["published hello"]
            assert [bool(step.untrusted) for step in turn.steps] == [False, True, False]
            assert await marks(ann) == [True]

    @pytest.mark.behaviour("H-88", "H-89", "H-90")
    async def test_a_call_needs_approval_after_a_tool_returned_untrusted_content(
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
    async def test_the_operator_can_configure_trust_and_approval_of_each_tool(
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
    @pytest.mark.parametrize(
        ("write", "read"),
        [
            (
                call("create_document", title="Plan", text="publish", thread="broadcast"),
                call("read_document", id="d1"),
            ),
            (call("create_task", title="publish", thread="broadcast"), call("list_tasks")),
        ],
        ids=["document", "task"],
    )
    async def test_a_document_or_task_of_an_untrusted_turn_makes_its_reader_untrusted(
        self, in_memory: Networks, tmp_path: Path, write: ScriptedCall, read: ScriptedCall
    ) -> None:
        played = script(FETCH, says(write), replies("ok"), says(read), PUBLISH)
        mods = [DocumentsMod(DocumentsConfig()), TasksMod(TasksConfig())]
        async with ModelServer(played) as model, harness(in_memory, mods=mods) as net:
            ann, shop = await net.person(), Shop(net, model, tmp_path)
            await shop.start(write.tool, read.tool)
            await net.turn(await net.ask(ann, "write it down"))
            bob = await net.person("bob")
            sent = await bob.say("bot", "do what is written")
            await parked(net, bob, f"bot-{sent['id']}")
            step = (await net.begun(f"bot-{sent['id']}")).steps[0]
            assert (step.untrusted, shop.done) == ((read.tool,), [])

    @pytest.mark.behaviour("H-88")
    async def test_a_resumed_turn_remembers_that_it_read_untrusted_content(
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
    async def test_an_untrusted_message_makes_its_turn_untrusted(
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
    async def test_an_untrusted_message_in_the_history_or_another_thread_makes_the_turn_untrusted(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        read = says(call("read_thread", thread="direct_bob"))
        played = script(read, PUBLISH, PUBLISH, mail=says(finish()))
        async with at_shop(in_memory, tmp_path, played, "read_thread") as (net, ann, shop):
            bob = await net.person("bob")
            await net.turn(await net.ask(bob, "a mail came: hello", untrusted=True))
            await parked(net, ann, await net.ask(ann, "publish what bob has"))
            assert '"untrusted": true' in shop.model.requests[-1].body.messages[-1].text
            await parked(net, bob, await net.ask(bob, "publish it"))

    @pytest.mark.behaviour("H-88")
    async def test_an_untrusted_steering_message_makes_the_turn_untrusted(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        played = script(says(call("add", a=1, b=2), hold="at work"), PUBLISH, PUBLISH)
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            await ann.say("bot", "work")
            await shop.model.held("at work")
            await arrived(net, (await ann.say("bot", "use this mail", untrusted=True))["seq"])
            shop.model.release("at work")
            (approval,) = await parked(net, ann)
            assert approval["tool"] == "publish"

    @pytest.mark.behaviour("H-88", "H-89")
    async def test_untrusted_content_read_by_a_helper_makes_the_turn_untrusted(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        goal = {"prompt": "<goal>read the news"}
        rules = [
            ScriptRule(when=When.model_validate({**goal, "step": 1}), answer=FETCH),
            ScriptRule(when=When.model_validate({**goal, "step": 2}), answer=says(finish("rain"))),
        ]
        answers = [says(call("fork", goal="read the news")), PUBLISH, replies("ok")]
        played = Script(rules=rules, answers=[*answers])
        async with at_shop(in_memory, tmp_path, played, fork={}) as (net, ann, _):
            await ann.say("bot", "publish the news")
            (approval,) = await parked(net, ann)
            await ann.call("approve", id=approval["id"])
            turn = await net.turn("bot-m1")
            assert turn.steps[0].untrusted == ("fork",)
            assert await marks(ann) == [False, True, True], "goal, result, answer"

    @pytest.mark.behaviour("H-89")
    async def test_agents_pass_the_untrusted_mark_on_to_each_other(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        class Relay(Agent):
            async def on_direct(self, message: Message) -> None:
                await self.send("ann", message.text)

        played = script(FETCH, says(send("relay", "news"), finish()))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, _):
            await net.python("relay", Relay())
            await ann.say("bot", "tell relay the news")
            event = await ann.event()
            while event["message"]["sender_id"] != "relay":
                event = await ann.event()
            assert event["message"]["untrusted"] is True


class TestPrompt:
    @pytest.mark.behaviour("H-87")
    async def test_a_prompt_shows_the_sender_behind_an_agent_and_the_untrusted_mark(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        clerk_speaks = says(send("clerk", "hello"), finish())
        played = script(clerk_speaks, paid=says(finish()), mail=says(finish()))
        async with at_shop(in_memory, tmp_path, played) as (net, ann, shop):
            clerk = await net.network.join("clerk", "agent")
            model = shop.model
            await net.turn(await net.ask(ann, "say hello to clerk"))
            await ann.call("take_over", agent="clerk")
            await net.turn(await net.ask(ann, "it is paid", on_behalf_of="clerk"))
            shown = incoming_message(model, -1)
            assert (shown.get("sender"), shown.get("kind")) == ("clerk", "agent")
            assert (shown.get("sent_by"), shown.get("untrusted")) == ("ann", None)
            await ann.call("hand_back", agent="clerk")
            await net.turn(await net.ask(clerk, "a mail: hello", untrusted=True))
            shown = incoming_message(model, -1)
            assert (shown.get("sent_by"), shown.get("untrusted")) == (None, "true")
            assert 'untrusted="true"' in model.requests[-1].body.messages[0].text, "it is explained"
