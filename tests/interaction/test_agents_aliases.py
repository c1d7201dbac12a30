"""Aliases with which models call tools, actions and arguments by other names."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub import LlmAgent, Network, tool
from hubbub.config.agents import DialectName
from hubbub.errors import HubbubError
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ScriptedAnswer
from tests.interaction.agent_harness import call, playing, says

STEPS: dict[str, JsonValue] = {"preset": "step_actions", "names": {"SEARCH_STOCK": "look"}}


@tool
def look(query: str, limit: int = 3) -> str:
    """Search the stock."""
    return f"{limit} of {query}"


def acts(action: str, **more: JsonValue) -> ScriptedAnswer:
    return ScriptedAnswer(
        text=f"<final_output>{json.dumps({'action': action, **more})}</final_output>"
    )


async def _called(
    dialect: DialectName, *answers: AnyAnswer
) -> list[tuple[str, JsonValue, str | None]]:
    """The name, the arguments and the result of each call."""
    async with playing(*answers) as model:
        clerk = LlmAgent(
            "clerk", model="m", base_url=model.base_url, retries=0, dialect=dialect,
            tools=[look, "send_text_message"], aliases=STEPS,
        )  # fmt: skip
        async with Network(clerk, people=["ann"]) as net:
            turn = (await net.ask("clerk", "chairs?")).turn
    return [(c.name, c.arguments, c.result) for step in turn.steps for c in step.calls]


async def test_actions_in_any_spelling_and_aliases_are_resolved_to_tools() -> None:
    both: list[JsonValue] = [
        {"tool_name": "SEARCH_STOCK", "parameters": {"query_text": "beds"}},
        {"tool_name": "look", "parameters": {"query": "sofas", "query_text": "no"}},
    ]
    called = await _called(
        "final_output",
        acts("SEARCH_STOCK", parameters={"query_text": "chairs", "limit": 2}),
        acts("CALL_TOOLS_PARALLEL", parallel_tools=both),
        acts("SEND_MESSAGE", parameters={"target_agent_id": "ann", "message_text": "Two chairs."}),
        acts("finish", message_to_user="Done."),
    )
    assert [(name, arguments) for name, arguments, _ in called] == [
        ("look", {"query": "chairs", "limit": 2}),
        ("look", {"query": "beds"}),
        ("look", {"query": "sofas", "query_text": "no"}),
        ("send_text_message", {"to": "ann", "text": "Two chairs."}),
        ("finish", {"message": "Done."}),
    ]
    assert called[0][2] == "2 of chairs"
    assert "query_text" in (called[2][2] or ""), "an alias beside its argument is refused"


@pytest.mark.parametrize("dialect", ["native", "tool_call"])
async def test_aliases_work_in_the_other_dialects(dialect: DialectName) -> None:
    asked = says(call("SEARCH_STOCK", query_text="chairs"))
    called = await _called(dialect, asked, says(call("finish", message="ok")))
    assert called[0] == ("look", {"query": "chairs"}, "3 of chairs")


async def test_an_ambiguous_alias_is_an_error(snapshot: SnapshotAssertion) -> None:
    errors = {}
    for name, aliases in {
        "chain": {"names": {"a": "b", "b": "c"}},
        "tool": {"names": {"look": "send_text_message"}},
        "way out": {"names": {"finish": "look"}},
        "preset": {"preset": "steps"},
    }.items():
        with pytest.raises(HubbubError) as error:
            await _started(aliases)
        errors[name] = str(error.value)
    assert errors == snapshot


async def _started(aliases: Any) -> None:
    clerk = LlmAgent("clerk", base_url="http://x/v1", tools=[look], aliases=aliases)
    async with Network(clerk) as net:
        await net.ask("clerk", "hello")
