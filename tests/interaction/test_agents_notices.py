"""Notices of the hub are for people: models do not see them, and the hub has no address."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.protocol.messages import Message
from hubbub.testing.model_server import Refusal
from tests.interaction.agent_harness import call, finish, notice, says, send
from tests.interaction.peers import Networks, config
from tests.interaction.scripted import scene

HUB = "hub is the network itself"
READ = call("read_thread", thread="direct_ann")
DESK = config(channels={"desk": {"members": "all"}})


@pytest.mark.behaviour("A-25")
async def test_a_model_never_sees_notices_of_the_hub_even_after_a_restart(
    in_memory: Networks,
) -> None:
    reads = [says(READ), says(send("ann", "here"), finish())]
    async with scene(in_memory, Refusal(status=400), *reads, *reads) as s:
        await s.say("one")
        sent = Message.model_validate(await notice(s.ann, "model_error"))
        assert "got no answer from its model" in sent.text
        for turn in (0, 2):
            await s.turn("two")
            asked, read = s.model.requests[turn + 1 :]
            assert '<message sender="ann"' in asked.prompt, "her earlier message"
            assert '"one"' in read.messages[-1].text
            for shown in (asked.prompt, read.messages[-1].text):
                assert "no answer from" not in shown
                assert "hub" not in shown
            await s.restart()
        page = (await s.ann.call("read_thread", thread="direct_bot"))["messages"]
        assert sent.id in [message["id"] for message in page], "people still see it"


@pytest.mark.behaviour("A-25")
async def test_a_model_that_writes_to_the_hub_gets_an_error_with_advice(
    in_memory: Networks,
) -> None:
    wrong = [says(send(to, "thanks")) for to in ("hub", "direct_hub")]
    async with scene(in_memory, *wrong, says(send("ann", "here"), finish())) as s:
        turn = await s.turn("one")
        calls = [c for step in turn.steps for c in step.calls]
        assert [c.error for c in calls] == ["unknown_participant"] * 2 + [None] * 2
        assert all(HUB in str(c.result) and "list_participants" in str(c.result) for c in calls[:2])
        assert '"hub"' not in s.model.requests[0].body.model_dump_json()


@pytest.mark.behaviour("P-41")
async def test_no_operation_can_address_the_hub(in_memory: Networks) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
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
    ]
    async with in_memory.start(DESK) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await bot.say("ann", "hello")
        for operation, arguments in calls:
            error = await ann.ask(operation, **arguments)
            assert error["code"] == "unknown_participant", (operation, arguments)
            assert HUB in error["message"], (operation, arguments)
            assert "list_participants" in error["message"], (operation, arguments)
        assert network.hub.kernel.log.head == 1
