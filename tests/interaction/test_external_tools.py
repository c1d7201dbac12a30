"""External tools: an agent hands a call to its client and resumes with the result."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from tests.interaction.agent_harness import call, ended, says
from tests.interaction.peers import Networks, Peer
from tests.interaction.scripted import scene

TOOLS: list[JsonValue] = [
    {
        "name": "get_weather",
        "description": "The weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
    {"name": "finish", "description": "Clashes with a tool of the agent."},
    {"name": "asker_finish", "description": "Clashes with the new name of the one before."},
]
WEATHER = call("get_weather", place="Oslo")


async def ask(ann: Peer, text: str, **more: JsonValue) -> Any:
    content = {"text": text, "external_tools": TOOLS, **more}
    return await ann.call("send_message", to="bot", content=content, text_representation=text)


async def external_call(ann: Peer) -> Any:
    """The next call that an agent hands over."""
    while True:
        message = (await ann.event())["message"]
        if message["sender_kind"] == "agent":
            return message["content"]["external_call"]


async def send_result(ann: Peer, id: str, output: str) -> Any:
    return await ask(ann, "the result", external_results=[{"id": id, "output": output}])


@pytest.mark.behaviour("I-15")
async def test_a_call_is_handed_over_and_the_next_turn_resumes_with_its_result(
    in_memory: Networks,
) -> None:
    early = call("finish", message="too early")
    answers = [says(WEATHER, early), says(call("finish", message="It rains."))]
    async with scene(in_memory, *answers) as s:
        question = await ask(s.ann, "how is the weather in Oslo?")
        weather = await external_call(s.ann)
        assert (weather["name"], weather["arguments"]) == ("get_weather", {"place": "Oslo"})
        first = await s.net.turn(f"bot-{question['id']}")
        assert ended(first).reason == "waits for the results of get_weather"
        assert [c.error for c in first.steps[-1].calls] == [None, "too_early"]
        sent = await send_result(s.ann, weather["id"], "rain, 4 degrees")
        assert await s.heard() == "It rains."
        second = await s.net.turn(f"bot-{sent['id']}")
        assert second.start.continues == first.start.id
        assert {"get_weather", "asker_finish", "asker_asker_finish"} <= set(second.start.tools)
        results = [m.content for m in s.model.requests[1].messages if m.role == "tool"]
        assert results[0] == "rain, 4 degrees"


@pytest.mark.behaviour("I-15")
async def test_results_of_several_turns_are_kept_when_the_agent_dies_in_between(
    in_memory: Networks,
) -> None:
    again = call("get_weather", place="Bergen")
    answers = [says(WEATHER), says(again), says(call("finish", message="Rain everywhere."))]
    async with scene(in_memory, *answers) as s:
        question = await ask(s.ann, "the weather?")
        oslo = await external_call(s.ann)
        await s.net.turn(f"bot-{question['id']}")
        await s.net.kill("bot")
        sent = await send_result(s.ann, oslo["id"], "rain")
        await s.start()
        bergen = await external_call(s.ann)
        await s.net.turn(f"bot-{sent['id']}")
        await send_result(s.ann, bergen["id"], "more rain")
        assert await s.heard() == "Rain everywhere."
        results = [m.content for m in s.model.requests[2].messages if m.role == "tool"]
        assert results == ["rain", "more rain"]


@pytest.mark.behaviour("I-15")
async def test_an_invalid_external_tool_is_ignored(in_memory: Networks) -> None:
    async with scene(in_memory, says(call("finish", message="yes"))) as s:
        await ask(s.ann, "there?", external_tools=[{"name": "no name"}])
        assert await s.heard() == "yes"
