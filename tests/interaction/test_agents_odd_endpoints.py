"""Agents whose model endpoint answers in odd ways: turns end properly, and nothing is lost."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.protocol.turns import Turn
from tests.interaction.peers import Networks, config
from tests.interaction.scripted import ending, scene
from tests.unit.agents.raw_endpoint import Reply, completion, endpoint


def call(id: str, tool: str, arguments: JsonValue) -> JsonValue:
    function: JsonValue = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": id, "type": "function", "function": function}


def calls(*tool_calls: JsonValue) -> JsonValue:
    return completion({"role": "assistant", "content": None, "tool_calls": list(tool_calls)})


def send(id: str, text: str) -> JsonValue:
    return call(id, "send_text_message", {"to": "ann", "text": text})


async def turn_with(
    networks: Networks, body: JsonValue | bytes, messages: int = 0, **settings: Any
) -> tuple[Turn, list[str]]:
    """A turn of an agent whose endpoint always answers with `body`, and its messages to Ann."""
    file = config(humans={"ann": {"roles": ["owner"]}})
    async with (
        endpoint(Reply(body)) as url,
        scene(networks, file=file, endpoint={"base_url": url}, **settings) as s,
    ):
        return await s.turn(), [await s.heard() for _ in range(messages)]


@pytest.mark.behaviour("A-7")
async def test_an_invalid_answer_of_an_endpoint_ends_the_turn_with_model_error(
    in_memory: Networks,
) -> None:
    bodies: list[JsonValue | bytes] = [
        b"null",
        {"choices": "abc"},
        completion({"tool_calls": {"a": 1}}),
        {"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]},
    ]
    for body in bodies:
        outcome, reason = ending((await turn_with(in_memory, body))[0])
        assert outcome == "model_error", body
        assert reason.startswith("the model endpoint http://127.0.0.1:"), body


async def test_the_token_limit_holds_for_an_endpoint_that_counts_no_tokens(
    in_memory: Networks,
) -> None:
    body = calls(call("a", "list_channels", {}), call("b", "nonsense", {"a": "word " * 400}))
    turn, (notice,) = await turn_with(in_memory, body, 1, max_tokens=2000, max_steps=50)
    outcome, reason = ending(turn)
    assert outcome == "max_steps"
    assert re.fullmatch(r"not finished after \d+ tokens \(at most 2000\)", reason)
    assert notice == f"bot reached its limit before it answered (`{reason}`)."
    assert all("does not count tokens; estimated" in step.notes[-1] for step in turn.steps)


async def test_two_calls_with_the_same_id_both_run(in_memory: Networks) -> None:
    body = calls(send("call_1_1", "first"), send("call_1_1", "second"), call("f", "finish", {}))
    turn, heard = await turn_with(in_memory, body, messages=2)
    assert heard == ["first", "second"]
    assert len(turn.sent) == 2
    assert len({record.id for record in turn.steps[0].calls}) == 3


@pytest.mark.slow
async def test_a_step_with_arguments_too_large_for_a_frame_is_recorded(in_memory: Networks) -> None:
    values: list[JsonValue] = [[0] * 100_000, {"a" * 400_000: 1}]
    for value in values:
        body = calls(call("a", "nonsense", {"value": value}), call("f", "finish", {"reason": "x"}))
        turn, _ = await turn_with(in_memory, body)
        assert [record.name for record in turn.steps[0].calls] == ["nonsense", "finish"]
        assert ending(turn)[0] == "finished"
