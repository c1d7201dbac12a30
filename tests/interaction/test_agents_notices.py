"""What the hub says by itself is for people: agents are not shown it, and nobody can answer it."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.protocol.messages import Message
from hubbub.testing.model_server import ModelServer, Refusal, Script
from tests.interaction.agent_rig import call, finish, notice, rig, says, send
from tests.interaction.peers import Networks, config

HUB = "hub is the network itself"
READ = call("read_thread", thread="direct_ann")


@pytest.mark.behaviour("A-25")
@pytest.mark.parametrize("dies", [False, True])
async def test_a_model_is_shown_no_notice_of_the_hub(in_memory: Networks, dies: bool) -> None:
    answers = [Refusal(status=400), says(READ), says(send("ann", "here"), finish())]
    async with ModelServer(Script(answers=answers)) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "one")
        told = Message.model_validate(await notice(ann, "model_error"))
        assert "got no answer from its model" in told.text
        if dies:
            await net.kill("bot")
            await net.llm("bot", model)
        again = await ann.say("bot", "two")
        await net.turn(f"bot-{again['id']}")
        asked = model.requests[1].body.messages[-1].text
        assert '<message sender="ann"' in asked, "what she said before is there"
        read = model.requests[2].body.messages[-1].text
        assert '"one"' in read
        for shown in (asked, read):
            assert "no answer from" not in shown
            assert "hub" not in shown
        page = (await ann.call("read_thread", thread="direct_bot"))["messages"]
        assert told.id in [message["id"] for message in page], "people still see it"


@pytest.mark.behaviour("A-25")
async def test_a_model_that_writes_to_the_hub_is_told_what_to_do(in_memory: Networks) -> None:
    wrong = [says(send(to, "thanks")) for to in ("hub", "direct_hub")]
    answers = [*wrong, says(send("ann", "here"), finish())]
    async with ModelServer(Script(answers=[*answers])) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "one")
        turn = await net.turn("bot-m1")
        calls = [c for step in turn.steps for c in step.calls]
        assert [c.error for c in calls] == ["unknown_participant"] * 2 + [None] * 2
        assert all(HUB in str(c.result) and "list_participants" in str(c.result) for c in calls[:2])
        tools = str(model.requests[0].body.model_dump_json())
        assert '"hub"' not in tools


DESK = config(channels={"desk": {"members": "all"}})


@pytest.mark.behaviour("P-41")
@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("send_text_message", {"to": "hub", "text": "thanks"}),
        ("send_text_message", {"to": "direct_hub", "text": "thanks"}),
        ("send_text_message", {"to": "dm.ann.hub", "text": "thanks"}),
        ("send_text_message", {"to": "direct_bot+hub", "text": "thanks"}),
        ("send_text_message", {"to": ["bot", "hub"], "text": "thanks"}),
        ("send_message", {"to": "hub", "content": {"a": 1}}),
        ("delegate", {"to": "hub", "task": "be quiet"}),
        ("create_channel", {"name": "x", "members": ["hub"]}),
        ("broadcast_text_message", {"text": "thanks", "mentions": ["hub"]}),
        ("post_to_channel", {"channel": "desk", "text": "thanks", "mentions": ["hub"]}),
        ("reply", {"message_id": "m1", "text": "thanks", "mentions": ["hub"]}),
    ],
)
async def test_nobody_can_send_to_the_hub(
    in_memory: Networks, operation: str, arguments: dict[str, Any]
) -> None:
    async with in_memory.start(DESK) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await bot.say("ann", "hello")
        error = await ann.ask(operation, **arguments)
        assert error["code"] == "unknown_participant"
        assert HUB in error["message"]
        assert "list_participants" in error["message"]
        assert network.hub.log.head == 1
