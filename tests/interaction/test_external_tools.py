"""Tools of who asks: an agent calls them by a message, and goes on when the results come."""

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
    {"name": "finish", "description": "A name that the agent has itself."},
    {"name": "asker_finish", "description": "A name that the one before is given."},
]
WEATHER = call("get_weather", place="Oslo")


async def asks(ann: Peer, text: str, **content: JsonValue) -> Any:
    brought = {"text": text, "external_tools": TOOLS, **content}
    return await ann.call("send_message", to="bot", content=brought, text_representation=text)


async def asked_of(ann: Peer) -> Any:
    """The next call that an agent hands over."""
    while True:
        message = (await ann.event())["message"]
        if message["sender_kind"] == "agent":
            return message["content"]["external_call"]


async def brings(ann: Peer, **results: str) -> Any:
    told: list[JsonValue] = [{"id": id, "output": output} for id, output in results.items()]
    return await asks(ann, "the results", external_results=told)


@pytest.mark.behaviour("I-15")
async def test_a_call_is_handed_over_and_the_next_turn_goes_on_with_its_result(
    in_memory: Networks,
) -> None:
    early = call("finish", message="too early")
    answers = [says(WEATHER, early), says(call("finish", message="It rains."))]
    async with scene(in_memory, *answers) as s:
        question = await asks(s.ann, "how is the weather in Oslo?")
        handed = await asked_of(s.ann)
        assert (handed["name"], handed["arguments"]) == ("get_weather", {"place": "Oslo"})
        first = await s.net.turn(f"bot-{question['id']}")
        assert ended(first).reason == "waits for the results of get_weather"
        assert [c.error for c in first.steps[-1].calls] == [None, "too_early"]
        brought = await brings(s.ann, **{handed["id"]: "rain, 4 degrees"})
        assert await s.heard() == "It rains."
        second = await s.net.turn(f"bot-{brought['id']}")
        assert second.start.continues == first.start.id
        assert {"get_weather", "asker_finish", "asker_asker_finish"} <= set(second.start.tools)
        results = [m.content for m in s.model.requests[1].messages if m.role == "tool"]
        assert results[0] == "rain, 4 degrees"


@pytest.mark.behaviour("I-15")
async def test_calls_of_several_turns_have_their_results_and_a_death_in_between_changes_nothing(
    in_memory: Networks,
) -> None:
    again = call("get_weather", place="Bergen")
    answers = [says(WEATHER), says(again), says(call("finish", message="Rain everywhere."))]
    async with scene(in_memory, *answers) as s:
        question = await asks(s.ann, "the weather?")
        oslo = await asked_of(s.ann)
        await s.net.turn(f"bot-{question['id']}")
        await s.net.kill("bot")
        brought = await brings(s.ann, **{oslo["id"]: "rain"})
        await s.start()
        bergen = await asked_of(s.ann)
        await s.net.turn(f"bot-{brought['id']}")
        await brings(s.ann, **{bergen["id"]: "more rain"})
        assert await s.heard() == "Rain everywhere."
        results = [m.content for m in s.model.requests[2].messages if m.role == "tool"]
        assert results == ["rain", "more rain"]


@pytest.mark.behaviour("I-15")
async def test_what_is_no_tool_is_passed_over(in_memory: Networks) -> None:
    async with scene(in_memory, says(call("finish", message="yes"))) as s:
        bad: dict[str, JsonValue] = {"external_tools": [{"name": "no name"}], "text": "there?"}
        await s.ann.call("send_message", to="bot", content=bad, text_representation="there?")
        assert await s.heard() == "yes"
